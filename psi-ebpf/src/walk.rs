//! The walk over all tasks: seeds what no event has told yet, moves what changed its cgroup, audits the rest.

use core::ptr;

use psi_common::{
    account::{park_if, rerun},
    layout::{Counter, MAX_CPUS},
    word::{Parked, Running, class},
};

use crate::{
    kernel::{self, Object, memstall_source},
    maps::SHARED,
    memory::{Maps, count, running, this_cpu},
    task::{self, Tracked},
};

/// The context of a task iterator program (`struct bpf_iter__task`).
#[repr(C)]
pub(crate) struct IterTask {
    meta: u64,
    task: Object,
}

/// Called for each task, and once more at the end with none. Process context, no locks.
#[unsafe(no_mangle)]
#[unsafe(link_section = "iter/task")]
pub(crate) extern "C" fn walk_tasks(ctx: *const IterTask) -> i32 {
    // SAFETY: the context that the kernel passes.
    let object = unsafe { (*ctx).task };
    if object.is_null() {
        return 0;
    }
    let Some(shared) = SHARED.get_ptr_mut(0) else { return 0 };
    // SAFETY: a map value; one walk at a time, by userspace's doing.
    unsafe { (*shared).walked += 1 };
    let Some(tracked) = task::find_or_create(object) else { return 0 };
    // First what is recorded, then what is: an event in between makes the exchange below fail.
    let parked = tracked.parked_now();
    let cpu = task::cpu(object);
    if cpu >= MAX_CPUS {
        return 0;
    }
    if task::on_cpu(object) {
        running_task(tracked, parked, cpu);
    } else {
        parked_task(tracked, parked, cpu);
    }
    0
}

#[inline(always)]
fn running_task(tracked: Tracked, parked: Parked, cpu: u32) {
    seed_memstall(tracked, parked);
    if parked.0 == 0 {
        park_if(&Maps, &tracked.parked(), parked, Parked::ON_CPU);
    }
    let Some(this) = this_cpu(cpu) else { return };
    // SAFETY: a map value.
    let old = Running(unsafe { ptr::read_volatile(&raw const (*this).running) });
    let pid = task::pid(tracked.task);
    // Another pid on record: a switch is under way, or was lost; then the next interrupt puts it right.
    if old.is_known() && old.pid() != pid {
        return;
    }
    if parked.0 != 0 && parked != Parked::ON_CPU {
        suspect(tracked, parked, Parked::ON_CPU);
    }
    let slot = tracked.slot();
    if !old.is_known() || old.slot() != slot {
        rerun(&Maps, cpu, &running(this), old, Running::new(class::running(tracked.stalls_running()), slot, pid));
    }
}

#[inline(always)]
fn parked_task(tracked: Tracked, parked: Parked, cpu: u32) {
    seed_memstall(tracked, parked);
    let expected = tracked.stopped(cpu);
    if parked.0 == 0 {
        park_if(&Maps, &tracked.parked(), parked, expected);
        return;
    }
    if parked == Parked::ON_CPU {
        let on_record = this_cpu(cpu).map_or(0, |this| {
            // SAFETY: a map value.
            Running(unsafe { ptr::read_volatile(&raw const (*this).running) }).pid()
        });
        if on_record != task::pid(tracked.task) {
            suspect(tracked, parked, expected);
        }
        return;
    }
    if parked.class() == expected.class() && parked.cpu() == expected.cpu() && parked.slot() != expected.slot() {
        // The same state in another cgroup: a move.
        park_if(&Maps, &tracked.parked(), parked, expected);
        return;
    }
    if parked.class() == expected.class() && (parked.class() == 0 || parked.cpu() == expected.cpu()) {
        return;
    }
    suspect(tracked, parked, expected);
}

/// A difference may be an event under way: it counts when the next walk sees the very same.
#[inline(always)]
fn suspect(tracked: Tracked, parked: Parked, expected: Parked) {
    // SAFETY: a map value, used by the walk only.
    unsafe {
        let suspect = &raw mut (*tracked.storage).suspect;
        if ptr::read_volatile(suspect) != parked.0 {
            ptr::write_volatile(suspect, parked.0);
            return;
        }
        ptr::write_volatile(suspect, 0);
    }
    if park_if(&Maps, &tracked.parked(), parked, expected) {
        count(Counter::RepairedTasks);
    }
}

/// A task that was in a stall when the tracer came: the kernel's bit says so, where it keeps one. The address is
/// below any stack's, so the stall's leave ends it.
#[inline(always)]
fn seed_memstall(tracked: Tracked, parked: Parked) {
    if parked.0 == 0
        && kernel::MEMSTALL_SOURCE.load() == memstall_source::FENTRY
        && task::in_memstall_bit(tracked.task)
    {
        // SAFETY: a map value. A benign race with the task's own leave: its next stall heals it.
        unsafe { ptr::write_volatile(&raw mut (*tracked.storage).memstall, 1) };
    }
}
