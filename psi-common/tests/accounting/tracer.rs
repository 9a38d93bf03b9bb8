//! The tracer over plain memory: `psi_common`'s own accounting and events, called as psi-ebpf's hooks call them.

use std::{cell::Cell, collections::HashMap, rc::Rc};

use psi_common::{
    account::{self, Records, Stamp},
    event,
    layout::{Counter, State},
    list::{self, Next, Number},
    queue_clock::QueueClock,
    word::{Parked, Running, class},
};

use crate::kernel::{Hooks, ON_RQ_QUEUED, Task};

/// A word, changed by exchange.
#[derive(Clone, Copy)]
pub(crate) struct Word<'a>(&'a Cell<u64>);

impl account::Cell for Word<'_> {
    fn swap(&self, new: u64) -> u64 {
        self.0.replace(new)
    }

    fn replace(&self, old: u64, new: u64) -> bool {
        let same = self.0.get() == old;
        if same {
            self.0.set(new);
        }
        same
    }
}

/// Where memory stalls are learned from, as in psi-ebpf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Fentry,
    TaskBit,
}

/// `psi_common::layout::CpuCgroup`.
#[derive(Clone, Default)]
pub(crate) struct Record {
    pub(crate) word: Cell<u64>,
    pub(crate) times: [Cell<u64>; 14],
    pub(crate) disabled: Cell<bool>,
    next: Cell<u32>,
}

/// A link or a head of an updated list.
struct Link<'a>(&'a Cell<u32>);

impl Number for Link<'_> {
    fn get(&self) -> u32 {
        self.0.get()
    }

    fn set(&self, new: u32) {
        self.0.set(new);
    }

    fn swap(&self, new: u32) -> u32 {
        self.0.replace(new)
    }

    fn replace(&self, old: u32, new: u32) -> bool {
        let same = self.0.get() == old;
        if same {
            self.0.set(new);
        }
        same
    }
}

/// `psi_common::layout::Task`.
#[derive(Default)]
pub(crate) struct Storage {
    pub(crate) parked: Cell<u64>,
    memstall: Cell<u64>,
    in_reclaim: Cell<bool>,
    suspect: Cell<u64>,
}

/// The maps.
pub(crate) struct Memory {
    parents: Vec<Option<u32>>,
    /// By CPU, then slot.
    records: Vec<Record>,
    /// Heads of the CPUs' updated lists.
    heads: Vec<Cell<u32>>,
    pub(crate) counters: [Cell<u64>; 8],
    now: Cell<u64>,
    clock_reads: Cell<u32>,
}

impl Memory {
    pub(crate) fn at(&self, cpu: usize, slot: usize) -> &Record {
        &self.records[cpu * self.parents.len() + slot]
    }

    pub(crate) const fn slots(&self) -> usize {
        self.parents.len()
    }

    pub(crate) const fn cpus(&self) -> usize {
        self.heads.len()
    }

    pub(crate) fn detach(&self, cpu: usize) -> Option<u32> {
        list::detach(&Link(&self.heads[cpu]))
    }

    pub(crate) fn unlink(&self, cpu: usize, slot: usize) -> Next {
        list::unlink(&Link(&self.at(cpu, slot).next))
    }
}

impl Records for &Memory {
    type Record = usize;

    fn record(&self, cpu: u32, slot: u32) -> Option<usize> {
        let slots = self.parents.len();
        ((slot as usize) < slots).then(|| cpu as usize * slots + slot as usize)
    }

    fn parent(&self, slot: u32) -> Option<u32> {
        self.parents[slot as usize]
    }

    fn add_word(&self, record: usize, delta: u64) -> u64 {
        let word = &self.records[record].word;
        word.replace(word.get().wrapping_add(delta))
    }

    fn add_time(&self, record: usize, state: State, delta: u64) {
        let time = &self.records[record].times[state as usize];
        time.set(time.get().wrapping_add(delta));
    }

    fn is_enabled(&self, record: usize) -> bool {
        !self.records[record].disabled.get()
    }

    fn updated(&self, record: usize, cpu: u32, slot: u32) {
        assert_eq!(Some(record), self.record(cpu, slot));
        let head = || Some(Link(&self.heads[cpu as usize]));
        list::push(Link(&self.records[record].next), head, slot);
    }

