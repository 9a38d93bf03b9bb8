//! The flush: per-CPU updated lists are detached, one exchange each, and walked in private.
//!
//! Modelled on the kernel's cgroup rstat after its lock was split up (kernel/cgroup/rstat.c): what updaters can
//! meet is the exchange alone. Its time is kept as a histogram, see [`HoldTimes`].
//!
//! On large machines the time goes into waiting for memory: the next record is known only when the one before has come.
//! So several CPUs' lists are walked side by side, each a step at a time, and what a record needs is asked for one turn
//! ahead.

mod hold;
mod read;
mod records;
mod rest;
mod sums;

use std::collections::HashMap;

use psi_common::{account::Records as _, layout::State};

pub use self::hold::HoldTimes;
use self::{
    records::{LISTED_ACTIVE, Meta, Records, UNREAD},
    sums::Sums,
};
use crate::{
    averages::period_ns,
    mapped::{MappedMaps, now_ns},
    slots::Slots,
};

/// States with a time integral, as indices into per-record arrays in the order of [`State::ALL`].
const STATES: usize = State::ALL.len();
const NONIDLE: usize = 2;
const IRQ: usize = 7;
/// Lists walked side by side.
const WIDTH: usize = 16;
/// Records taken off their lists before they are read: one barrier and one look at the clock for all.
const BATCH: usize = 64;
/// A reading may be that much lower than the last one because an event's add came late.
const LATE_ADD_NS: u64 = 1_000_000;

/// Totals of one cgroup, ns, in the order of [`State::ALL`], weighted over the CPUs as the kernel does.
pub(crate) type Totals = [u64; STATES];

/// What the flushes so far cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct FlushCost {
    /// Flushes: for snapshots, and one each averaging period.
    pub flushes: u64,
    /// Records that were read because they had been updated.
    pub records: u64,
    /// Time of all flushes, ns.
    pub time_ns: u64,
    /// The longest flush, ns.
    pub longest_ns: u64,
}

/// The state of the flush between two rounds.
///
/// What the records gain is gathered at each flush, but turned into totals once a window: the weighting over CPUs is
/// not linear, so the length of its windows shows in the totals. They are the kernel's, one averaging period long.
/// In between, totals are shown with the open window weighed as it is so far.
#[derive(Debug)]
pub(crate) struct Flusher {
    records: Records,
    /// By CPU.
    lists: Vec<Lists>,
    sums: Sums,
    /// Number of the open window, from 1.
    window: u16,
    /// Number of the round in it.
    round: u8,
    last_ns: u64,
    opened_ns: u64,
    tick_ns: u64,
    slots: Vec<Slot>,
    /// Time whose readings were not used, ns, by record.
    unread: HashMap<usize, u64>,
    /// Whether that was so in the open window.
    odd: bool,
    cursors: Vec<Cursor>,
    batch: Vec<Cursor>,
    pub(crate) hold_times: HoldTimes,
    pub(crate) cost: FlushCost,
    /// Times that a list's next record was not linked yet.
    pub(crate) contended: u64,
    /// Readings that were not used.
    pub(crate) rejected: u64,
}

/// Slots of one CPU.
#[derive(Clone, Debug, Default)]
struct Lists {
    /// With an active state, or that had one at the last flush.
    active: Vec<u32>,
    /// That gained something in the open window.
    window: Vec<u32>,
    /// How many of these were weighed in this round.
    weighed: usize,
    /// Interrupt time that slots gained in the open window; one may be here more than once.
    irq: Vec<(u32, u64)>,
}

/// One cgroup.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// At the end of the last window.
    closed: Totals,
    /// What has been shown: never falls, also where the open window's weights shift.
    shown: Totals,
}

/// A record on a detached list.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    cpu: usize,
    slot: u32,
}

/// One flush.
#[derive(Clone, Copy, Debug)]
struct Round {
    now: u64,
    elapsed: u64,
    closes: bool,
}

impl Flusher {
    pub(crate) fn new(maps: &MappedMaps, now_ns: u64, tick_ns: u64) -> Self {
        let (slots, cpus) = (maps.slots(), maps.cpu_count());
        Self {
            records: Records::new(slots * cpus),
            lists: vec![Lists::default(); cpus],
            sums: Sums::new(slots),
            window: 1,
            round: 0,
            last_ns: now_ns,
            opened_ns: now_ns,
            tick_ns,
            slots: vec![Slot::default(); slots],
            unread: HashMap::new(),
            odd: false,
            cursors: Vec::with_capacity(WIDTH),
            batch: Vec::with_capacity(BATCH + WIDTH),
            hold_times: HoldTimes::default(),
            cost: FlushCost::default(),
            contended: 0,
            rejected: 0,
        }
    }

