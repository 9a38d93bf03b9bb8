//! The accounting on the tests' memory, as in psi-user; here by the memory's own.

use psi_common::{
    account::{Records, Stamp},
    layout::{Counter, State},
    queue_clock::QueueClock,
};

use super::{MappedMaps, now_ns};

impl Records for MappedMaps {
    type Record = usize;

    fn record(&self, cpu: u32, slot: u32) -> Option<usize> {
        (&*self.memory).record(cpu, slot)
    }

    fn parent(&self, slot: u32) -> Option<u32> {
        (&*self.memory).parent(slot)
    }

    fn add_word(&self, record: usize, delta: u64) -> u64 {
        (&*self.memory).add_word(record, delta)
    }

    fn add_time(&self, record: usize, state: State, delta: u64) {
        (&*self.memory).add_time(record, state, delta);
    }

    fn is_enabled(&self, record: usize) -> bool {
        (&*self.memory).is_enabled(record)
    }

    fn updated(&self, record: usize, cpu: u32, slot: u32) {
        (&*self.memory).updated(record, cpu, slot);
    }

    fn now(&self, _clock: QueueClock) -> u64 {
        now_ns()
    }

    fn count(&self, counter: Counter) {
        (&*self.memory).count(counter);
    }

    fn add(&self, cpu: u32, slot: u32, delta: u64, stamp: Stamp) -> Stamp {
        (&*self.memory).add(cpu, slot, delta, stamp)
    }
}
