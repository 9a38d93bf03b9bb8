//! The maps as memory: read without a lock and without a system call.

mod accounting;
mod array;

use std::sync::atomic::{
    AtomicI64, AtomicU32, AtomicU64,
    Ordering::{Release, SeqCst},
    fence,
};

pub(crate) use self::array::MappedArray;
use crate::model::Counts;
pub(crate) use psi_common::list::Next;
use psi_common::{
    layout::{Cgroup, Counter, Cpu, CpuCgroup, NOT_LISTED, Shared, State},
    list::{self, Number},
    word::counts,
};
use rustix::time::{ClockId, clock_gettime};

macro_rules! atomic {
    ($record:expr, $field:ident, u64) => {
        // SAFETY: an aligned field of a live mapping that both sides access atomically.
        unsafe { AtomicU64::from_ptr(&raw mut (*$record).$field) }
    };
    ($record:expr, $field:ident, u32) => {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(&raw mut (*$record).$field) }
    };
}
use atomic;

/// All maps that are accessed as memory.
#[derive(Debug)]
pub(crate) struct MappedMaps {
    pub(crate) state: MappedArray<CpuCgroup>,
    pub(crate) cpus: MappedArray<Cpu>,
    pub(crate) cgroups: MappedArray<Cgroup>,
    pub(crate) shared: MappedArray<Shared>,
}

/// A link or a head of an updated list.
struct Link<'a>(&'a AtomicU32);

impl Number for Link<'_> {
    fn get(&self) -> u32 {
        self.0.load(SeqCst)
    }

    fn set(&self, new: u32) {
        // No barrier: see list::unlink.
        self.0.store(new, Release);
    }

    fn swap(&self, new: u32) -> u32 {
        self.0.swap(new, SeqCst)
    }

    fn replace(&self, old: u32, new: u32) -> bool {
        self.0.compare_exchange(old, new, SeqCst, SeqCst).is_ok()
    }
}

impl MappedMaps {
    pub(crate) fn slots(&self) -> usize {
        self.cgroups.len()
    }

    pub(crate) fn cpu_count(&self) -> usize {
        self.cpus.len()
    }

