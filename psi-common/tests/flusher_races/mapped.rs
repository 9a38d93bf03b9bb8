//! `psi-user`'s maps, over loom's memory.

#[path = "../flusher/mapped/accounting.rs"]
mod accounting;

use std::cell::Cell;

use loom::{sync::Arc, thread};
pub(crate) use psi_common::list::Next;
use psi_common::{account::Records as _, layout::State, queue_clock::QueueClock};

use crate::memory::Memory;

pub(crate) struct MappedMaps {
    pub(crate) memory: Arc<Memory>,
    pub(crate) slots: usize,
}

thread_local! {
    /// The flusher's clock: what the memory's was when it was told last. loom runs a model in one thread.
    static NOW: Cell<u64> = const { Cell::new(0) };
}

pub(crate) fn now_ns() -> u64 {
    NOW.get()
}

impl MappedMaps {
    /// Lets the flusher's clock be that of the updaters.
    pub(crate) fn tell_time(&self) -> u64 {
        let now = (&*self.memory).now(QueueClock::UNKNOWN);
        NOW.set(now);
        now
    }

    pub(crate) const fn slots(&self) -> usize {
        self.slots
    }

    #[expect(clippy::unused_self, reason = "as in psi-user")]
    pub(crate) const fn cpu_count(&self) -> usize {
        1
    }

    pub(crate) const fn index(&self, cpu: usize, slot: u32) -> usize {
        cpu * self.slots + slot as usize
    }

    pub(crate) fn has_updates(&self, cpu: usize) -> bool {
        self.memory.has_updates(cpu as u32)
    }

    #[expect(clippy::unused_self, reason = "as in psi-user")]
    pub(crate) fn barrier(&self) {
        Memory::barrier();
    }

    #[expect(clippy::unused_self, reason = "as in psi-user")]
    pub(crate) const fn pause(&self) {}

    #[expect(clippy::unused_self, reason = "as in psi-user")]
    pub(crate) const fn prefetch(&self, _cpu: usize, _slot: u32) {}

    pub(crate) fn detach_updated(&self, cpu: usize) -> Option<u32> {
        self.memory.detach(cpu as u32)
    }

    pub(crate) fn unlink(&self, cpu: usize, slot: u32) -> Next {
        let next = self.memory.unlink(cpu as u32, slot);
        if next == Next::Pending {
            thread::yield_now();
        }
        next
    }

    pub(crate) fn word(&self, cpu: usize, slot: u32) -> u64 {
        self.memory.word(cpu as u32, slot)
    }

    pub(crate) fn set_disabled(&self, cpu: usize, slot: u32, disabled: bool) {
        self.memory.set_disabled(cpu as u32, slot, disabled);
    }

    pub(crate) fn times(&self, cpu: usize, slot: u32) -> [u64; State::ALL.len()] {
        State::ALL.map(|state| self.memory.time(cpu as u32, slot, state))
    }
}

pub(crate) const fn prefetch(_address: *const u8) {}