    fn now(&self, _clock: QueueClock) -> u64 {
        self.clock_reads.set(self.clock_reads.get() + 1);
        self.now.get()
    }

    fn count(&self, counter: Counter) {
        let counter = &self.counters[counter as usize];
        counter.set(counter.get() + 1);
    }

    fn add(&self, cpu: u32, slot: u32, delta: u64, stamp: Stamp) -> Stamp {
        account::walk(self, cpu, slot, delta, stamp)
    }
}

/// The tracer: slot n is group n.
pub(crate) struct Tracer {
    pub(crate) memory: Rc<Memory>,
    pub(crate) running: Vec<Cell<u64>>,
    pub(crate) storage: HashMap<u32, Storage>,
    source: Source,
    /// What each switch told of a task left behind.
    pub(crate) left: Vec<Option<u32>>,
}

/// A task as an event sees it.
#[derive(Clone, Copy)]
struct Tracked<'a> {
    task: &'a Task,
    storage: &'a Storage,
    source: Source,
}

impl<'a> event::Task for Tracked<'a> {
    type Cell = Word<'a>;

    fn pid(self) -> u32 {
        self.task.pid
    }

    fn cpu(self) -> u32 {
        self.task.cpu() as u32
    }

    fn on_cpu(self) -> bool {
        self.task.on_cpu
    }

    fn is_asleep(self) -> bool {
        self.task.on_rq != ON_RQ_QUEUED || self.task.sched_delayed
    }

    fn is_delayed(self) -> bool {
        self.task.sched_delayed
    }

    fn in_iowait(self) -> bool {
        self.task.psi.in_iowait
    }

    fn stalls_parked(self) -> bool {
        match self.source {
            Source::Fentry => self.storage.memstall.get() != 0,
            Source::TaskBit => self.task.psi.in_memstall,
        }
    }

    fn stalls_running(self) -> bool {
        match self.source {
            Source::Fentry => self.storage.memstall.get() != 0,
            Source::TaskBit => self.storage.in_reclaim.get() && self.task.psi.in_memstall,
        }
    }

    fn slot(self) -> u32 {
        self.task.psi.group as u32
    }

    fn parked(self) -> Word<'a> {
        Word(&self.storage.parked)
    }

    fn parked_now(self) -> Parked {
        Parked(self.storage.parked.get())
    }

    fn is_suspect(self, parked: Parked) -> bool {
        let again = self.storage.suspect.get() == parked.0;
        self.storage.suspect.set(if again { 0 } else { parked.0 });
        again
    }
}

impl Tracer {
    pub(crate) fn new(parents: &[Option<usize>], cpus: usize, source: Source) -> Self {
        Self {
            memory: Rc::new(Memory {
                parents: parents
                    .iter()
                    .map(|parent| parent.map(|parent| parent as u32))
                    .collect(),
                records: vec![Record::default(); parents.len() * cpus],
                heads: vec![Cell::new(0); cpus],
                counters: Default::default(),
                now: Cell::new(0),
                clock_reads: Cell::new(0),
            }),
            running: vec![Cell::new(0); cpus],
            storage: HashMap::new(),
            source,
            left: Vec::new(),
        }
    }

    pub(crate) fn record(&self, cpu: usize, slot: usize) -> &Record {
        self.memory.at(cpu, slot)
    }

    pub(crate) fn counter(&self, counter: Counter) -> u64 {
        self.memory.counters[counter as usize].get()
    }

    pub(crate) fn add(&self, cpu: usize, slot: usize, delta: u64) {
        account::walk(&&*self.memory, cpu as u32, slot as u32, delta, Stamp::UNREAD);
    }

    /// The task's last switch was lost, and that has been noticed.
    pub(crate) fn left_behind(&self, task: &Task) {
        event::left_behind(&&*self.memory, self.track(task));
    }

    /// Where storage can be created, that is, everywhere on newer kernels.
    fn create(&mut self, task: &Task) {
        self.storage.entry(task.pid).or_default();
    }

    fn track<'a>(&'a self, task: &'a Task) -> Tracked<'a> {
        Tracked {
            task,
            storage: &self.storage[&task.pid],
            source: self.source,
        }
    }

