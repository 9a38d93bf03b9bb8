//! A simulated scheduler: tasks, CPUs and the moments at which the kernel changes PSI and calls the tracer's hooks.

use std::collections::BTreeMap;

use crate::psi::{Flagged, Psi, tsk};

/// What a task does, as far as the scheduler knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// Forked, not woken yet.
    New,
    /// On a run queue, or on the CPU.
    Runnable,
    /// Blocked; with `delayed` still on the run queue.
    Asleep,
    /// A wakeup has chosen another CPU and has not arrived there yet.
    Waking,
    Dead,
}

/// Values of `task_struct.on_rq`.
pub(crate) const ON_RQ_QUEUED: u32 = 1;
const ON_RQ_MIGRATING: u32 = 2;

/// A task: what the tracer's programs can read of it.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) pid: u32,
    pub(crate) life: Life,
    pub(crate) psi: Flagged,
    pub(crate) on_cpu: bool,
    pub(crate) on_rq: u32,
    pub(crate) sched_delayed: bool,
    /// Open memory stalls, outermost first.
    stalls: Vec<Stall>,
    /// Whether the last walk saw it on its way to another CPU. No two walks in a row do: for a task that wakes often it
    /// could happen, and the tracer would repair what is right, until the wakeup arrives.
    walked_waking: bool,
}

#[derive(Clone, Copy, Debug)]
struct Stall {
    /// Stack address of its flags word.
    address: u64,
    /// Whether it is within another: what the kernel keeps in the flags word.
    nested: bool,
    /// Whether it comes from a reclaim that has a tracepoint.
    reclaim: bool,
}

impl Task {
    pub(crate) const fn cpu(&self) -> usize {
        self.psi.cpu
    }

    fn waits(&self) -> bool {
        self.life == Life::Runnable && !self.on_cpu
    }
}

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

/// Why a CPU's current task makes room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    Preempted,
    Sleeps,
    /// Sleeps in iowait.
    Waits,
    /// As the two before, but the dequeue is delayed.
    SleepsDelayed,
    WaitsDelayed,
    Exits,
}

/// One thing that happens. Numbers select among what there is, modulo its count; where there is nothing, nothing
/// happens.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Fork {
        group: u8,
    },
    /// The first wakeup of a forked task.
    Start {
        task: u8,
        cpu: u8,
    },
    /// A wakeup; spurious for tasks that do not sleep. `remote`: it arrives with the next wakeup of the task.
    Wake {
        task: u8,
        cpu: u8,
        remote: bool,
    },
    /// `next` selects among the CPU's waiting tasks and idle.
    Switch {
        cpu: u8,
        leave: Leave,
        next: u8,
    },
    /// A load balancer moves a queued task.
    Migrate {
        task: u8,
        cpu: u8,
    },
    /// A delayed dequeue ends without a wakeup.
    Dequeue {
        task: u8,
    },
    Memstall {
        cpu: u8,
        enter: bool,
        reclaim: bool,
    },
    /// `count` tasks go to another cgroup.
    Move {
        task: u8,
        count: u8,
        group: u8,
    },
    Tick {
        cpu: u8,
    },
    Walk,
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

