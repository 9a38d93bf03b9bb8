//! `psi-user`'s maps, over the tracer's plain memory.

mod accounting;

use std::{cell::RefCell, rc::Rc};

use psi_common::layout::State;
pub(crate) use psi_common::list::Next;

use crate::tracer::Memory;

/// What happens before a record on a detached list is read.
type Interruption = Box<dyn FnMut(u32)>;

pub(crate) struct MappedMaps {
    memory: Rc<Memory>,
    /// For what the flusher is interrupted by.
    pub(crate) interruption: RefCell<Option<Interruption>>,
}

/// The clock is the tracer's.
pub(crate) fn now_ns() -> u64 {
    NOW.with(std::cell::Cell::get)
}

thread_local! {
    pub(crate) static NOW: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

impl MappedMaps {
    pub(crate) const fn new(memory: Rc<Memory>) -> Self {
        Self {
            memory,
            interruption: RefCell::new(None),
        }
    }

    pub(crate) fn slots(&self) -> usize {
        self.memory.slots()
    }

    pub(crate) fn cpu_count(&self) -> usize {
        self.memory.cpus()
    }

    pub(crate) fn index(&self, cpu: usize, slot: u32) -> usize {
        cpu * self.slots() + slot as usize
    }

    pub(crate) fn has_updates(&self, cpu: usize) -> bool {
        self.memory.has_updates(cpu)
    }

    #[expect(clippy::unused_self, reason = "as in psi-user")]
    pub(crate) const fn barrier(&self) {}

    #[expect(clippy::unused_self, reason = "as in psi-user")]
    pub(crate) const fn pause(&self) {}

    #[expect(clippy::unused_self, reason = "as in psi-user")]
    pub(crate) const fn prefetch(&self, _cpu: usize, _slot: u32) {}

    pub(crate) fn detach_updated(&self, cpu: usize) -> Option<u32> {
        self.memory.detach(cpu)
    }

    pub(crate) fn unlink(&self, cpu: usize, slot: u32) -> Next {
        let next = self.memory.unlink(cpu, slot as usize);
        if let Some(interruption) = self.interruption.borrow_mut().as_mut() {
            interruption(slot);
        }
        next
    }

    pub(crate) fn word(&self, cpu: usize, slot: u32) -> u64 {
        self.memory.at(cpu, slot as usize).word.get()
    }

    pub(crate) fn set_disabled(&self, cpu: usize, slot: u32, disabled: bool) {
        self.memory.at(cpu, slot as usize).disabled.set(disabled);
    }

    pub(crate) fn times(&self, cpu: usize, slot: u32) -> [u64; State::ALL.len()] {
        let record = self.memory.at(cpu, slot as usize);
        State::ALL.map(|state| record.times[state as usize].get())
    }
}

pub(crate) const fn prefetch(_address: *const u8) {}
