//! A simulated machine: tasks, CPUs and the moments at which the kernel changes PSI and calls the tracer's hooks.

mod memstall;
mod op;
mod sched;
mod task;

use std::collections::BTreeMap;

pub(crate) use self::{
    op::{Leave, Op},
    task::{Life, ON_RQ_QUEUED, Task},
};
use crate::psi::Psi;

/// The tracepoints and function entries that the tracer is attached to.
pub(crate) trait Hooks {
    fn fork(&mut self, child: &Task);
    fn wakeup(&mut self, task: &Task);
    fn migrate(&mut self, task: &Task, to: usize);
    fn switch(&mut self, cpu: usize, prev: Option<&Task>, next: Option<&Task>);
    fn memstall(&mut self, task: &Task, enter: bool, flags: u64);
    fn reclaim(&mut self, task: &Task, begin: bool);
    fn freed(&mut self, task: &Task);
    /// An interrupt.
    fn tick(&mut self, cpu: usize, current: Option<&Task>);
    /// The audit at one task.
    fn walk(&mut self, task: &Task);
    /// The time of the next event.
    fn clock(&mut self, now: u64);
}

/// The machine.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) now: u64,
    pub(crate) psi: Psi,
    pub(crate) tasks: BTreeMap<u32, Task>,
    /// The pid that each CPU runs; none is idle.
    pub(crate) current: Vec<Option<u32>>,
    groups: usize,
    next_pid: u32,
    /// Whether the tracer walks over the tasks right after a move.
    pub(crate) walks_after_moves: bool,
    /// How many memory stalls of a task may be open at one time.
    pub(crate) most_stalls: u64,
}

impl Kernel {
    pub(crate) fn new(parents: &[Option<usize>], cpus: usize) -> Self {
        Self {
            now: 1_000_000_000,
            psi: Psi::new(parents, cpus),
            tasks: BTreeMap::new(),
            current: vec![None; cpus],
            groups: parents.len(),
            next_pid: 1,
            walks_after_moves: true,
            most_stalls: 3,
        }
    }

    pub(crate) fn cpus(&self) -> usize {
        self.current.len()
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, ns: u64, hooks: &mut impl Hooks) {
        self.now += ns;
        hooks.clock(self.now);
    }

    pub(crate) fn apply(&mut self, op: &Op, hooks: &mut impl Hooks) {
        match *op {
            Op::Fork { group } => self.fork(group.into(), hooks),
            Op::Start { task, cpu } => {
                if let Some(pid) = self.select(task, |task| task.life == Life::New) {
                    self.start(pid, usize::from(cpu) % self.cpus(), hooks);
                }
            }
            Op::Wake { task, cpu, remote } => {
                if let Some(pid) = self.select(task, |task| task.life != Life::New) {
                    self.wake(pid, usize::from(cpu) % self.cpus(), remote, hooks);
                }
            }
            Op::Switch { cpu, leave, next } => {
                let cpu = usize::from(cpu) % self.cpus();
                let next = self.select_next(cpu, next);
                self.switch(cpu, leave, next, hooks);
            }
            Op::Migrate { task, cpu } => {
                if let Some(pid) = self.select(task, |task| task.waits() || task.sched_delayed) {
                    self.migrate(pid, usize::from(cpu) % self.cpus(), hooks);
                }
            }
            Op::Dequeue { task } => {
                if let Some(pid) = self.select(task, |task| task.sched_delayed) {
                    let task = self.task(pid);
                    (task.on_rq, task.sched_delayed) = (0, false);
                }
            }
            Op::Memstall { cpu, enter, reclaim } => {
                let cpu = usize::from(cpu) % self.cpus();
                if enter {
                    self.memstall_enter(cpu, reclaim, hooks);
                } else {
                    self.memstall_leave(cpu, hooks);
                }
            }
            Op::Move { task, count, group } => {
                let group = usize::from(group) % self.groups;
                let all: Vec<u32> = self.tasks.keys().copied().collect();
                let first = usize::from(task) % all.len().max(1);
                for &pid in all.iter().skip(first).take(count.into()) {
                    self.change_group(pid, group);
                }
                if self.walks_after_moves {
                    self.walk(hooks);
                }
            }
            Op::Tick { cpu } => self.tick(usize::from(cpu) % self.cpus(), hooks),
            Op::Walk => self.walk(hooks),
        }
    }

    fn task(&mut self, pid: u32) -> &mut Task {
        self.tasks.get_mut(&pid).expect("a task that lives")
    }

    fn select(&self, n: u8, which: impl Fn(&Task) -> bool) -> Option<u32> {
        let fitting: Vec<u32> = self
            .tasks
            .values()
            .filter(|task| which(task))
            .map(|task| task.pid)
            .collect();
        (!fitting.is_empty()).then(|| fitting[usize::from(n) % fitting.len()])
    }

    /// Idle is among the choices even with tasks waiting: cpu.max can throttle them.
    fn select_next(&self, cpu: usize, n: u8) -> Option<u32> {
        let fitting: Vec<u32> = self
            .tasks
            .values()
            .filter(|task| task.waits() && task.cpu() == cpu)
            .map(|task| task.pid)
            .collect();
        fitting.get(usize::from(n) % (fitting.len() + 1)).copied()
    }

    pub(crate) fn tick(&self, cpu: usize, hooks: &mut impl Hooks) {
        hooks.tick(cpu, self.current[cpu].map(|pid| &self.tasks[&pid]));
    }

    pub(crate) fn walk(&mut self, hooks: &mut impl Hooks) {
        for task in self.tasks.values_mut() {
            let is_waking = task.life == Life::Waking;
            if !(is_waking && task.walked_waking) {
                hooks.walk(task);
            }
            task.walked_waking = is_waking;
        }
    }

    /// A part of a walk: `count` tasks after `last_pid`. Returns the last.
    pub(crate) fn walk_part(&self, last_pid: u32, count: usize, hooks: &mut impl Hooks) -> u32 {
        let part = self.tasks.range(last_pid + 1..).take(count);
        part.fold(last_pid, |_, (&pid, task)| {
            hooks.walk(task);
            pid
        })
    }

    /// The model's own check: its counts are those of its tasks.
    pub(crate) fn check_model(&self) {
        let mut counts = vec![[0u32; 5]; self.groups * self.cpus()];
        for task in self.tasks.values() {
            for group in self.psi.path(task.psi.group) {
                for (bit, count) in counts[group * self.cpus() + task.cpu()].iter_mut().enumerate() {
                    *count += task.psi.flags >> bit & 1;
                }
            }
        }
        for (index, counts) in counts.iter().enumerate() {
            let (group, cpu) = (index / self.cpus(), index % self.cpus());
            let this = self.psi.get(group, cpu);
            let kept = [
                this.iowait,
                this.memstall,
                this.running,
                this.memstall_running,
                this.oncpu.into(),
            ];
            assert_eq!(kept, *counts, "the model itself is wrong at group {group} cpu {cpu}");
        }
    }
}