    fn head(&self, cpu: usize) -> Option<Link<'_>> {
        let this = self.cpus.get(cpu)?;
        Some(Link(atomic!(this, updated, u32)))
    }

    /// Whether a CPU's updated list has anything on it.
    pub(crate) fn has_updates(&self, cpu: usize) -> bool {
        self.head(cpu).is_some_and(|head| head.get() != 0)
    }

    /// Whether a record is on an updated list.
    #[expect(clippy::unused_self, reason = "ties the record to its mapping")]
    pub(crate) fn is_listed(&self, record: *mut CpuCgroup) -> bool {
        Link(atomic!(record, next, u32)).get() != NOT_LISTED
    }

    /// Between the links that were cleared and the values that are read.
    #[expect(clippy::unused_self, reason = "tests have memory of their own, with its own barrier")]
    pub(crate) fn barrier(&self) {
        fence(SeqCst);
    }

    /// Gives an updater that is in the middle of its work time to end it.
    #[expect(clippy::unused_self, reason = "tests have updaters of their own")]
    pub(crate) fn pause(&self) {
        std::thread::sleep(std::time::Duration::from_micros(50));
    }

    /// Asks for a record's memory.
    #[inline]
    pub(crate) fn prefetch(&self, cpu: usize, slot: u32) {
        if let Some(record) = self.state.get(self.index(cpu, slot)) {
            prefetch(record.cast());
            prefetch(record.cast::<u8>().wrapping_add(64));
        }
    }

    /// Takes a CPU's whole updated list: returns the first slot. This exchange is all that an updater can meet.
    pub(crate) fn detach_updated(&self, cpu: usize) -> Option<u32> {
        list::detach(&self.head(cpu)?)
    }

    /// Reads the link of a record on a detached list and takes it off, see [`list::unlink`].
    pub(crate) fn unlink(&self, cpu: usize, slot: u32) -> Next {
        let Some(record) = self.state.get(self.index(cpu, slot)) else {
            return Next::End;
        };
        list::unlink(&Link(atomic!(record, next, u32)))
    }

    /// The time integrals of a record, in the order of [`State::ALL`].
    pub(crate) fn times(&self, cpu: usize, slot: u32) -> [u64; State::ALL.len()] {
        let Some(record) = self.state.get(self.index(cpu, slot)) else {
            return [0; State::ALL.len()];
        };
        State::ALL.map(|state| self.time(record, state).load(SeqCst))
    }

    /// The packed counts of a record.
    pub(crate) fn word(&self, cpu: usize, slot: u32) -> u64 {
        self.state
            .get(self.index(cpu, slot))
            .map_or(0, |record| atomic!(record, word, u64).load(SeqCst))
    }

    /// What a slot's records count, summed over the CPUs.
    pub(crate) fn counts(&self, slot: u32) -> Counts {
        let mut sum = Counts::default();
        for cpu in 0..self.cpu_count() {
            let [waiting, iowait, memstall, productive, running, running_memstall] = counts(self.word(cpu, slot));
            sum.waiting += waiting;
            sum.iowait += iowait;
            sum.memstall += memstall;
            sum.productive += productive;
            sum.running += running;
            sum.running_memstall += running_memstall;
        }
        sum
    }

    /// Makes the records of a slot that no cgroup uses empty again. Not the words, which count nothing any more: if an
    /// event comes as late as this, the one that takes its count back finds it.
    pub(crate) fn clear(&self, slot: u32) {
        for record in (0..self.cpu_count()).filter_map(|cpu| self.state.get(self.index(cpu, slot))) {
            for state in State::ALL {
                self.time(record, state).store(0, SeqCst);
            }
            atomic!(record, disabled, u32).store(0, SeqCst);
        }
    }

    /// Lets the times of a record stand still, or go on.
    pub(crate) fn set_disabled(&self, cpu: usize, slot: u32, disabled: bool) {
        if let Some(record) = self.state.get(self.index(cpu, slot)) {
            atomic!(record, disabled, u32).store(disabled.into(), SeqCst);
        }
    }

    #[expect(clippy::unused_self, reason = "ties the record to its mapping")]
    fn time(&self, record: *mut CpuCgroup, state: State) -> &AtomicU64 {
        // SAFETY: an aligned element of a live mapping that both sides access atomically.
        unsafe { AtomicU64::from_ptr(&raw mut (*record).times[state as usize]) }
    }

    pub(crate) fn index(&self, cpu: usize, slot: u32) -> usize {
        cpu * self.slots() + slot as usize
    }

    /// A counter, summed over the CPUs.
    pub(crate) fn counter(&self, counter: Counter) -> u64 {
        (0..self.cpu_count())
            .filter_map(|cpu| self.cpus.get(cpu))
            // SAFETY: an aligned element of a live mapping that both sides access atomically.
            .map(|cpu| unsafe { AtomicU64::from_ptr(&raw mut (*cpu).counters[counter as usize]) }.load(SeqCst))
            .sum()
    }

    pub(crate) fn set_ksoftirqd(&self, cpu: usize, pid: u32) {
        if let Some(this) = self.cpus.get(cpu) {
            atomic!(this, ksoftirqd, u32).store(pid, SeqCst);
        }
    }

    /// A copy of what is known of a slot.
    pub(crate) fn cgroup(&self, slot: u32) -> Option<Cgroup> {
        let cgroup = self.cgroups.get(slot as usize)?;
        Some(Cgroup {
            state: atomic!(cgroup, state, u32).load(SeqCst),
            id: atomic!(cgroup, id, u64).load(SeqCst),
            parent: atomic!(cgroup, parent, u32).load(SeqCst),
            level: atomic!(cgroup, level, u32).load(SeqCst),
            generation: atomic!(cgroup, generation, u32).load(SeqCst),
            above: atomic!(cgroup, above, u32).load(SeqCst),
            reserved: 0,
        })
    }

    /// Writes a slot's entry; its state last, since that is what makes it valid.
    pub(crate) fn set_cgroup(&self, slot: u32, entry: Cgroup) {
        let Some(cgroup) = self.cgroups.get(slot as usize) else {
            return;
        };
        atomic!(cgroup, id, u64).store(entry.id, SeqCst);
        atomic!(cgroup, parent, u32).store(entry.parent, SeqCst);
        atomic!(cgroup, above, u32).store(entry.above, SeqCst);
        atomic!(cgroup, level, u32).store(entry.level, SeqCst);
        atomic!(cgroup, generation, u32).store(entry.generation, SeqCst);
        atomic!(cgroup, state, u32).store(entry.state, SeqCst);
    }

    /// How often `CGROUPS` has changed.
    pub(crate) fn cgroup_changes(&self) -> u64 {
        atomic!(self.shared.first(), cgroup_changes, u64).load(SeqCst)
    }

    /// Counts a change that userspace made itself.
    pub(crate) fn note_cgroup_change(&self) {
        atomic!(self.shared.first(), cgroup_changes, u64).fetch_add(1, SeqCst);
    }

    /// Cgroups that exist without a slot of their own.
    pub(crate) fn without_slot(&self) -> &AtomicU64 {
        atomic!(self.shared.first(), without_slot, u64)
    }

    /// Ids that are remembered of cgroups that are not tracked.
    pub(crate) fn untracked(&self) -> &AtomicU64 {
        atomic!(self.shared.first(), untracked, u64)
    }

    /// Tells the programs how the clocks move.
    pub(crate) fn set_drift(&self, drift: i64) {
        let shared = self.shared.first();
        // SAFETY: an aligned field of a live mapping.
        unsafe { AtomicI64::from_ptr(&raw mut (*shared).drift) }.store(drift, SeqCst);
    }

    /// Takes the request for a walk; says whether there was one.
    pub(crate) fn take_resync(&self) -> bool {
        atomic!(self.shared.first(), resync_wanted, u64).swap(0, SeqCst) != 0
    }

    /// Takes the request for a look at the whole tree; says whether there was one.
    pub(crate) fn take_rescan(&self) -> bool {
        atomic!(self.shared.first(), rescan_wanted, u64).swap(0, SeqCst) != 0
    }

    /// Takes the request for freeing slots; says whether there was one.
    pub(crate) fn take_recycle(&self) -> bool {
        atomic!(self.shared.first(), recycle_wanted, u64).swap(0, SeqCst) != 0
    }
}

/// Asks the CPU for the cacheline at an address, which need not be one.
#[inline]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, at any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// CLOCK_MONOTONIC in ns, the clock of the BPF programs.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