    /// Runs a hook: one event has one time, so it reads the clock once at most.
    fn event<T>(&self, hook: impl FnOnce(&&Memory) -> T) -> T {
        self.memory.clock_reads.set(0);
        let result = hook(&&*self.memory);
        assert!(self.memory.clock_reads.get() <= 1, "an event with two times");
        result
    }

    fn running_now(&self, cpu: usize) -> Running {
        Running(self.running[cpu].get())
    }

    fn tell(&self, task: &Task) {
        let cpu = task.cpu();
        self.event(|memory| {
            event::stall_changed(
                memory,
                cpu as u32,
                Word(&self.running[cpu]),
                self.running_now(cpu),
                self.track(task),
            );
        });
    }
}

impl Hooks for Tracer {
    fn fork(&mut self, child: &Task) {
        self.create(child);
        self.event(|memory| event::forked(memory, self.track(child)));
    }

    fn wakeup(&mut self, task: &Task) {
        if !task.on_cpu {
            self.create(task);
            self.event(|memory| event::woken(memory, self.track(task), Stamp::UNREAD));
        }
    }

    fn migrate(&mut self, task: &Task, to: usize) {
        self.create(task);
        self.event(|memory| event::migrated(memory, self.track(task), to as u32));
    }

    fn switch(&mut self, cpu: usize, prev: Option<&Task>, next: Option<&Task>) {
        for task in [prev, next].into_iter().flatten() {
            self.create(task);
        }
        let pid = |task: Option<&Task>| task.map_or(0, |task| task.pid);
        let left = self.event(|memory| {
            event::switched(
                memory,
                cpu as u32,
                Word(&self.running[cpu]),
                (prev.map(|task| self.track(task)), pid(prev)),
                (next.map(|task| self.track(task)), pid(next)),
                Stamp::UNREAD,
            )
        });
        self.left.push(left);
    }

    fn memstall(&mut self, task: &Task, enter: bool, flags: u64) {
        if self.source != Source::Fentry {
            return;
        }
        self.create(task);
        let memstall = &self.storage[&task.pid].memstall;
        let outermost = memstall.get();
        if enter && (outermost == 0 || flags >= outermost) {
            memstall.set(flags);
            self.tell(task);
        } else if !enter && outermost != 0 && flags >= outermost {
            memstall.set(0);
            self.tell(task);
        }
    }

    fn reclaim(&mut self, task: &Task, begin: bool) {
        if self.source == Source::Fentry {
            return;
        }
        self.create(task);
        self.storage[&task.pid].in_reclaim.set(begin);
        self.tell(task);
    }

    fn freed(&mut self, task: &Task) {
        if self.storage.contains_key(&task.pid) {
            self.event(|memory| event::freed(memory, self.track(task)));
        }
        self.storage.remove(&task.pid);
    }

    fn tick(&mut self, cpu: usize, current: Option<&Task>) {
        if let Some(current) = current {
            self.create(current);
        }
        let old = self.running_now(cpu);
        let right = self.event(|memory| {
            event::check_running(
                memory,
                cpu as u32,
                Word(&self.running[cpu]),
                old,
                || current.map(|task| self.track(task)),
                current.map_or(0, |task| task.pid),
            )
        });
        if right
            && self.source == Source::TaskBit
            && old.class() != 0
            && let Some(current) = current
        {
            let new = Running::new(class::running(current.psi.in_memstall), old.slot(), current.pid);
            if new != old {
                self.event(|memory| account::rerun(memory, cpu as u32, Word(&self.running[cpu]), old, new));
            }
        }
    }

    fn walk(&mut self, task: &Task) {
        self.create(task);
        let cpu = task.cpu();
        let tracked = self.track(task);
        let parked = Parked(tracked.storage.parked.get());
        let is_known = parked.0 != 0 || tracked.storage.memstall.get() != 0;
        if !is_known && self.source == Source::Fentry && task.psi.in_memstall {
            tracked.storage.memstall.set(1);
        }
        // No event: it may repair both the task and its CPU.
        event::walked(
            &&*self.memory,
            cpu as u32,
            Word(&self.running[cpu]),
            self.running_now(cpu),
            tracked,
            parked,
        );
    }

    fn clock(&mut self, now: u64) {
        self.memory.now.set(now);
    }
}
