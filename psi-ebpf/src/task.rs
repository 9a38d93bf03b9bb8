//! One task: its storage, its cgroup's slot, what it contributes.

use core::ptr::{self, NonNull};

use aya_ebpf::{
    bindings::{BPF_LOCAL_STORAGE_GET_F_CREATE, task_struct},
    helpers::generated::bpf_task_storage_get,
};
use psi_common::{
    account::Cell as _,
    event,
    layout::{Counter, Task},
    queue_clock::QueueClock,
    word::Parked,
};

use crate::{
    cgroup,
    kernel::{self, Object, bit, member, memstall_source},
    maps::{CROWDED_OUT, TASKS},
    memory::{Word, count, current_cpu},
};

/// A task and what is kept about it.
#[derive(Clone, Copy)]
pub(crate) struct Tracked {
    /// The kernel's task_struct.
    pub(crate) task: Object,
    /// Its record. Not null, so that no task is the null pointer and not a register without a value, which the verifier
    /// does not take.
    record: NonNull<Task>,
}

/// Looks a task up, from any event.
///
/// A task that nothing was known of yet takes its place in `TASKS` here: that allocates nothing, so it is safe under
/// any lock. Only where another live task has the place is there task storage, which is created here where the
/// kernel's allocator works under any lock (since 6.4), and elsewhere at fork and in the walk.
#[inline(always)]
pub(crate) fn find(task: Object, pid: u32) -> Option<Tracked> {
    find_with(task, pid, kernel::TASK_STORAGE_FLAGS.load().into())
}

/// As [`find`], from where storage can always be created.
#[inline(always)]
pub(crate) fn find_or_create(task: Object, pid: u32) -> Option<Tracked> {
    find_with(task, pid, BPF_LOCAL_STORAGE_GET_F_CREATE.into())
}

#[inline(always)]
fn find_with(task: Object, pid: u32, flags: u64) -> Option<Tracked> {
    if let Some(record) = TASKS.get_ptr_mut(pid & kernel::TASK_MASK.load()) {
        // SAFETY: a map value.
        let owner = unsafe { ptr::read_volatile(&raw const (*record).owner) };
        if owner == task as u64 || owner == 0 && claim(record, task) {
            return Tracked::new(task, record);
        }
    }
    let found = Tracked::new(task, storage(task, flags));
    if found.is_none() {
        count(Counter::StorageFailures);
    }
    found
}

#[inline(always)]
fn storage(task: Object, flags: u64) -> *mut Task {
    // SAFETY: the verifier checks that `task` is a task it knows.
    unsafe {
        bpf_task_storage_get(
            (&raw const CROWDED_OUT).cast_mut().cast(),
            task.cast_mut().cast::<task_struct>(),
            ptr::null_mut(),
            flags,
        )
    }
    .cast()
}

#[inline(always)]
fn claim(record: *mut Task, task: Object) -> bool {
    // SAFETY: a map value.
    unsafe { Word::new(&raw mut (*record).owner) }.replace(0, task as u64)
}