    /// Totals as of the last flush.
    pub(crate) fn totals(&self, slot: u32) -> &Totals {
        &self.slots[slot as usize].shown
    }

    /// When the last flush read the clock.
    pub(crate) const fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Hands the interrupt time that a released slot has not told yet to its parent: all else the parent has itself.
    pub(crate) fn hand_up(&self, maps: &MappedMaps, slot: u32, parent: u32) {
        for cpu in 0..maps.cpu_count() {
            let of_slot = self.lists[cpu].irq.iter().filter(|(of, _)| *of == slot);
            let window: u64 = of_slot.map(|(_, irq)| irq).sum();
            let seen = self.records.irq(maps.index(cpu, slot));
            let untold = maps.times(cpu, slot)[IRQ].saturating_sub(seen) + window;
            if let Some(record) = maps.record(cpu as u32, parent).filter(|_| untold != 0) {
                maps.add_time(record, State::IrqFull, untold);
                maps.updated(record, cpu as u32, parent);
            }
        }
    }

    /// Forgets a slot that has been emptied.
    pub(crate) fn forget(&mut self, maps: &MappedMaps, slot: u32) {
        for cpu in 0..maps.cpu_count() {
            let index = maps.index(cpu, slot);
            let mut record = self.records.get(index);
            *record.seen() = [0; STATES];
            *record.opened() = [0; IRQ];
            // It stays in the lists that it is in.
            let mut meta = record.meta();
            meta.active = 0;
            meta.flags &= !UNREAD;
            record.set_meta(meta);
            self.lists[cpu].irq.retain(|(of, _)| *of != slot);
            self.unread.remove(&index);
        }
        self.slots[slot as usize] = Slot::default();
    }

    /// Takes in everything that has changed since the last flush.
    ///
    /// Costs what was updated or is active, not CPUs times cgroups.
    pub(crate) fn flush(&mut self, maps: &MappedMaps, slots: &Slots) {
        self.gather(maps, slots, false);
        let totals = &mut self.slots;
        self.sums.take(|slot, gained| {
            let Slot { closed, shown } = &mut totals[slot as usize];
            for (state, shown) in shown.iter_mut().enumerate() {
                *shown = (*shown).max(closed[state] + gained[state]);
            }
        });
        self.account();
    }

    /// As [`Self::flush`], and closes the window: what the kernel does once a period, and when a pressure file is
    /// read.
    pub(crate) fn close(&mut self, maps: &MappedMaps, slots: &Slots) {
        self.gather(maps, slots, true);
        let totals = &mut self.slots;
        self.sums.take(|slot, gained| {
            let Slot { closed, shown } = &mut totals[slot as usize];
            for (state, closed) in closed.iter_mut().enumerate() {
                *closed += gained[state];
                shown[state] = shown[state].max(*closed);
            }
        });
        self.opened_ns = self.last_ns;
        if self.window == u16::MAX {
            self.records.forget_windows();
            self.window = 0;
        }
        self.window += 1;
        self.odd = self.has_unread();
        self.account();
    }

    /// Whether the last round left readings unused, which a later one makes up for.
    pub(crate) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Notes what the round took.
    fn account(&mut self) {
        let took = now_ns().saturating_sub(self.last_ns);
        self.cost.flushes += 1;
        self.cost.time_ns += took;
        self.cost.longest_ns = self.cost.longest_ns.max(took);
    }

    /// Reads what has changed and sums up the open window.
    fn gather(&mut self, maps: &MappedMaps, slots: &Slots, closes: bool) {
        let now = now_ns();
        self.round = self.round.wrapping_add(1);
        // The kernel weighs in whole jiffies over a period. A window that is still open is weighed in units that are
        // shorter by as much: or a young one would weigh nothing.
        let window = now.saturating_sub(self.opened_ns);
        let unit = if closes {
            self.tick_ns
        } else {
            let unit = u128::from(self.tick_ns) * u128::from(window) / u128::from(period_ns(self.tick_ns));
            (unit as u64).clamp(1, self.tick_ns)
        };
        self.sums.begin(window, unit, maps.cpu_count(), self.odd);
        let round = Round {
            now,
            elapsed: now.saturating_sub(self.last_ns),
            closes,
        };
        self.walk(maps, &round);
        for cpu in 0..maps.cpu_count() {
            self.finish(maps, cpu, slots, &round);
        }
        self.last_ns = now;
    }
}
