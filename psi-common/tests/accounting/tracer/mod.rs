//! The tracer over plain memory: `psi_common`'s own accounting and events, called as psi-ebpf's hooks call them.

mod memory;

use std::{cell::Cell, collections::HashMap, rc::Rc};

use psi_common::{
    account::{self, Stamp},
    event,
    layout::Counter,
    word::{Parked, Running, class},
};

pub(crate) use self::memory::{Memory, Record};
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

/// `psi_common::layout::Task`.
#[derive(Default)]
pub(crate) struct Storage {
    pub(crate) parked: Cell<u64>,
    memstall: Cell<u64>,
    in_reclaim: Cell<bool>,
    suspect: Cell<u64>,
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
            memory: Rc::new(Memory::new(parents, cpus)),
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
