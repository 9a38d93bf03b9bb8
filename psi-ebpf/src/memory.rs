//! `psi_common::account`'s memory operations on the maps.

use core::intrinsics::{AtomicOrdering::SeqCst, atomic_cxchg, atomic_xadd, atomic_xchg};
use core::ptr::{self, NonNull};

use aya_ebpf::helpers::{bpf_get_smp_processor_id, bpf_ktime_get_ns};
use psi_common::{
    account::{self, Cell, Records, Stamp},
    layout::{Counter, Cpu, CpuCgroup, NO_SLOT, State},
    list::{self, Number},
    queue_clock::{self, QueueClock},
    word::Running,
};

use crate::{
    kernel::SLOTS,
    maps::{CGROUPS, CPUS, SHARED, STATE},
};

/// A word in a map, changed by exchange.
///
/// Not null, so that an absent word is the null pointer and not a register without a value, which the verifier does
/// not take.
#[derive(Clone, Copy)]
pub(crate) struct Word(NonNull<u64>);

impl Word {
    /// # Safety
    /// `word` must point to an aligned `u64` in a map value.
    #[inline(always)]
    pub(crate) const unsafe fn new(word: *mut u64) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { NonNull::new_unchecked(word) })
    }
}

impl Cell for Word {
    #[inline(always)]
    fn swap(&self, new: u64) -> u64 {
        // SAFETY: as promised to `new`.
        unsafe { atomic_xchg::<_, { SeqCst }>(self.0.as_ptr(), new) }
    }

    #[inline(always)]
    fn replace(&self, old: u64, new: u64) -> bool {
        // SAFETY: as promised to `new`.
        unsafe { atomic_cxchg::<_, { SeqCst }, { SeqCst }>(self.0.as_ptr(), old, new).0 == old }
    }
}

/// A link or a head of an updated list, in a map.
struct Link(*mut u32);

impl Number for Link {
    #[inline(always)]
    fn get(&self) -> u32 {
        // SAFETY: a pointer into a map value, aligned by the record's layout; here and below.
        unsafe { ptr::read_volatile(self.0) }
    }

    #[inline(always)]
    fn set(&self, new: u32) {
        // SAFETY: as above.
        unsafe { ptr::write_volatile(self.0, new) };
    }

    #[inline(always)]
    fn swap(&self, new: u32) -> u32 {
        // SAFETY: as above.
        unsafe { atomic_xchg::<_, { SeqCst }>(self.0, new) }
    }

    #[inline(always)]
    fn replace(&self, old: u32, new: u32) -> bool {
        // SAFETY: as above.
        unsafe { atomic_cxchg::<_, { SeqCst }, { SeqCst }>(self.0, old, new).0 == old }
    }
}

/// The maps as [`Records`].
pub(crate) struct Maps;

impl Records for Maps {
    type Record = *mut CpuCgroup;

    #[inline(always)]
    fn record(&self, cpu: u32, slot: u32) -> Option<*mut CpuCgroup> {
        STATE.get_ptr_mut(cpu.wrapping_mul(SLOTS.load()).wrapping_add(slot))
    }

    #[inline(always)]
    fn parent(&self, slot: u32) -> Option<u32> {
        let cgroup = CGROUPS.get_ptr(slot)?;
        // SAFETY: a map value. Written once before the slot is given out.
        let parent = unsafe { ptr::read_volatile(&raw const (*cgroup).parent) };
        if parent == NO_SLOT { None } else { Some(parent) }
    }

    #[inline(always)]
    fn add_word(&self, record: *mut CpuCgroup, delta: u64) -> u64 {
        // SAFETY: a map value.
        unsafe { atomic_xadd::<u64, u64, { SeqCst }>(&raw mut (*record).word, delta) }
    }

    #[inline(always)]
    fn add_time(&self, record: *mut CpuCgroup, state: State, delta: u64) {
        // SAFETY: a map value; the index is within the array.
        unsafe { atomic_xadd::<u64, u64, { SeqCst }>(&raw mut (*record).times[state as usize], delta) };
    }

    #[inline(always)]
    fn is_enabled(&self, record: *mut CpuCgroup) -> bool {
        // SAFETY: a map value, whose cacheline the word's add has brought here.
        unsafe { ptr::read_volatile(&raw const (*record).disabled) == 0 }
    }

