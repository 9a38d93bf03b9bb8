//! A task of the simulated machine.

use crate::psi::Flagged;

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
pub(super) const ON_RQ_MIGRATING: u32 = 2;

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
    pub(super) stalls: Vec<Stall>,
    /// Whether the last walk saw it on its way to another CPU. No two walks in a row do: for a task that wakes often it
    /// could happen, and the tracer would repair what is right, until the wakeup arrives.
    pub(super) walked_waking: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Stall {
    /// Stack address of its flags word.
    pub(super) address: u64,
    /// Whether it is within another: what the kernel keeps in the flags word.
    pub(super) nested: bool,
    /// Whether it comes from a reclaim that has a tracepoint.
    pub(super) reclaim: bool,
}

impl Task {
    pub(crate) const fn cpu(&self) -> usize {
        self.psi.cpu
    }

    pub(super) fn waits(&self) -> bool {
        self.life == Life::Runnable && !self.on_cpu
    }
}
