//! Scheduler hooks: switch, wakeup, fork, migration; and the check of the running task at interrupts.

use core::ptr;

use aya_ebpf::{
    bindings::task_struct, helpers::generated::bpf_get_current_task_btf, macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use psi_common::{
    account::{Cell as _, Stamp, park, switch},
    layout::{Counter, Cpu},
    word::{Parked, Running, class},
};

use crate::{
    kernel::{self, Object, memstall_source},
    memory::{Maps, count, current_cpu, running, this_cpu},
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
    let prev_pid = task::pid(prev);
    let prev = if prev_pid == 0 { None } else { task::find(prev) };
    let old = start(cpu, this, prev, next);
    if old.is_known() && old.pid() != prev_pid {
        count(Counter::MissedSwitches);
    }
    0
}

/// Puts `next` on `cpu`'s record and parks `prev`, if there is one.
#[inline(always)]
fn start(cpu: u32, this: *mut Cpu, prev: Option<Tracked>, next: Object) -> Running {
    let next_pid = task::pid(next);
    let next = if next_pid == 0 { None } else { task::find(next) };
    let new = next.map_or(Running::new(0, 0, next_pid), |next| {
        Running::new(class::running(next.stalls_running()), next.slot(), next_pid)
    });
    let next_word = next.map(Tracked::parked);
    match prev {
        Some(prev) => {
            let parked = prev.stopped(cpu);
            switch(&Maps, cpu, &running(this), Some((&prev.parked(), parked)), next_word.as_ref(), new)
        }
        None => switch(&Maps, cpu, &running(this), None, next_word.as_ref(), new),
    }
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
    // Fires for tasks that run already (a wakeup that met them before they slept), ...
    if task::on_cpu(p) {
        return 0;
    }
    let Some(p) = task::find(p) else { return 0 };
    // ... and for tasks that wait already.
    if p.parked_now().class() & class::W == 0 {
        park(&Maps, &p.parked(), p.waiting(task::cpu(p.task)), Stamp::UNREAD);
    }
    0
}

/// `sched_migrate_task(p, dest_cpu)`: before the move; at most the source's run queue lock, on any CPU.
#[btf_tracepoint(function = "sched_migrate_task")]
pub(crate) fn sched_migrate_task(ctx: BtfTracePointContext) -> i32 {
    let p: Object = ctx.arg(0);
    let to: u32 = ctx.arg(1);
    let Some(p) = task::find(p) else { return 0 };
    let parked = p.parked_now();
    let new = if parked.class() == 0 {
        // Running (then its CPU knows), or a sleep that nothing is counted for.
        return 0;
    } else if parked.class() & class::W != 0 || task::is_delayed(p.task) {
        Parked::new(parked.class(), to, parked.slot())
    } else {
        // On its way to a wakeup on another CPU: PSI drops its flags here (psi_ttwu_dequeue), the wakeup sets them.
        Parked::NOTHING
    };
    park(&Maps, &p.parked(), new, Stamp::UNREAD);
    0
}

/// `sched_process_fork(parent, child)`: no run queue lock, so the place to create storage.
#[btf_tracepoint(function = "sched_process_fork")]
pub(crate) fn sched_process_fork(ctx: BtfTracePointContext) -> i32 {
    if let Some(child) = task::find_or_create(ctx.arg(1)) {
        child.parked().replace(0, Parked::NOTHING.0);
    }
    0
}

/// Compares the CPU's record with what it runs, at an interrupt, and puts it right.
///
/// Interrupts are off from `sched_switch` until the new task is current, so a difference means a lost event.
#[inline(always)]
pub(crate) fn check_running(cpu: u32, this: *mut Cpu) {
    // SAFETY: the helper has no arguments.
    let current: *const task_struct = unsafe { bpf_get_current_task_btf() };
    let current: Object = current.cast();
    let pid = task::pid(current);
    // SAFETY: a map value.
    let old = Running(unsafe { ptr::read_volatile(&raw const (*this).running) });
    if old.is_known() && old.pid() == pid {
        recheck_memstall(cpu, this, old, current);
        return;
    }
    start(cpu, this, None, current);
    if old.is_known() {
        count(Counter::RepairedRunning);
    }
}

/// Without fentry a running task's stall is only seen at reclaim tracepoints; look at the kernel's bit at the tick.
#[inline(always)]
fn recheck_memstall(cpu: u32, this: *mut Cpu, old: Running, current: Object) {
    if kernel::MEMSTALL_SOURCE.load() != memstall_source::TASK_BIT || old.pid() == 0 {
        return;
    }
    let new = Running::new(class::running(task::in_memstall_bit(current)), old.slot(), old.pid());
    if new != old {
        psi_common::account::rerun(&Maps, cpu, &running(this), old, new);
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

