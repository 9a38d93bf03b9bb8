//! The scheduler: what it does to tasks, and where it changes PSI and calls the hooks.

use super::{Hooks, Kernel, Leave, Life, ON_RQ_QUEUED, Task, task::ON_RQ_MIGRATING};
use crate::psi::{Flagged, tsk};

const MOST_TASKS: usize = 30;

impl Kernel {
    pub(crate) fn current_stalls(&self, cpu: usize) -> bool {
        self.current[cpu].is_some_and(|pid| self.tasks[&pid].psi.in_memstall)
    }

    /// `psi_task_change` at the task's CPU.
    pub(super) fn psi_change(&mut self, pid: u32, clear: u32, set: u32) {
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
    pub(super) fn wake(&mut self, pid: u32, cpu: usize, remote: bool, hooks: &mut impl Hooks) {
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
    pub(super) fn migrate(&mut self, pid: u32, to: usize, hooks: &mut impl Hooks) {
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

    /// `cgroup_move_task`.
    pub(super) fn change_group(&mut self, pid: u32, group: usize) {
        let flags = self.tasks[&pid].psi.flags;
        if flags != 0 {
            self.psi_change(pid, flags, 0);
        }
        self.task(pid).psi.group = group;
        if flags != 0 {
            self.psi_change(pid, 0, flags);
        }
    }
}
