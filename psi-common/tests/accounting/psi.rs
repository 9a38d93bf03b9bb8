//! The kernel's PSI as a plain model: counts per group and CPU, every ancestor walked on every change.
//!
//! Written from the kernel's rules (kernel/sched/psi.c: `psi_group_change`, `psi_task_change`, `psi_task_switch`),
//! not from the tracer.

use std::rc::Rc;

use psi_common::layout::State;

/// A task's PSI flags.
pub(crate) mod tsk {
    pub(crate) const IOWAIT: u32 = 1;
    pub(crate) const MEMSTALL: u32 = 1 << 1;
    pub(crate) const RUNNING: u32 = 1 << 2;
    pub(crate) const MEMSTALL_RUNNING: u32 = 1 << 3;
    pub(crate) const ONCPU: u32 = 1 << 4;
}

/// The states with a time that the model keeps, all but interrupt time.
pub(crate) const STATES: [State; 7] = [
    State::CpuSome,
    State::CpuFull,
    State::Nonidle,
    State::IoSome,
    State::IoFull,
    State::MemSome,
    State::MemFull,
];

/// What PSI sees of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flagged {
    pub(crate) flags: u32,
    pub(crate) group: usize,
    pub(crate) cpu: usize,
    pub(crate) in_memstall: bool,
    pub(crate) in_iowait: bool,
}

/// `struct psi_group_cpu`.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupCpu {
    pub(crate) iowait: u32,
    pub(crate) memstall: u32,
    pub(crate) running: u32,
    pub(crate) memstall_running: u32,
    pub(crate) oncpu: bool,
    /// Whether the CPU's current task, which this group has, is in a memory stall.
    pub(crate) reclaiming: bool,
    active: [bool; 7],
    start: u64,
    times: [u64; 7],
}

impl GroupCpu {
    /// ns spent in `STATES[state]` up to `now`.
    pub(crate) fn total_at(&self, state: usize, now: u64) -> u64 {
        self.times[state] + if self.active[state] { now - self.start } else { 0 }
    }

    /// `test_states`.
    fn test_states(&self) -> [bool; 7] {
        let memory_full = self.memstall > 0 && self.running == self.memstall_running;
        [
            self.running > u32::from(self.oncpu),
            self.running > 0 && !self.oncpu,
            self.iowait > 0 || self.memstall > 0 || self.running > 0,
            self.iowait > 0,
            self.iowait > 0 && self.running == 0,
            self.memstall > 0,
            memory_full || self.oncpu && self.reclaiming,
        ]
    }
}

/// Tasks that only stand there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standing {
    pub(crate) waiting: u32,
    /// Asleep in iowait.
    pub(crate) iowait: u32,
    /// Asleep in a memory stall.
    pub(crate) memstall: u32,
}

/// All groups of all CPUs.
#[derive(Clone, Debug)]
pub(crate) struct Psi {
    /// Parent of each group; group 0 is the root.
    parents: Rc<[Option<usize>]>,
    /// By group, then CPU.
    groups: Vec<Vec<GroupCpu>>,
}

impl Psi {
    pub(crate) fn new(parents: &[Option<usize>], cpus: usize) -> Self {
        Self {
            parents: parents.into(),
            groups: vec![vec![GroupCpu::default(); cpus]; parents.len()],
        }
    }

    pub(crate) fn get(&self, group: usize, cpu: usize) -> &GroupCpu {
        &self.groups[group][cpu]
    }

    /// `group` and its ancestors.
    pub(crate) fn path(&self, group: usize) -> impl Iterator<Item = usize> + use<> {
        let parents = Rc::clone(&self.parents);
        std::iter::successors(Some(group), move |&group| parents[group])
    }

    /// `psi_group_change`. `current_stalls`: the CPU's current task is in a memory stall.
    fn group_change(&mut self, group: usize, cpu: usize, clear: u32, set: u32, now: u64, current_stalls: bool) {
        let this = &mut self.groups[group][cpu];
        for (time, active) in this.times.iter_mut().zip(this.active) {
            *time += if active { now - this.start } else { 0 };
        }
        this.start = now;
        for (flag, count) in [
            (tsk::IOWAIT, &mut this.iowait),
            (tsk::MEMSTALL, &mut this.memstall),
            (tsk::RUNNING, &mut this.running),
            (tsk::MEMSTALL_RUNNING, &mut this.memstall_running),
        ] {
            *count = *count + u32::from(set & flag != 0) - u32::from(clear & flag != 0);
        }
        this.oncpu = (this.oncpu && clear & tsk::ONCPU == 0) || set & tsk::ONCPU != 0;
        this.reclaiming = current_stalls;
        this.active = this.test_states();
    }

    /// Adds tasks that stay as they are.
    pub(crate) fn stand(&mut self, group: usize, cpu: usize, standing: Standing, now: u64) {
        for group in self.path(group) {
            let this = &mut self.groups[group][cpu];
            this.running += standing.waiting;
            this.iowait += standing.iowait;
            this.memstall += standing.memstall;
            self.group_change(group, cpu, 0, 0, now, false);
        }
    }

    /// `psi_task_change`.
    pub(crate) fn task_change(&mut self, task: &mut Flagged, clear: u32, set: u32, now: u64, current_stalls: bool) {
        change_flags(task, clear, set);
        for group in self.path(task.group) {
            self.group_change(group, task.cpu, clear, set, now, current_stalls);
        }
    }

    /// `psi_task_switch`. None is the idle task.
    pub(crate) fn task_switch(
        &mut self,
        cpu: usize,
        prev: Option<&mut Flagged>,
        mut next: Option<&mut Flagged>,
        sleeps: bool,
        now: u64,
    ) {
        let current_stalls = next.as_ref().is_some_and(|next| next.in_memstall);
        let mut common = None;
        if let Some(next) = &mut next {
            change_flags(next, 0, tsk::ONCPU);
            for group in self.path(next.group) {
                if self.groups[group][cpu].oncpu {
                    common = Some(group);
                    break;
                }
                self.group_change(group, cpu, 0, tsk::ONCPU, now, current_stalls);
            }
        }
        let Some(prev) = prev else { return };
        let (mut clear, mut set) = (tsk::ONCPU, 0);
        if sleeps {
            clear |= tsk::RUNNING;
            clear |= if prev.in_memstall { tsk::MEMSTALL_RUNNING } else { 0 };
            set |= if prev.in_iowait { tsk::IOWAIT } else { 0 };
        }
        change_flags(prev, clear, set);
        let next_flags = next.map_or(0, |next| next.flags);
        let differ = (prev.flags ^ next_flags) & !tsk::ONCPU != 0;
        let mut above = false;
        for group in self.path(prev.group) {
            if Some(group) == common {
                above = true;
                clear &= !tsk::ONCPU;
            }
            if !above || differ {
                self.group_change(group, cpu, clear, set, now, current_stalls);
            }
        }
    }
}

fn change_flags(task: &mut Flagged, clear: u32, set: u32) {
    // The kernel's own check ("psi: inconsistent task state!").
    assert!(
        task.flags & set == 0 && task.flags & clear == clear,
        "the simulated scheduler is wrong: {task:?} clear {clear:x} set {set:x}"
    );
    task.flags = task.flags & !clear | set;
}
