//! What can happen to the simulated machine.

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
