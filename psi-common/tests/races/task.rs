//! One task under loom, and the moments at which the kernel changes it and calls the hooks.

use std::sync::atomic::{AtomicU64 as PlainU64, Ordering::Relaxed as Plain};

use loom::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Release},
};
use psi_common::{
    account::{Stamp, walk},
    event,
    word::{Parked, Running, class, contribution},
};

use crate::memory::{Memory, Word};

const PID: u32 = 77;
const ON_RQ_QUEUED: u32 = 1;
const ON_RQ_MIGRATING: u32 = 2;

/// A task that sleeps in iowait whenever it sleeps.
#[derive(Debug)]
struct Task {
    on_cpu: AtomicU32,
    on_rq: AtomicU32,
    cpu: AtomicU32,
    slot: AtomicU32,
    parked: AtomicU64,
    stalls: AtomicU32,
    /// The walk's own.
    suspect: PlainU64,
}

/// A machine: one task, two CPUs.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) memory: Memory,
    running: [AtomicU64; 2],
    task: Task,
    /// The word of tasks that only stand in the task's cgroup, on CPU 0.
    standing: (u32, u64),
}

/// A task as an event sees it.
#[derive(Clone, Copy)]
struct Tracked<'a>(&'a Task);

impl<'a> event::Task for Tracked<'a> {
    type Cell = Word<'a>;

    fn pid(self) -> u32 {
        PID
    }

    fn cpu(self) -> u32 {
        self.0.cpu.load(Acquire)
    }

    fn on_cpu(self) -> bool {
        self.0.on_cpu.load(Acquire) != 0
    }

    fn is_asleep(self) -> bool {
        self.0.on_rq.load(Acquire) != ON_RQ_QUEUED
    }

    fn is_delayed(self) -> bool {
        false
    }

    fn in_iowait(self) -> bool {
        true
    }

    fn stalls_parked(self) -> bool {
        self.0.stalls.load(Acquire) != 0
    }

    fn stalls_running(self) -> bool {
        self.0.stalls.load(Acquire) != 0
    }

    fn slot(self) -> u32 {
        self.0.slot.load(Acquire)
    }

    fn parked(self) -> Word<'a> {
        Word(&self.0.parked)
    }

    fn parked_now(self) -> Parked {
        Parked(self.0.parked.load(Acquire))
    }

    fn is_suspect(self, parked: Parked) -> bool {
        let again = self.0.suspect.load(Plain) == parked.0;
        self.0.suspect.store(if again { 0 } else { parked.0 }, Plain);
        again
    }
}

impl Machine {
    /// The task waits on CPU 0 or runs there or sleeps there; the tracer knows nothing yet.
    pub(crate) fn new(memory: Memory, slot: u32, is: Is) -> Self {
        let (on_cpu, on_rq) = match is {
            Is::Running => (1, ON_RQ_QUEUED),
            Is::Waiting => (0, ON_RQ_QUEUED),
            Is::Asleep => (0, 0),
        };
        Self {
            memory,
            running: [AtomicU64::new(0), AtomicU64::new(0)],
            task: Task {
                on_cpu: AtomicU32::new(on_cpu),
                on_rq: AtomicU32::new(on_rq),
                cpu: AtomicU32::new(0),
                slot: AtomicU32::new(slot),
                parked: AtomicU64::new(0),
                stalls: AtomicU32::new(0),
                suspect: PlainU64::new(0),
            },
            standing: (slot, 0),
        }
    }

    /// Other tasks in the task's cgroup.
    pub(crate) fn with_standing(mut self, word: u64) -> Self {
        let slot = self.task.slot.load(Acquire);
        walk(&&self.memory, 0, slot, word, Stamp::UNREAD);
        self.standing = (slot, word);
        self
    }

