//! A task whose switch away from its CPU was lost, once that is noticed.
//!
//! All that is known of it is its pid, so it is read through the owner of its place in `TASKS`, a plain address: by helper,
//! which reads 0 where there is nothing.

use core::ptr;

use aya_ebpf::{Global, helpers::bpf_probe_read_kernel};
use psi_common::{event, layout::Task, word::Parked};

use crate::{
    kernel::{self, memstall_source},
    maps::TASKS,
    memory::{Maps, Word},
};

/// A task and its place.
#[derive(Clone, Copy)]
struct Left {
    /// Address of the task_struct.
    task: *const u8,
    record: *mut Task,
}

/// Puts the task with this pid down as what it is now, if it is on record as running and does not. Not one without a
/// place in `TASKS`: the walk over all tasks finds it.
///
/// A global function: the verifier checks it once. Returns nothing of meaning.
#[inline(never)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn left_behind(pid: u32) -> u32 {
    if let Some(record) = TASKS.get_ptr_mut(pid & kernel::TASK_MASK.load()) {
        // SAFETY: a map value.
        let task = unsafe { ptr::read_volatile(&raw const (*record).owner) } as *const u8;
        let left = Left { task, record };
        if pid != 0 && !task.is_null() && event::Task::pid(left) == pid {
            event::left_behind(&Maps, left);
        }
    }
    0
}

impl Left {
    #[inline(always)]
    fn member<T: Copy + Default>(self, offset: &Global<u32>) -> T {
        // SAFETY: the helper checks the address.
        unsafe { bpf_probe_read_kernel(self.task.wrapping_add(offset.load() as usize).cast()) }.unwrap_or_default()
    }

    #[inline(always)]
    fn bit(self, offset: &Global<u32>, mask: &Global<u32>) -> bool {
        u32::from(self.member::<u8>(offset)) & mask.load() != 0
    }
}

impl event::Task for Left {
    type Cell = Word;

    #[inline(always)]
    fn pid(self) -> u32 {
        self.member(&kernel::TASK_PID)
    }

    #[inline(always)]
    fn cpu(self) -> u32 {
        self.member(&kernel::TASK_CPU)
    }

    #[inline(always)]
    fn on_cpu(self) -> bool {
        self.member::<u32>(&kernel::TASK_ON_CPU) != 0
    }

    #[inline(always)]
    fn is_asleep(self) -> bool {
        self.member::<u32>(&kernel::TASK_ON_RQ) != kernel::ON_RQ_QUEUED || self.is_delayed()
    }

    #[inline(always)]
    fn is_delayed(self) -> bool {
        kernel::TASK_SCHED_DELAYED.load() != kernel::ABSENT && self.member::<u8>(&kernel::TASK_SCHED_DELAYED) != 0
    }

    #[inline(always)]
    fn in_iowait(self) -> bool {
        self.bit(&kernel::TASK_IN_IOWAIT, &kernel::TASK_IN_IOWAIT_MASK)
    }

    #[inline(always)]
    fn stalls_parked(self) -> bool {
        // SAFETY: a map value.
        unsafe {
            match kernel::MEMSTALL_SOURCE.load() {
                memstall_source::FENTRY => ptr::read_volatile(&raw const (*self.record).memstall) != 0,
                memstall_source::TASK_BIT => self.bit(&kernel::TASK_IN_MEMSTALL, &kernel::TASK_IN_MEMSTALL_MASK),
                memstall_source::NONE => false,
                _ => ptr::read_volatile(&raw const (*self.record).in_reclaim) != 0,
            }
        }
    }

    /// It does not run.
    #[inline(always)]
    fn stalls_running(self) -> bool {
        false
    }

    /// As of its last event.
    #[inline(always)]
    fn slot(self) -> u32 {
        // SAFETY: a map value.
        unsafe { ptr::read_volatile(&raw const (*self.record).slot) }
    }

    #[inline(always)]
    fn parked(self) -> Word {
        // SAFETY: a map value.
        unsafe { Word::new(&raw mut (*self.record).parked) }
    }

    #[inline(always)]
    fn parked_now(self) -> Parked {
        // SAFETY: a map value.
        Parked(unsafe { ptr::read_volatile(&raw const (*self.record).parked) })
    }

    /// For walks only.
    #[inline(always)]
    fn is_suspect(self, _parked: Parked) -> bool {
        false
    }
}
