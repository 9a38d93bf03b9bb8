//! One task: its storage, its cgroup's slot, what it contributes.

use core::ptr;

use aya_ebpf::{
    bindings::{BPF_LOCAL_STORAGE_GET_F_CREATE, task_struct},
    helpers::generated::bpf_task_storage_get,
};
use psi_common::{
    layout::{Counter, Task},
    word::{Parked, class},
};

use crate::{
    cgroup,
    kernel::{self, Object, bit, member, memstall_source},
    maps::TASKS,
    memory::{Word, count},
};

/// A task and what is kept about it.
#[derive(Clone, Copy)]
pub(crate) struct Tracked {
    /// The kernel's task_struct.
    pub(crate) task: Object,
    /// Its storage.
    pub(crate) storage: *mut Task,
}

/// Looks a task up, from any event.
///
/// Where the kernel's storage allocator works under any lock (since 6.4) a task that has no storage gets it here:
/// some tasks are seen by neither fork nor the walk. Elsewhere it is created at fork and in the walk only.
#[inline(always)]
pub(crate) fn find(task: Object) -> Option<Tracked> {
    get(task, kernel::TASK_STORAGE_FLAGS.load().into())
}

/// As [`find`], from where storage can always be created.
#[inline(always)]
pub(crate) fn find_or_create(task: Object) -> Option<Tracked> {
    get(task, BPF_LOCAL_STORAGE_GET_F_CREATE.into())
}

#[inline(always)]
fn get(task: Object, flags: u64) -> Option<Tracked> {
    // SAFETY: the verifier checks that `task` is a task it knows.
    let storage = unsafe {
        bpf_task_storage_get(
            (&raw const TASKS).cast_mut().cast(),
            task.cast_mut().cast::<task_struct>(),
            ptr::null_mut(),
            flags,
        )
    }
    .cast::<Task>();
    if storage.is_null() {
        count(Counter::StorageFailures);
        return None;
    }
    Some(Tracked { task, storage })
}

/// The pid of a task; 0 for an idle task.
#[inline(always)]
pub(crate) fn pid(task: Object) -> u32 {
    // SAFETY: a task.
    unsafe { member(task, &kernel::TASK_PID) }
}

/// The CPU whose run queue a task is on, or was on last.
#[inline(always)]
pub(crate) fn cpu(task: Object) -> u32 {
    // SAFETY: a task.
    unsafe { member(task, &kernel::TASK_CPU) }
}

/// Whether a CPU runs it.
#[inline(always)]
pub(crate) fn on_cpu(task: Object) -> bool {
    // SAFETY: a task.
    unsafe { member::<u32>(task, &kernel::TASK_ON_CPU) != 0 }
}

/// Whether a task is asleep but still queued (delayed dequeue, since 6.12).
#[inline(always)]
pub(crate) fn is_delayed(task: Object) -> bool {
    if kernel::TASK_SCHED_DELAYED.load() == kernel::ABSENT {
        return false;
    }
    // SAFETY: a task, on a kernel with the member.
    unsafe { member::<u8>(task, &kernel::TASK_SCHED_DELAYED) != 0 }
}

/// Whether a task that does not run is asleep: PSI's own test (kernel/sched/stats.h, psi_sched_switch's caller).
/// The tracepoint's `prev_state` is no substitute: signals and delayed dequeue make it wrong.
#[inline(always)]
pub(crate) fn is_asleep(task: Object) -> bool {
    const TASK_ON_RQ_QUEUED: u32 = 1;
    // SAFETY: a task.
    let on_rq: u32 = unsafe { member(task, &kernel::TASK_ON_RQ) };
    on_rq != TASK_ON_RQ_QUEUED || is_delayed(task)
}

#[inline(always)]
fn in_iowait(task: Object) -> bool {
    // SAFETY: a task.
    unsafe { bit(task, &kernel::TASK_IN_IOWAIT, &kernel::TASK_IN_IOWAIT_MASK) }
}

/// The kernel's own memory stall bit; false where there is none.
#[inline(always)]
pub(crate) fn in_memstall_bit(task: Object) -> bool {
    if kernel::TASK_IN_MEMSTALL.load() == kernel::ABSENT {
        return false;
    }
    // SAFETY: a task, on a kernel with the member.
    unsafe { bit(task, &kernel::TASK_IN_MEMSTALL, &kernel::TASK_IN_MEMSTALL_MASK) }
}

impl Tracked {
    /// The word of what it contributes while parked.
    #[inline(always)]
    pub(crate) fn parked(self) -> Word {
        // SAFETY: only the address is taken.
        Word(unsafe { &raw mut (*self.storage).parked })
    }

    /// The current value of [`Self::parked`].
    #[inline(always)]
    pub(crate) fn parked_now(self) -> Parked {
        // SAFETY: a map value.
        Parked(unsafe { ptr::read_volatile(&raw const (*self.storage).parked) })
    }

    /// The slot that it is charged to.
    #[inline(always)]
    pub(crate) fn slot(self) -> u32 {
        cgroup::slot_of(self.task, self.storage)
    }

    #[inline(always)]
    fn in_reclaim(self) -> bool {
        // SAFETY: a map value.
        unsafe { ptr::read_volatile(&raw const (*self.storage).in_reclaim) != 0 }
    }

    /// Whether it is in a memory stall while it does not run.
    #[inline(always)]
    pub(crate) fn stalls_parked(self) -> bool {
        match kernel::MEMSTALL_SOURCE.load() {
            // SAFETY: a map value.
            memstall_source::FENTRY => unsafe { ptr::read_volatile(&raw const (*self.storage).memstall) != 0 },
            memstall_source::TASK_BIT => in_memstall_bit(self.task),
            _ => self.in_reclaim(),
        }
    }

    /// Whether it is in a memory stall while it runs. Nothing tells when the kernel's bit is cleared, and most
    /// stalls that sleep end right after the wakeup: so without fentry the bit counts only inside of a reclaim.
    #[inline(always)]
    pub(crate) fn stalls_running(self) -> bool {
        match kernel::MEMSTALL_SOURCE.load() {
            // SAFETY: a map value.
            memstall_source::FENTRY => unsafe { ptr::read_volatile(&raw const (*self.storage).memstall) != 0 },
            memstall_source::TASK_BIT => self.in_reclaim() && in_memstall_bit(self.task),
            _ => self.in_reclaim(),
        }
    }

    /// What it contributes on `cpu` once it has stopped running there.
    #[inline(always)]
    pub(crate) fn stopped(self, cpu: u32) -> Parked {
        let class = if is_asleep(self.task) {
            class::sleeping(in_iowait(self.task), self.stalls_parked())
        } else {
            class::waiting(self.stalls_parked())
        };
        Parked::new(class, cpu, self.slot())
    }

    /// What it contributes while it waits on `cpu`.
    #[inline(always)]
    pub(crate) fn waiting(self, cpu: u32) -> Parked {
        Parked::new(class::waiting(self.stalls_parked()), cpu, self.slot())
    }
}
