//! What each scheduler event means for the accounting, generic over the task it happens to.
//!
//! Every event sets a state, none toggles one: an event that was lost heals with the task's next.

use crate::account::{Cell, Records, Stamp, park, park_if, rerun, switch};
use crate::layout::Counter;
use crate::word::{Parked, Running, class};

/// A task and what is kept about it.
pub trait Task: Copy {
    /// The word of what it contributes while it does not run.
    type Cell: Cell;

    /// Its pid; 0 for an idle task.
    fn pid(self) -> u32;
    /// The CPU whose run queue it is on, or was on last.
    fn cpu(self) -> u32;
    /// Whether a CPU runs it.
    fn on_cpu(self) -> bool;
    /// Whether it sleeps, as PSI sees it; meaningful while it does not run.
    fn is_asleep(self) -> bool;
    /// Whether it sleeps but is still queued (delayed dequeue).
    fn is_delayed(self) -> bool;
    /// Whether its sleep is an IO wait.
    fn in_iowait(self) -> bool;
    /// Whether it is in a memory stall while it does not run.
    fn stalls_parked(self) -> bool;
    /// Whether it is in a memory stall while it runs.
    fn stalls_running(self) -> bool;
    /// The slot of its cgroup.
    fn slot(self) -> u32;
    /// The word of what it contributes while it does not run.
    fn parked(self) -> Self::Cell;
    /// What that word is.
    fn parked_now(self) -> Parked;
    /// Whether the last walk disagreed with this same word; remembers it for the next walk.
    fn is_suspect(self, parked: Parked) -> bool;
}

/// What a task contributes on `cpu` once it has stopped running there.
#[inline(always)]
fn stopped<T: Task>(task: T, cpu: u32) -> Parked {
    let class = if task.is_asleep() {
        class::sleeping(task.in_iowait(), task.stalls_parked())
    } else {
        class::waiting(task.stalls_parked())
    };
    Parked::new(class, cpu, task.slot())
}

/// What a task contributes while it runs.
#[inline(always)]
fn started<T: Task>(task: T) -> Running {
    Running::new(class::running(task.stalls_running()), task.slot(), task.pid())
}

/// `sched_switch` on `cpu`, of what ran and of what runs next: the task, none for an idle one and one that nothing can be kept
/// about, and its pid. `stamp` is the event's, read or not. Returns the pid of the task that was on record instead of the
/// one that ran, see [`left_behind`].
#[inline(always)]
pub fn switched<R, C, T>(
    records: &R,
    cpu: u32,
    running: C,
    (prev, prev_pid): (Option<T>, u32),
    next: (Option<T>, u32),
    stamp: Stamp,
) -> Option<u32>
where
    R: Records,
    C: Cell,
    T: Task<Cell = C>,
{
    let old = put_on_cpu(records, cpu, running, prev, next, stamp);
    if !old.is_known() || old.pid() == prev_pid {
        return None;
    }
    records.count(Counter::MissedSwitches);
    // What runs next is not left behind; that it is on the CPU the kernel notes only after this.
    (old.pid() != next.1).then_some(old.pid())
}

/// A CPU turned out to run another task than `task`, which was on record: its last switch was lost, so what it does
/// since is not known.
#[inline(always)]
pub fn left_behind<R: Records, T: Task>(records: &R, task: T) {
    // Or it runs elsewhere, and that CPU knows. A benign race with its switch there: its next one puts it right.
    if task.parked_now() == Parked::ON_CPU && !task.on_cpu() {
        park_if(records, task.parked(), Parked::ON_CPU, stopped(task, task.cpu()));
    }
}

#[inline(always)]
fn put_on_cpu<R, C, T>(
    records: &R,
    cpu: u32,
    running: C,
    prev: Option<T>,
    (next, next_pid): (Option<T>, u32),
    stamp: Stamp,
) -> Running
where
    R: Records,
    C: Cell,
    T: Task<Cell = C>,
{
    let new = next.map_or(Running::new(0, 0, next_pid), started);
    let parked = prev.map_or(Parked::NOTHING, |prev| stopped(prev, cpu));
    switch(
        records,
        cpu,
        running,
        (prev.map(Task::parked), parked),
        (next.map(Task::parked), new),
        stamp,
    )
}

/// `sched_wakeup` and `sched_wakeup_new`, for a task that does not run: the hook tells those apart first. `stamp` is
/// the event's, read or not.
#[inline(always)]
pub fn woken<R: Records, T: Task>(records: &R, task: T, stamp: Stamp) {
    // Fires for tasks that wait already, too.
    if task.parked_now().class() & class::W == 0 {
        let waiting = Parked::new(class::waiting(task.stalls_parked()), task.cpu(), task.slot());
        park(records, task.parked(), waiting, stamp);
    }
}

/// `sched_migrate_task`: before the move.
#[inline(always)]
pub fn migrated<R: Records, T: Task>(records: &R, task: T, to: u32) {
    let parked = task.parked_now();
    if parked.class() == 0 {
        // Running (then its CPU knows), or a sleep that nothing is counted for.
        return;
    }
    let new = if parked.class() & class::W != 0 || task.is_delayed() {
        Parked::new(parked.class(), to, parked.slot())
    } else {
        // On its way to a wakeup on another CPU: PSI drops its flags here (psi_ttwu_dequeue), the wakeup sets them.
        Parked::NOTHING
    };
    park(records, task.parked(), new, Stamp::UNREAD);
}

