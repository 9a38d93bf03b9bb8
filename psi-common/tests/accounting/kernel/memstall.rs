//! Memory stalls: `psi_memstall_enter` and `psi_memstall_leave`.

use super::{Hooks, Kernel, Leave, Life, task::Stall};
use crate::psi::tsk;

const STACK_TOP: u64 = 0xffff_c900_0000_8000;

impl Kernel {
    pub(super) fn memstall_enter(&mut self, cpu: usize, reclaim: bool, hooks: &mut impl Hooks) {
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

    pub(super) fn memstall_leave(&mut self, cpu: usize, hooks: &mut impl Hooks) {
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
}