/// Looks a task up that nothing is to be kept about if nothing is.
#[inline(always)]
pub(crate) fn find_existing(task: Object, pid: u32) -> Option<Tracked> {
    if let Some(record) = TASKS.get_ptr_mut(pid & kernel::TASK_MASK.load()) {
        // SAFETY: a map value.
        if unsafe { ptr::read_volatile(&raw const (*record).owner) } == task as u64 {
            return Tracked::new(task, record);
        }
    }
    Tracked::new(task, storage(task, 0))
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

/// The CPU whose run queue it is on, or was on last.
#[inline(always)]
pub(crate) fn cpu(task: Object) -> u32 {
    // SAFETY: a task.
    unsafe { member(task, &kernel::TASK_CPU) }
}

/// Whether its sleep is an IO wait. Still so at its wakeup.
#[inline(always)]
pub(crate) fn in_iowait(task: Object) -> bool {
    // SAFETY: a task.
    unsafe { bit(task, &kernel::TASK_IN_IOWAIT, &kernel::TASK_IN_IOWAIT_MASK) }
}

/// In a wakeup: its run queue's clock when it was queued.
#[inline(always)]
pub(crate) fn queue_clock(task: Object) -> QueueClock {
    if kernel::TASK_LAST_QUEUED.load() == kernel::ABSENT {
        return QueueClock::UNKNOWN;
    }
    // SAFETY: a task, on a kernel with the member.
    let queued = unsafe { member(task, &kernel::TASK_LAST_QUEUED) };
    QueueClock::new(queued, cpu(task) == current_cpu())
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
    #[inline(always)]
    fn new(task: Object, record: *mut Task) -> Option<Self> {
        Some(Self {
            task,
            record: NonNull::new(record)?,
        })
    }

    /// Stack address of the outermost memory stall's flags word, 0 outside of a stall.
    #[inline(always)]
    pub(crate) fn memstall(self) -> u64 {
        // SAFETY: a map value.
        unsafe { ptr::read_volatile(&raw const (*self.record.as_ptr()).memstall) }
    }

    /// Changed by the task itself only, and by the walk that seeds it.
    #[inline(always)]
    pub(crate) fn set_memstall(self, flags: u64) {
        // SAFETY: a map value.
        unsafe { ptr::write_volatile(&raw mut (*self.record.as_ptr()).memstall, flags) };
    }

    /// Makes the next event look its cgroup's slot up. A benign race with an event that has just done so: the next walk
    /// comes past here again.
    #[inline(always)]
    pub(crate) fn forget_slot(self) {
        // SAFETY: a map value.
        unsafe { ptr::write_volatile(&raw mut (*self.record.as_ptr()).css_set, 0) };
    }

    /// Gives its place in `TASKS` back. Only after its last event.
    #[inline(always)]
    pub(crate) fn release(self) {
        let record = self.record.as_ptr();
        // SAFETY: a map value.
        unsafe {
            if ptr::read_volatile(&raw const (*record).owner) != self.task as u64 {
                // Task storage, which goes with the task.
                return;
            }
            ptr::write_volatile(&raw mut (*record).parked, 0);
            ptr::write_volatile(&raw mut (*record).css_set, 0);
            ptr::write_volatile(&raw mut (*record).memstall, 0);
            ptr::write_volatile(&raw mut (*record).in_reclaim, 0);
            ptr::write_volatile(&raw mut (*record).suspect, 0);
            // Last: from here on another task may take the place.
            ptr::write_volatile(&raw mut (*record).owner, 0);
        }
    }

    #[inline(always)]
    fn in_reclaim(self) -> bool {
        // SAFETY: a map value.
        unsafe { ptr::read_volatile(&raw const (*self.record.as_ptr()).in_reclaim) != 0 }
    }

    /// Changed by the task itself only.
    #[inline(always)]
    pub(crate) fn set_in_reclaim(self, active: bool) {
        // SAFETY: a map value.
        unsafe { ptr::write_volatile(&raw mut (*self.record.as_ptr()).in_reclaim, active.into()) };
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
        cpu(self.task)
    }

    #[inline(always)]
    fn on_cpu(self) -> bool {
        on_cpu(self.task)
    }

    /// PSI's own test (kernel/sched/core.c, where __schedule calls psi_sched_switch). The tracepoint's `prev_state` is
    /// no substitute: signals and delayed dequeue make it wrong.
    #[inline(always)]
    fn is_asleep(self) -> bool {
        // SAFETY: a task.
        let on_rq: u32 = unsafe { member(self.task, &kernel::TASK_ON_RQ) };
        on_rq != kernel::ON_RQ_QUEUED || self.is_delayed()
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
        in_iowait(self.task)
    }

    #[inline(always)]
    fn stalls_parked(self) -> bool {
        match kernel::MEMSTALL_SOURCE.load() {
            memstall_source::FENTRY => self.memstall() != 0,
            memstall_source::TASK_BIT => in_memstall_bit(self.task),
            memstall_source::NONE => false,
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
            memstall_source::NONE => false,
            _ => self.in_reclaim(),
        }
    }

    #[inline(always)]
    fn slot(self) -> u32 {
        cgroup::slot_of(self.task, self.record.as_ptr())
    }

    #[inline(always)]
    fn parked(self) -> Word {
        // SAFETY: a map value.
        unsafe { Word::new(&raw mut (*self.record.as_ptr()).parked) }
    }

    #[inline(always)]
    fn parked_now(self) -> Parked {
        // SAFETY: a map value.
        Parked(unsafe { ptr::read_volatile(&raw const (*self.record.as_ptr()).parked) })
    }

    #[inline(always)]
    fn is_suspect(self, parked: Parked) -> bool {
        // SAFETY: a map value, used by the walk only.
        unsafe {
            let suspect = &raw mut (*self.record.as_ptr()).suspect;
            let again = ptr::read_volatile(suspect) == parked.0;
            ptr::write_volatile(suspect, if again { 0 } else { parked.0 });
            again
        }
    }
}