const MOST_TASKS: usize = 30;
const STACK_TOP: u64 = 0xffff_c900_0000_8000;

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

    pub(crate) fn current_stalls(&self, cpu: usize) -> bool {
        self.current[cpu].is_some_and(|pid| self.tasks[&pid].psi.in_memstall)
    }

    /// `psi_task_change` at the task's CPU.
    fn psi_change(&mut self, pid: u32, clear: u32, set: u32) {
        let stalls = self.current_stalls(self.tasks[&pid].cpu());
        let task = self.tasks.get_mut(&pid).expect("a task that lives");
        self.psi.task_change(&mut task.psi, clear, set, self.now, stalls);
    }

    /// `psi_enqueue`.
    fn psi_enqueue(&mut self, pid: u32, migrated: bool) {
        let Task { psi, sched_delayed, .. } = self.tasks[&pid];
        let memstall = if psi.in_memstall { tsk::MEMSTALL } else { 0 };
        let memstall_running = if psi.in_memstall { tsk::MEMSTALL_RUNNING } else { 0 };
        let iowait = if psi.in_iowait { tsk::IOWAIT } else { 0 };
        if sched_delayed {
            self.psi_change(pid, 0, memstall | iowait);
        } else if migrated {
            self.psi_change(pid, 0, tsk::RUNNING | memstall | memstall_running);
        } else {
            self.psi_change(pid, iowait, tsk::RUNNING | memstall_running);
        }
    }

    pub(crate) fn fork(&mut self, group: usize, hooks: &mut impl Hooks) {
        if self.tasks.len() >= MOST_TASKS {
            return;
        }
        let pid = self.next_pid;
        self.next_pid += 1;
        let task = Task {
            pid,
            life: Life::New,
            psi: Flagged {
                flags: 0,
                group: group % self.groups,
                cpu: 0,
                in_memstall: false,
                in_iowait: false,
            },
            on_cpu: false,
            on_rq: 0,
            sched_delayed: false,
            stalls: Vec::new(),
            walked_waking: false,
        };
        hooks.fork(&task);
        self.tasks.insert(pid, task);
    }

    /// Lets the wakeups arrive that are on their way to another CPU.
    pub(crate) fn finish_wakeups(&mut self, hooks: &mut impl Hooks) {
        while let Some(pid) = self.select(0, |task| task.life == Life::Waking) {
            self.activate(pid, true, hooks);
        }
    }

    /// `wake_up_new_task`.
    pub(crate) fn start(&mut self, pid: u32, cpu: usize, hooks: &mut impl Hooks) {
        let task = self.task(pid);
        task.psi.cpu = cpu;
        task.life = Life::Runnable;
        task.on_rq = ON_RQ_QUEUED;
        self.psi_enqueue(pid, false);
        hooks.wakeup(&self.tasks[&pid]);
    }

    /// `try_to_wake_up`.
    fn wake(&mut self, pid: u32, cpu: usize, remote: bool, hooks: &mut impl Hooks) {
        let Task {
            life, sched_delayed, ..
        } = self.tasks[&pid];
        match life {
            Life::Asleep if sched_delayed => {
                // ttwu_runnable
                self.task(pid).sched_delayed = false;
                self.activate(pid, false, hooks);
            }
            Life::Asleep if self.tasks[&pid].cpu() == cpu => self.activate(pid, false, hooks),
            Life::Asleep => {
                // psi_ttwu_dequeue, then set_task_cpu
                self.psi_change(pid, self.tasks[&pid].psi.flags, 0);
                self.task(pid).life = Life::Waking;
                hooks.migrate(&self.tasks[&pid], cpu);
                self.task(pid).psi.cpu = cpu;
                if !remote {
                    self.activate(pid, true, hooks);
                }
            }
            Life::Waking => self.activate(pid, true, hooks),
            Life::Runnable => hooks.wakeup(&self.tasks[&pid]),
            Life::New | Life::Dead => {}
        }
    }

    fn activate(&mut self, pid: u32, migrated: bool, hooks: &mut impl Hooks) {
        self.psi_enqueue(pid, migrated);
        let task = self.task(pid);
        task.on_rq = ON_RQ_QUEUED;
        task.life = Life::Runnable;
        hooks.wakeup(&self.tasks[&pid]);
    }

    /// `__schedule`. `next` waits on the CPU, or is none for idle.
    pub(crate) fn switch(&mut self, cpu: usize, leave: Leave, next: Option<u32>, hooks: &mut impl Hooks) {
        let prev = self.current[cpu];
        if prev == next {
            return;
        }
        let mut sleeps = false;
        if let Some(pid) = prev {
            let task = self.task(pid);
            // A task does not end within a memory stall.
            let leave = if leave == Leave::Exits && task.psi.in_memstall {
                Leave::Sleeps
            } else {
                leave
            };
            sleeps = leave != Leave::Preempted;
            if sleeps {
                task.psi.in_iowait = matches!(leave, Leave::Waits | Leave::WaitsDelayed);
                task.life = if leave == Leave::Exits {
                    Life::Dead
                } else {
                    Life::Asleep
                };
                task.sched_delayed = matches!(leave, Leave::SleepsDelayed | Leave::WaitsDelayed);
                task.on_rq = u32::from(task.sched_delayed);
            }
        }
        self.current[cpu] = next;
        let mut out = prev.and_then(|pid| self.tasks.remove(&pid));
        let mut in_ = next.and_then(|pid| self.tasks.remove(&pid));
        self.psi.task_switch(
            cpu,
            out.as_mut().map(|task| &mut task.psi),
            in_.as_mut().map(|task| &mut task.psi),
            sleeps,
            self.now,
        );
        hooks.switch(cpu, out.as_ref(), in_.as_ref());
        // context_switch, finish_task
        if let Some(mut task) = in_ {
            task.on_cpu = true;
            self.tasks.insert(task.pid, task);
        }
        if let Some(mut task) = out {
            task.on_cpu = false;
            if task.life == Life::Dead {
                hooks.freed(&task);
            } else {
                self.tasks.insert(task.pid, task);
            }
        }
    }

    /// `detach_task`, `attach_task`: also for a delayed dequeue.
    fn migrate(&mut self, pid: u32, to: usize, hooks: &mut impl Hooks) {
        if self.tasks[&pid].cpu() == to {
            return;
        }
        self.task(pid).on_rq = ON_RQ_MIGRATING;
        self.psi_change(pid, self.tasks[&pid].psi.flags, 0);
        hooks.migrate(&self.tasks[&pid], to);
        self.task(pid).psi.cpu = to;
        self.psi_enqueue(pid, true);
        self.task(pid).on_rq = ON_RQ_QUEUED;
    }

    fn memstall_enter(&mut self, cpu: usize, reclaim: bool, hooks: &mut impl Hooks) {
        let Some(pid) = self.current[cpu] else { return };
        let depth = self.tasks[&pid].stalls.len() as u64;
        if depth >= self.most_stalls {
            return;
        }
        let task = self.task(pid);
        let stall = Stall {
            address: STACK_TOP - 64 * depth,
            nested: task.psi.in_memstall,
            reclaim,
        };
        task.stalls.push(stall);
        // At the function's entry, then its body.
        hooks.memstall(&self.tasks[&pid], true, stall.address);
        if !stall.nested {
            self.task(pid).psi.in_memstall = true;
            self.psi_change(pid, 0, tsk::MEMSTALL | tsk::MEMSTALL_RUNNING);
        }
        if reclaim {
            hooks.reclaim(&self.tasks[&pid], true);
        }
    }

    fn memstall_leave(&mut self, cpu: usize, hooks: &mut impl Hooks) {
        let Some(pid) = self.current[cpu] else { return };
        let Some(stall) = self.task(pid).stalls.pop() else {
            return;
        };
        if stall.reclaim {
            hooks.reclaim(&self.tasks[&pid], false);
        }
        hooks.memstall(&self.tasks[&pid], false, stall.address);
        if !stall.nested {
            self.task(pid).psi.in_memstall = false;
            self.psi_change(pid, tsk::MEMSTALL | tsk::MEMSTALL_RUNNING, 0);
        }
    }

    /// Each task ends its stalls, has one more, and goes on waiting.
    pub(crate) fn stall_everyone(&mut self, hooks: &mut impl Hooks) {
        self.finish_wakeups(hooks);
        let all: Vec<u32> = self.tasks.keys().copied().collect();
        for pid in all {
            if self.tasks[&pid].life == Life::New {
                self.start(pid, 0, hooks);
            } else if self.tasks[&pid].life == Life::Asleep {
                self.wake(pid, self.tasks[&pid].cpu(), false, hooks);
            }
            let cpu = self.tasks[&pid].cpu();
            self.switch(cpu, Leave::Preempted, Some(pid), hooks);
            while !self.tasks[&pid].stalls.is_empty() {
                self.memstall_leave(cpu, hooks);
            }
            self.memstall_enter(cpu, false, hooks);
            self.memstall_leave(cpu, hooks);
        }
    }

    /// `cgroup_move_task`.
    fn change_group(&mut self, pid: u32, group: usize) {
        let flags = self.tasks[&pid].psi.flags;
        if flags != 0 {
            self.psi_change(pid, flags, 0);
        }
        self.task(pid).psi.group = group;
        if flags != 0 {
            self.psi_change(pid, 0, flags);
        }
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
