//! The accounting on the mapped memory.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

use psi_common::{
    account::{Records, Stamp, walk},
    layout::{Counter, CpuCgroup, NO_SLOT, State},
    list,
    queue_clock::QueueClock,
};

use super::{Link, MappedMaps, atomic, now_ns};

/// Userspace's own adds: taking back what a lost event left behind in a released slot.
impl Records for MappedMaps {
    type Record = *mut CpuCgroup;

    fn record(&self, cpu: u32, slot: u32) -> Option<*mut CpuCgroup> {
        self.state.get(self.index(cpu as usize, slot))
    }

    fn parent(&self, slot: u32) -> Option<u32> {
        self.cgroup(slot)
            .map(|cgroup| cgroup.parent)
            .filter(|&parent| parent != NO_SLOT)
    }

    fn add_word(&self, record: *mut CpuCgroup, delta: u64) -> u64 {
        atomic!(record, word, u64).fetch_add(delta, SeqCst)
    }

    fn add_time(&self, record: *mut CpuCgroup, state: State, delta: u64) {
        self.time(record, state).fetch_add(delta, SeqCst);
    }

    fn is_enabled(&self, record: *mut CpuCgroup) -> bool {
        atomic!(record, disabled, u32).load(SeqCst) == 0
    }

    fn updated(&self, record: *mut CpuCgroup, cpu: u32, slot: u32) {
        list::push(Link(atomic!(record, next, u32)), || self.head(cpu as usize), slot);
    }

    fn now(&self, _clock: QueueClock) -> u64 {
        now_ns()
    }

    fn count(&self, counter: Counter) {
        if let Some(cpu) = self.cpus.get(0) {
            // SAFETY: an aligned element of a live mapping that both sides access atomically.
            unsafe { AtomicU64::from_ptr(&raw mut (*cpu).counters[counter as usize]) }.fetch_add(1, SeqCst);
        }
    }

    fn add(&self, cpu: u32, slot: u32, delta: u64, stamp: Stamp) -> Stamp {
        walk(self, cpu, slot, delta, stamp)
    }
}
