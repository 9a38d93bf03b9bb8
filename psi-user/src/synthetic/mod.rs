//! The tracer's maps as plain memory, without a kernel: for measuring the flush on machines larger than this one, and
//! against updaters that are told what to do.

mod locked;

use std::{io, path::PathBuf, ptr};

use psi_common::{
    account::{Records as _, Stamp, walk},
    layout::{Cgroup, NO_SLOT, State, slot_state},
    word::{class, contribution},
};

use crate::{
    flush::{Flusher, HoldTimes},
    hierarchy::{Hierarchy, V2},
    mapped::{MappedArray, MappedMaps, now_ns},
    slots::Slots,
};

pub use self::locked::{Hold, LockedFlusher, Locks, Met};

/// What a tick takes, ns: CONFIG_HZ=250.
const TICK_NS: u64 = 4_000_000;

/// Maps of a machine that does not exist: cgroups right below the root, no tasks.
#[derive(Debug)]
pub struct Synthetic {
    maps: MappedMaps,
}

/// A flusher of such a machine.
#[derive(Debug)]
pub struct SyntheticFlusher {
    flusher: Flusher,
    slots: Slots,
}

impl Synthetic {
    /// A machine with `cpus` CPUs and `slots` cgroups, the root included.
    ///
    /// # Errors
    /// When there is not that much memory: `cpus` times `slots` times 128 bytes.
    pub fn new(cpus: usize, slots: usize) -> io::Result<Self> {
        let maps = MappedMaps {
            state: MappedArray::anonymous(cpus * slots)?,
            cpus: MappedArray::anonymous(cpus)?,
            cgroups: MappedArray::anonymous(slots)?,
            shared: MappedArray::anonymous(1)?,
        };
        for slot in 0..slots as u32 {
            maps.set_cgroup(
                slot,
                Cgroup {
                    id: u64::from(slot) + 1,
                    parent: if slot == 0 { NO_SLOT } else { 0 },
                    level: u32::from(slot != 0),
                    state: slot_state::LIVE,
                    generation: 0,
                    above: if slot == 0 { NO_SLOT } else { 0 },
                    reserved: 0,
                },
            );
        }
        Ok(Self { maps })
    }

    /// A flusher; there must be one only.
    pub fn flusher(&self) -> SyntheticFlusher {
        let nowhere = Hierarchy {
            name: V2.to_owned(),
            mount: PathBuf::new(),
            id: 0,
        };
        let mut slots = Slots::new(nowhere, self.maps.slots(), false);
        slots.refresh(&self.maps, now_ns());
        SyntheticFlusher {
            flusher: Flusher::new(&self.maps, now_ns(), TICK_NS),
            slots,
        }
    }

    /// A change of one record as the flush sees it: some states gained `ns`, and the record is on its CPU's list.
    pub fn gain(&self, cpu: usize, slot: u32, ns: u64) {
        let Some(record) = self.maps.record(cpu as u32, slot) else {
            return;
        };
        for state in [State::CpuSome, State::Nonidle, State::IoSome] {
            self.maps.add_time(record, state, ns);
        }
        self.maps.updated(record, cpu as u32, slot);
    }

    /// A task of the cgroup begins to wait on that CPU, or stops: what the BPF programs do for such an event.
    pub fn wait(&self, cpu: usize, slot: u32, begins: bool) {
        walk(&self.maps, cpu as u32, slot, waiting(begins), Stamp::UNREAD);
    }

    /// Copies all records to `to` (memcpy) and returns how many bytes these are; less when there is less room.
    pub fn copy(&self, to: &mut [u8]) -> usize {
        let (from, bytes) = self.maps.state.bytes();
        let bytes = bytes.min(to.len());
        // SAFETY: both are live and `bytes` long, and apart: one is this value's own mapping. Who updates meanwhile
        // changes what is copied, which nobody looks at.
        unsafe { ptr::copy_nonoverlapping(from, to.as_mut_ptr(), bytes) };
        bytes
    }
}

/// What a task that waits adds to a word, or takes back.
fn waiting(begins: bool) -> u64 {
    let delta = contribution(class::waiting(false));
    if begins { delta } else { delta.wrapping_neg() }
}

impl SyntheticFlusher {
    /// How long it held a list.
    pub const fn hold_times(&self) -> HoldTimes {
        self.flusher.hold_times
    }

    /// What a snapshot does: takes in what was updated.
    pub fn flush(&mut self, machine: &Synthetic) {
        self.flusher.flush(&machine.maps, &self.slots);
    }

    /// What is done once an averaging period.
    pub fn close(&mut self, machine: &Synthetic) {
        self.flusher.close(&machine.maps, &self.slots);
    }

    /// Readings that were not used: 0, or the measurement is worth nothing.
    pub const fn rejected(&self) -> u64 {
        self.flusher.rejected
    }

    /// Total of `cpu some` of one cgroup, ns.
    pub fn cpu_some_ns(&self, slot: u32) -> u64 {
        self.flusher.totals(slot)[0]
    }
}