    fn running(&self, cpu: u32) -> Word<'_> {
        Word(&self.running[cpu as usize])
    }

    fn switch(&self, cpu: u32, prev: Option<Tracked<'_>>, next: Option<Tracked<'_>>) {
        let pid = |task: Option<Tracked<'_>>| task.map_or(0, |_| PID);
        event::switched(
            &&self.memory,
            cpu,
            self.running(cpu),
            (prev, pid(prev)),
            (next, pid(next)),
            Stamp::UNREAD,
        );
    }

    /// The task is what its CPU runs next.
    pub(crate) fn switch_in(&self) {
        self.switch(self.task.cpu.load(Acquire), None, Some(Tracked(&self.task)));
        self.task.on_cpu.store(1, Release);
    }

    pub(crate) fn preempt(&self) {
        self.switch(self.task.cpu.load(Acquire), Some(Tracked(&self.task)), None);
        self.task.on_cpu.store(0, Release);
    }

    pub(crate) fn sleep(&self) {
        self.task.on_rq.store(0, Release);
        self.preempt();
    }

    pub(crate) fn wake(&self) {
        self.task.on_rq.store(ON_RQ_QUEUED, Release);
        event::woken(&&self.memory, Tracked(&self.task), Stamp::UNREAD);
    }

    /// A sleeping task is about to be woken on another CPU.
    pub(crate) fn migrate_to_wake(&self, to: u32) {
        event::migrated(&&self.memory, Tracked(&self.task), to);
        self.task.cpu.store(to, Release);
    }

    /// A waiting task goes to another run queue.
    pub(crate) fn migrate(&self, to: u32) {
        self.task.on_rq.store(ON_RQ_MIGRATING, Release);
        event::migrated(&&self.memory, Tracked(&self.task), to);
        self.task.cpu.store(to, Release);
        self.task.on_rq.store(ON_RQ_QUEUED, Release);
    }

    pub(crate) fn change_group(&self, slot: u32) {
        self.task.slot.store(slot, Release);
    }

    /// The running task enters or leaves a memory stall: the whole of the fentry program.
    pub(crate) fn stall(&self, enters: bool) {
        self.task.stalls.store(u32::from(enters), Release);
        let cpu = self.task.cpu.load(Acquire);
        let on_record = Running(self.running[cpu as usize].load(Acquire));
        event::stall_changed(&&self.memory, cpu, self.running(cpu), on_record, Tracked(&self.task));
    }

    pub(crate) fn interrupt(&self, cpu: u32, runs: bool) {
        let old = Running(self.running[cpu as usize].load(Acquire));
        let current = || runs.then_some(Tracked(&self.task));
        event::check_running(
            &&self.memory,
            cpu,
            self.running(cpu),
            old,
            current,
            if runs { PID } else { 0 },
        );
    }

    /// A walk at the task.
    pub(crate) fn walk(&self) {
        let parked = Parked(self.task.parked.load(Acquire));
        let cpu = self.task.cpu.load(Acquire);
        let on_record = Running(self.running[cpu as usize].load(Acquire));
        event::walked(
            &&self.memory,
            cpu,
            self.running(cpu),
            on_record,
            Tracked(&self.task),
            parked,
        );
    }

    /// [`Self::sleep`], with the event lost.
    pub(crate) fn sleep_unseen(&self) {
        self.task.on_rq.store(0, Release);
        self.task.on_cpu.store(0, Release);
    }

    /// What heals: an interrupt on each CPU and two walks.
    pub(crate) fn audit(&self) {
        let runs_on = self.task.cpu.load(Acquire);
        let runs = self.task.on_cpu.load(Acquire) != 0;
        for cpu in 0..2 {
            self.interrupt(cpu, runs && cpu == runs_on);
        }
        self.walk();
        self.walk();
    }

    /// After all threads: what is recorded agrees with itself.
    pub(crate) fn check(&self) {
        let parked = Parked(self.task.parked.load(Acquire));
        let running = [0, 1].map(|cpu| Running(self.running[cpu].load(Acquire)));
        self.memory.check(|cpu, slot| {
            let mut own = if (0, self.standing.0) == (cpu, slot) {
                self.standing.1
            } else {
                0
            };
            if (parked.cpu(), parked.slot()) == (cpu, slot) {
                own += contribution(parked.class());
            }
            if running[cpu as usize].slot() == slot {
                own += contribution(running[cpu as usize].class());
            }
            own
        });
    }

    /// What is recorded: the task's word and the CPUs'.
    pub(crate) fn recorded(&self) -> (Parked, [Running; 2]) {
        let running = [0, 1].map(|cpu| Running(self.running[cpu].load(Acquire)));
        // An idle CPU's is the same whether it is known or not.
        let running = running.map(|running| if running.class() == 0 { IDLE } else { running });
        (Parked(self.task.parked.load(Acquire)), running)
    }

    /// What should be.
    pub(crate) fn truth(&self) -> (Parked, [Running; 2]) {
        let Task {
            on_cpu,
            on_rq,
            cpu,
            slot,
            stalls,
            ..
        } = &self.task;
        let [on_cpu, on_rq, cpu, slot, stalls] = [on_cpu, on_rq, cpu, slot, stalls].map(|field| field.load(Acquire));
        let stalls = stalls != 0;
        let mut running = [IDLE; 2];
        let parked = if on_cpu != 0 {
            running[cpu as usize] = Running::new(class::running(stalls), slot, PID);
            Parked::ON_CPU
        } else if on_rq == ON_RQ_QUEUED {
            Parked::new(class::waiting(stalls), cpu, slot)
        } else {
            Parked::new(class::sleeping(true, stalls), cpu, slot)
        };
        (parked, running)
    }
}

const IDLE: Running = Running::new(0, 0, 0);

/// What the task does at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Is {
    Running,
    Waiting,
    Asleep,
}
