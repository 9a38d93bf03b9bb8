//! Scheduler hooks: switch, wakeup, fork, migration; and the check of the running task at interrupts.

use core::ptr;

use aya_ebpf::{
    bindings::task_struct, helpers::generated::bpf_get_current_task_btf, macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use psi_common::{
    account::{Records as _, Stamp, rerun},
    event,
    layout::Cpu,
    queue_clock::QueueClock,
    word::{Running, class},
};

use crate::{
    kernel::{self, Object, memstall_source},
    left::left_behind,
    memory::{Maps, current_cpu, on_record, quick_time, running, this_cpu},
    task::{self, Tracked},
};

/// `sched_switch(preempt, prev, next, prev_state)`: this CPU's run queue lock, interrupts off.
#[btf_tracepoint(function = "sched_switch")]
pub(crate) fn sched_switch(ctx: BtfTracePointContext) -> i32 {
    let (prev, next): (Object, Object) = (ctx.arg(1), ctx.arg(2));
    let cpu = current_cpu();
    let Some(this) = this_cpu(cpu) else { return 0 };
    if dropped_for_a_test(this) {
        return 0;
    }
    let (prev_pid, next_pid) = (task::pid(prev), task::pid(next));
    // These flip a state, so the clock is read now and not after the look-ups, which take longer than some waits differ.
    let stamp = if prev_pid == 0 || task::in_iowait(prev) {
        Stamp::at(Maps.now(QueueClock::UNKNOWN))
    } else {
        Stamp::UNREAD
    };
    let missed = event::switched(
        &Maps,
        cpu,
        running(this),
        (unless_idle(prev, prev_pid), prev_pid),
        (unless_idle(next, next_pid), next_pid),
        stamp,
    );
    if let Some(pid) = missed {
        left_behind(pid);
    }
    0
}

#[inline(always)]
fn unless_idle(task: Object, pid: u32) -> Option<Tracked> {
    if pid == 0 { None } else { task::find(task, pid) }
}

/// `sched_wakeup(p)`: at most the target's run queue lock, on any CPU.
#[btf_tracepoint(function = "sched_wakeup")]
pub(crate) fn sched_wakeup(ctx: BtfTracePointContext) -> i32 {
    wake(ctx.arg(0))
}

/// `sched_wakeup_new(p)`: the target's run queue lock, on the parent's CPU.
#[btf_tracepoint(function = "sched_wakeup_new")]
pub(crate) fn sched_wakeup_new(ctx: BtfTracePointContext) -> i32 {
    wake(ctx.arg(0))
}

#[inline(always)]
fn wake(p: Object) -> i32 {
    // Fires for tasks that run already: a wakeup that met them before they slept.
    if task::on_cpu(p) {
        return 0;
    }
    let clock = task::queue_clock(p);
    let stamp = match quick_time(clock) {
        Some(time) => Stamp::at(time),
        None if task::in_iowait(p) => Stamp::at(Maps.now(clock)),
        None => Stamp::unread(clock),
    };
    if let Some(p) = task::find(p, task::pid(p)) {
        event::woken(&Maps, p, stamp);
    }
    0
}

/// `sched_migrate_task(p, dest_cpu)`: before the move; at most the source's run queue lock, on any CPU.
#[btf_tracepoint(function = "sched_migrate_task")]
pub(crate) fn sched_migrate_task(ctx: BtfTracePointContext) -> i32 {
    let p: Object = ctx.arg(0);
    if let Some(p) = task::find(p, task::pid(p)) {
        event::migrated(&Maps, p, ctx.arg(1));
    }
    0
}

/// `sched_process_fork(parent, child)`: no run queue lock, so storage can be created.
#[btf_tracepoint(function = "sched_process_fork")]
pub(crate) fn sched_process_fork(ctx: BtfTracePointContext) -> i32 {
    let child: Object = ctx.arg(1);
    if let Some(child) = task::find_or_create(child, task::pid(child)) {
        event::forked(&Maps, child);
    }
    0
}

/// `sched_process_free(p)`: after its last switch and its parent's wait, and a grace period; any context.
#[btf_tracepoint(function = "sched_process_free")]
pub(crate) fn sched_process_free(ctx: BtfTracePointContext) -> i32 {
    let p: Object = ctx.arg(0);
    if let Some(p) = task::find_existing(p, task::pid(p)) {
        event::freed(&Maps, p);
        p.release();
    }
    0
}

/// `tick_stop(success, dependency)`: an idle CPU that will have no tick before its next task, interrupts off.
///
/// Without this a lost switch to the idle task would stay until that task comes, and the CPU, which is then taken
/// for busy, would weigh in at every total of its cgroups.
#[btf_tracepoint(function = "tick_stop")]
pub(crate) fn tick_stop(_ctx: BtfTracePointContext) -> i32 {
    let cpu = current_cpu();
    if let Some(this) = this_cpu(cpu) {
        check_running(cpu, this);
    }
    0
}

/// `cpuhp_exit(cpu, state, step, error)`: a step of a CPU's coming or going is done, on any CPU.
#[btf_tracepoint(function = "cpuhp_exit")]
pub(crate) fn cpuhp_exit(ctx: BtfTracePointContext) -> i32 {
    let (cpu, step): (u32, u32) = (ctx.arg(0), ctx.arg(2));
    if step == kernel::CPUHP_TEARDOWN_CPU.load()
        && let Some(gone) = this_cpu(cpu)
    {
        event::cpu_gone(&Maps, cpu, running(gone), on_record(gone));
    }
    0
}

/// Compares the CPU's record with what it runs, where interrupts are off, and puts it right.
///
/// Interrupts are off from `sched_switch` until the new task is current, so a difference means a lost event.
#[inline(always)]
pub(crate) fn check_running(cpu: u32, this: *mut Cpu) {
    // SAFETY: the helper has no arguments.
    let current: *const task_struct = unsafe { bpf_get_current_task_btf() };
    let current: Object = current.cast();
    let pid = task::pid(current);
    let old = on_record(this);
    let right = event::check_running(&Maps, cpu, running(this), old, || unless_idle(current, pid), pid);
    if !right {
        left_behind(old.pid());
    }
    if right && kernel::MEMSTALL_SOURCE.load() == memstall_source::TASK_BIT && old.class() != 0 {
        // Without fentry a running task's stall shows at reclaim tracepoints only, and here.
        let new = Running::new(class::running(task::in_memstall_bit(current)), old.slot(), pid);
        if new != old {
            rerun(&Maps, cpu, running(this), old, new);
        }
    }
}

#[inline(always)]
fn dropped_for_a_test(this: *mut Cpu) -> bool {
    let every = kernel::DROP_SWITCHES.load();
    if every == 0 {
        return false;
    }
    // SAFETY: a map value, used by this program on this CPU only.
    unsafe {
        let seen = &raw mut (*this).reserved;
        let count = ptr::read_volatile(seen).wrapping_add(1);
        ptr::write_volatile(seen, count);
        count % every == 0
    }
}
