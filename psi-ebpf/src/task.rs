//! One task: its storage, its cgroup's slot, what it contributes.

use core::ptr;

use aya_ebpf::{
    bindings::{BPF_LOCAL_STORAGE_GET_F_CREATE, task_struct},
    helpers::generated::bpf_task_storage_get,
};
use psi_common::{
    event,
    layout::{Counter, Task},
    word::Parked,
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

/// Whether a CPU runs it.
#[inline(always)]
pub(crate) fn on_cpu(task: Object) -> bool {
    // SAFETY: a task.
    unsafe { member::<u32>(task, &kernel::TASK_ON_CPU) != 0 }
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
    /// Stack address of the outermost memory stall's flags word, 0 outside of a stall.
    #[inline(always)]
    pub(crate) fn memstall(self) -> u64 {
        // SAFETY: a map value.
        unsafe { ptr::read_volatile(&raw const (*self.storage).memstall) }
    }

    /// Changed by the task itself only, and by the walk that seeds it.
    #[inline(always)]
    pub(crate) fn set_memstall(self, flags: u64) {
        // SAFETY: a map value.
        unsafe { ptr::write_volatile(&raw mut (*self.storage).memstall, flags) };
    }

    #[inline(always)]
    fn in_reclaim(self) -> bool {
        // SAFETY: a map value.
        unsafe { ptr::read_volatile(&raw const (*self.storage).in_reclaim) != 0 }
    }

    /// Changed by the task itself only.
    #[inline(always)]
    pub(crate) fn set_in_reclaim(self, active: bool) {
        // SAFETY: a map value.
        unsafe { ptr::write_volatile(&raw mut (*self.storage).in_reclaim, active.into()) };
    }
}

impl event::Task for Tracked {
    type Cell = Word;

    #[inline(always)]
    fn pid(self) -> u32 {
        pid(self.task)
    }

    #[inline(always)]
    fn cpu(self) -> u32 {
        // SAFETY: a task.
        unsafe { member(self.task, &kernel::TASK_CPU) }
    }

    #[inline(always)]
    fn on_cpu(self) -> bool {
        on_cpu(self.task)
    }

    /// PSI's own test (kernel/sched/core.c, where __schedule calls psi_sched_switch). The tracepoint's `prev_state` is
    /// no substitute: signals and delayed dequeue make it wrong.
    #[inline(always)]
    fn is_asleep(self) -> bool {
        const TASK_ON_RQ_QUEUED: u32 = 1;
        // SAFETY: a task.
        let on_rq: u32 = unsafe { member(self.task, &kernel::TASK_ON_RQ) };
        on_rq != TASK_ON_RQ_QUEUED || self.is_delayed()
    }

    /// Delayed dequeue: since 6.12.
    #[inline(always)]
    fn is_delayed(self) -> bool {
        if kernel::TASK_SCHED_DELAYED.load() == kernel::ABSENT {
            return false;
        }
        // SAFETY: a task, on a kernel with the member.
        unsafe { member::<u8>(self.task, &kernel::TASK_SCHED_DELAYED) != 0 }
    }

    #[inline(always)]
    fn in_iowait(self) -> bool {
        // SAFETY: a task.
        unsafe { bit(self.task, &kernel::TASK_IN_IOWAIT, &kernel::TASK_IN_IOWAIT_MASK) }
    }

    #[inline(always)]
    fn stalls_parked(self) -> bool {
        match kernel::MEMSTALL_SOURCE.load() {
            memstall_source::FENTRY => self.memstall() != 0,
            memstall_source::TASK_BIT => in_memstall_bit(self.task),
            _ => self.in_reclaim(),
        }
    }

    /// Nothing tells when the kernel's bit is cleared, and most stalls that sleep end right after the wakeup: so
    /// without fentry the bit counts only inside of a reclaim.
    #[inline(always)]
    fn stalls_running(self) -> bool {
        match kernel::MEMSTALL_SOURCE.load() {
            memstall_source::FENTRY => self.memstall() != 0,
            memstall_source::TASK_BIT => self.in_reclaim() && in_memstall_bit(self.task),
            _ => self.in_reclaim(),
        }
    }

    #[inline(always)]
    fn slot(self) -> u32 {
        cgroup::slot_of(self.task, self.storage)
    }

    #[inline(always)]
    fn parked(self) -> Word {
        // SAFETY: only the address is taken.
        Word(unsafe { &raw mut (*self.storage).parked })
    }

    #[inline(always)]
    fn parked_now(self) -> Parked {
        // SAFETY: a map value.
        Parked(unsafe { ptr::read_volatile(&raw const (*self.storage).parked) })
    }

    #[inline(always)]
    fn is_suspect(self, parked: Parked) -> bool {
        // SAFETY: a map value, used by the walk only.
        unsafe {
            let suspect = &raw mut (*self.storage).suspect;
            let again = ptr::read_volatile(suspect) == parked.0;
            ptr::write_volatile(suspect, if again { 0 } else { parked.0 });
            again
        }
    }
}