/// `sched_process_fork`: the child has not been woken yet, so whatever is on record is left from another task.
#[inline(always)]
pub fn forked<R: Records, T: Task>(records: &R, child: T) {
    park(records, child.parked(), Parked::NOTHING, Stamp::UNREAD);
}

/// `sched_process_free`: after the task's last switch. Only lost events leave something of it to take back, and no
/// walk would find it.
#[inline(always)]
pub fn freed<R: Records, T: Task>(records: &R, task: T) {
    if task.parked_now().class() != 0 {
        park(records, task.parked(), Parked::NOTHING, Stamp::UNREAD);
        records.count(Counter::RepairedRunning);
    }
}

/// Compares a CPU's record, `old`, with the task that it runs, and puts it right. `current` is none as in
/// [`switched`]. Only where no switch can be under way on the CPU: in an interrupt.
///
/// Says whether the record was right.
#[inline(always)]
pub fn check_running<R, C, T>(
    records: &R,
    cpu: u32,
    running: C,
    old: Running,
    current: impl FnOnce() -> Option<T>,
    pid: u32,
) -> bool
where
    R: Records,
    C: Cell,
    T: Task<Cell = C>,
{
    if old.is_known() && old.pid() == pid {
        return true;
    }
    put_on_cpu(records, cpu, running, None, (current(), pid), Stamp::UNREAD);
    if old.is_known() {
        records.count(Counter::RepairedRunning);
    }
    false
}

/// `cpu` has gone offline: nothing told of its last switch, for tracepoints are silent on a CPU that is not online.
/// From another CPU, once it is dead. The task that took it down stopped there.
#[inline(always)]
pub fn cpu_gone<R, C>(records: &R, cpu: u32, running: C, old: Running)
where
    R: Records,
    C: Cell,
{
    rerun(records, cpu, running, old, Running::new(0, 0, 0));
}

/// The running task entered or left a memory stall. A switch in between has told the CPU's record already, since it
/// looks at the same task.
#[inline(always)]
pub fn stall_changed<R, C, T>(records: &R, cpu: u32, running: C, old: Running, current: T)
where
    R: Records,
    C: Cell,
    T: Task<Cell = C>,
{
    if old.pid() != current.pid() || old.class() == 0 {
        return;
    }
    let new = Running::new(class::running(current.stalls_running()), old.slot(), old.pid());
    if new != old {
        rerun(records, cpu, running, old, new);
    }
}

/// The walk over all tasks at one task: seeds what no event has told yet, moves what changed its cgroup, repairs what
/// two walks in a row found wrong. `parked` must have been read before anything else of the task: an event since
/// then makes the exchange fail.
///
/// `cpu` is the task's, read once and after `parked`; `running` is that CPU's word and `on_record` its value.
#[inline(always)]
pub fn walked<R, C, T>(records: &R, cpu: u32, running: C, on_record: Running, task: T, parked: Parked)
where
    R: Records,
    C: Cell,
    T: Task<Cell = C>,
{
    if task.on_cpu() {
        // It may have left `cpu` meanwhile, and run elsewhere.
        if task.cpu() == cpu {
            walked_running(records, cpu, running, on_record, task, parked);
        }
    } else {
        walked_parked(records, cpu, on_record, task, parked);
    }
}

#[inline(always)]
fn walked_running<R, C, T>(records: &R, cpu: u32, running: C, on_record: Running, task: T, parked: Parked)
where
    R: Records,
    C: Cell,
    T: Task<Cell = C>,
{
    if parked.0 == 0 {
        park_if(records, task.parked(), parked, Parked::ON_CPU);
    }
    // Another pid on record: a switch is under way, or was lost; then the next interrupt puts it right.
    if on_record.is_known() && on_record.pid() != task.pid() {
        return;
    }
    if parked == Parked::ON_CPU {
        trust(task);
    } else if parked.0 != 0 {
        repair(records, task, parked, Parked::ON_CPU);
    }
    let new = started(task);
    if on_record != new {
        rerun(records, cpu, running, on_record, new);
    }
}

#[inline(always)]
fn walked_parked<R: Records, T: Task>(records: &R, cpu: u32, on_record: Running, task: T, parked: Parked) {
    let expected = stopped(task, cpu);
    if parked.0 == 0 {
        park_if(records, task.parked(), parked, expected);
        return;
    }
    if parked == Parked::ON_CPU {
        // On record as running but not on the CPU yet: its switch is under way.
        if on_record.pid() != task.pid() {
            repair(records, task, parked, expected);
        }
        return;
    }
    if parked.class() == expected.class() {
        if parked.class() == 0 || parked == expected {
            trust(task);
            return;
        }
        if parked.cpu() == expected.cpu() {
            // The same state in another cgroup: a move, and no fault.
            trust(task);
            park_if(records, task.parked(), parked, expected);
            return;
        }
    }
    repair(records, task, parked, expected);
}

/// Forgets what an earlier walk disagreed with: no walk disagrees with "unknown".
#[inline(always)]
fn trust<T: Task>(task: T) {
    task.is_suspect(Parked(0));
}

/// A difference may be an event under way: it counts when the next walk sees the very same.
#[inline(always)]
fn repair<R: Records, T: Task>(records: &R, task: T, parked: Parked, expected: Parked) {
    if task.is_suspect(parked) && park_if(records, task.parked(), parked, expected) {
        records.count(Counter::RepairedTasks);
    }
}