    #[inline(always)]
    fn updated(&self, record: *mut CpuCgroup, cpu: u32, slot: u32) {
        // On x86 the adds before this are full barriers, so either the load of the link sees that the flusher took the record
        // off, or the flusher sees the adds. Where a plain atomic add orders nothing (arm64) the load may come
        // first: a benign race, the record is then flushed with its next change.
        // SAFETY: map values.
        let next = Link(unsafe { &raw mut (*record).next });
        // SAFETY: as above.
        let head = || {
            CPUS.get_ptr_mut(cpu)
                .map(|this| Link(unsafe { &raw mut (*this).updated }))
        };
        list::push(next, head, slot);
    }

    #[inline(always)]
    fn now(&self, clock: QueueClock) -> u64 {
        if clock == QueueClock::UNKNOWN {
            now()
        } else {
            wakeup_time(clock.into_raw())
        }
    }

    #[inline(always)]
    fn count(&self, counter: Counter) {
        count(counter);
    }

    #[inline(always)]
    fn add(&self, cpu: u32, slot: u32, delta: u64, stamp: Stamp) -> Stamp {
        Stamp::from_raw(walk_to_root(cpu, slot, delta, stamp.into_raw()))
    }
}

#[inline(always)]
fn now() -> u64 {
    // SAFETY: the helper has no arguments.
    unsafe { bpf_ktime_get_ns() }
}

/// When a wakeup was that its run queue's clock tells of, if no clock needs to be read for that.
#[inline(always)]
pub(crate) fn quick_time(clock: QueueClock) -> Option<u64> {
    let this = this_cpu(current_cpu())?;
    // SAFETY: a map value, changed by this CPU only, in wakeups.
    queue_clock::quick_time(clock, unsafe { ptr::read_volatile(&raw const (*this).lag) })
}

/// A global function, as the next.
#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn wakeup_time(clock: u64) -> u64 {
    let now = now();
    let (Some(this), Some(shared)) = (this_cpu(current_cpu()), SHARED.get_ptr(0)) else {
        return now;
    };
    // SAFETY: map values, the first used by this CPU only, in wakeups, which hold a run queue lock with interrupts off.
    unsafe {
        let lag = &raw mut (*this).lag;
        let drift = ptr::read_volatile(&raw const (*shared).drift);
        let (time, new) = queue_clock::wakeup_time(now, QueueClock::from_raw(clock), ptr::read_volatile(lag), drift);
        ptr::write_volatile(lag, new);
        time
    }
}

/// A global function: the verifier checks it once, for any arguments, and not along each path to each call.
#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn walk_to_root(cpu: u32, slot: u32, delta: u64, stamp: u64) -> u64 {
    account::walk(&Maps, cpu, slot, delta, Stamp::from_raw(stamp)).into_raw()
}

/// Counts something missed or repaired, on this CPU.
#[inline(always)]
pub(crate) fn count(counter: Counter) {
    if let Some(cpu) = this_cpu(current_cpu()) {
        // SAFETY: a map value; the index is within the array.
        unsafe { atomic_xadd::<u64, u64, { SeqCst }>(&raw mut (*cpu).counters[counter as usize], 1) };
    }
}

/// The number of the CPU that runs this.
#[inline(always)]
pub(crate) fn current_cpu() -> u32 {
    // SAFETY: the helper has no arguments.
    unsafe { bpf_get_smp_processor_id() as u32 }
}

/// A CPU's own record.
#[inline(always)]
pub(crate) fn this_cpu(cpu: u32) -> Option<*mut Cpu> {
    CPUS.get_ptr_mut(cpu)
}

/// A CPU's word about its running task.
#[inline(always)]
pub(crate) fn running(cpu: *mut Cpu) -> Word {
    // SAFETY: a map value.
    unsafe { Word::new(&raw mut (*cpu).running) }
}

/// What a CPU's record says that it runs.
#[inline(always)]
pub(crate) fn on_record(cpu: *mut Cpu) -> Running {
    // SAFETY: a map value.
    Running(unsafe { ptr::read_volatile(&raw const (*cpu).running) })
}
