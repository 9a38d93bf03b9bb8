//! The walk over all tasks: seeds what no event has told yet, moves what changed its cgroup, audits the rest.

use psi_common::{event, event::Task as _, layout::MAX_CPUS};

use crate::{
    kernel::{self, Object, memstall_source},
    maps::SHARED,
    memory::{Maps, on_record, running, this_cpu},
    task,
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
    let Some(tracked) = task::find_or_create(object, task::pid(object)) else {
        return 0;
    };
    if kernel::UNTRACKED_IDS.load() != 0 {
        // Its cgroup may have got a slot of its own since the look-up.
        tracked.forget_slot();
    }
    let parked = tracked.parked_now();
    let cpu = tracked.cpu();
    if cpu >= MAX_CPUS {
        return 0;
    }
    if parked.0 == 0
        && kernel::MEMSTALL_SOURCE.load() == memstall_source::FENTRY
        && task::in_memstall_bit(object)
        && tracked.memstall() == 0
    {
        // In a stall since before the tracer came. The address is below any stack's, so its leave ends it. A benign
        // race with that leave: the task's next stall heals it.
        tracked.set_memstall(1);
    }
    if let Some(this) = this_cpu(cpu) {
        event::walked(&Maps, cpu, running(this), on_record(this), tracked, parked);
    }
    0
}
