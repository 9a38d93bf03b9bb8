//! The flush: per-CPU updated lists are detached, one exchange each, and walked in private.
//!
//! Modelled on the kernel's cgroup rstat after its lock was split up (kernel/cgroup/rstat.c): what updaters can
//! meet is the exchange alone. Its time is kept as a histogram, see [`HoldTimes`].

use std::sync::atomic::{Ordering::SeqCst, fence};

use psi_common::{
    account::{Records as _, is_on, total_at},
    layout::State,
};

use crate::{
    averages::period_ns,
    mapped::{MappedMaps, Next, now_ns},
    slots::Slots,
};

/// States with a time integral, as indices into per-record arrays in the order of [`State::ALL`].
const STATES: usize = State::ALL.len();
const NONIDLE: usize = 2;
const IRQ: usize = 7;
/// Records walked between two looks at the clock.
const BATCH: usize = 64;
/// A reading may be that much lower than the last one because an event's add came late.
const LATE_ADD_NS: u64 = 1_000_000;

/// Totals of one cgroup, ns, in the order of [`State::ALL`], weighted over the CPUs as the kernel does.
pub(crate) type Totals = [u64; STATES];

/// How long the exchange that detaches a list took: counts in the bins of [`HoldTimes::BINS_US`].
#[derive(Clone, Copy, Debug, Default)]
pub struct HoldTimes {
    /// One count a bin; the last holds everything above.
    pub counts: [u64; 14],
}

impl HoldTimes {
    /// Upper bounds of the bins in us, but for the last, which has none.
    pub const BINS_US: [u64; 13] = [1, 5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90];

    fn add(&mut self, ns: u64) {
        let bin = Self::BINS_US
            .iter()
            .position(|&us| ns < us * 1000)
            .unwrap_or(Self::BINS_US.len());
        self.counts[bin] += 1;
    }
}

/// The state of the flush between two rounds.
///
/// What the records gain is gathered at each flush, but turned into totals once a window: the weighting over CPUs is
/// not linear, so the length of its windows shows in the totals. They are the kernel's, one averaging period long.
/// In between, totals are shown with the open window weighed as it is so far.
#[derive(Debug)]
pub(crate) struct Flusher {
    records: Vec<Record>,
    /// By CPU.
    lists: Vec<Lists>,
    round: u32,
    last_ns: u64,
    opened_ns: u64,
    tick_ns: u64,
    slots: Vec<Slot>,
    /// Slots that the current summing up has met.
    touched: Vec<u32>,
    pub(crate) hold_times: HoldTimes,
    /// Times that a list's next record was not linked yet.
    pub(crate) contended: u64,
    /// Readings that were not used.
    pub(crate) rejected: u64,
}

/// One CPU and cgroup.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// Last total.
    seen: Totals,
    /// Gained in the open window.
    window: Totals,
    /// States that were active at the last look: bit s for `State::ALL[s]`.
    active: u8,
    /// Whether it is in [`Lists::window`].
    in_window: bool,
    /// Flush round that last met it.
    round: u32,
    /// Time whose readings were not used, ns.
    unread_ns: u64,
}

/// Slots of one CPU.
#[derive(Clone, Debug, Default)]
struct Lists {
    /// With an active state.
    active: Vec<u32>,
    /// That gained something in the open window.
    window: Vec<u32>,
}

/// One cgroup.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// At the end of the last window.
    closed: Totals,
    /// What has been shown: never falls, also where the open window's weights shift.
    shown: Totals,
    /// While summing up: over the CPUs.
    weight: u64,
    weighted: [u128; STATES],
    touched: bool,
    /// While summing up one CPU: the interrupt time of it and all below.
    irq: u64,
}

impl Flusher {
    pub(crate) fn new(maps: &MappedMaps, now_ns: u64, tick_ns: u64) -> Self {
        let (slots, cpus) = (maps.slots(), maps.cpu_count());
        Self {
            records: vec![Record::default(); slots * cpus],
            lists: vec![Lists::default(); cpus],
            round: 0,
            last_ns: now_ns,
            opened_ns: now_ns,
            tick_ns,
            slots: vec![Slot::default(); slots],
            touched: Vec::new(),
            hold_times: HoldTimes::default(),
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
            let Record { seen, window, .. } = self.records[maps.index(cpu, slot)];
            let untold = maps.times(cpu, slot)[IRQ].saturating_sub(seen[IRQ]) + window[IRQ];
            if let Some(record) = maps.record(cpu as u32, parent).filter(|_| untold != 0) {
                maps.add_time(record, State::IrqFull, untold);
                maps.updated(record, cpu as u32, parent);
            }
        }
    }

    /// Forgets a slot that has been emptied.
    pub(crate) fn forget(&mut self, maps: &MappedMaps, slot: u32) {
        for cpu in 0..maps.cpu_count() {
            let record = &mut self.records[maps.index(cpu, slot)];
            *record = Record {
                in_window: record.in_window,
                round: record.round,
                ..Record::default()
            };
        }
        self.slots[slot as usize] = Slot::default();
    }

    /// Takes in everything that has changed since the last flush.
    ///
    /// Costs what was updated or is active, not CPUs times cgroups.
    pub(crate) fn flush(&mut self, maps: &MappedMaps, slots: &Slots) {
        self.gather(maps);
        // The kernel weighs in whole jiffies over a period. A window that is still open is weighed in units that are
        // shorter by as much: or a young one would weigh nothing.
        let window = u128::from(self.last_ns.saturating_sub(self.opened_ns));
        let unit = u128::from(self.tick_ns) * window / u128::from(period_ns(self.tick_ns));
        self.sum_up(slots, (unit as u64).clamp(1, self.tick_ns));
        for slot in std::mem::take(&mut self.touched) {
            let slot = &mut self.slots[slot as usize];
            let gained = slot.take_sum();
            for (n, shown) in slot.shown.iter_mut().enumerate() {
                *shown = (*shown).max(slot.closed[n] + gained[n]);
            }
        }
    }

    /// As [`Self::flush`], and closes the window: what the kernel does once a period, and when a pressure file is
    /// read.
    pub(crate) fn close(&mut self, maps: &MappedMaps, slots: &Slots) {
        self.gather(maps);
        self.sum_up(slots, self.tick_ns);
        for slot in std::mem::take(&mut self.touched) {
            let slot = &mut self.slots[slot as usize];
            let gained = slot.take_sum();
            for (n, closed) in slot.closed.iter_mut().enumerate() {
                *closed += gained[n];
                slot.shown[n] = slot.shown[n].max(*closed);
            }
        }
        for cpu in 0..maps.cpu_count() {
            for slot in self.lists[cpu].window.drain(..) {
                let record = &mut self.records[maps.index(cpu, slot)];
                record.window = [0; STATES];
                record.in_window = false;
            }
        }
        self.opened_ns = self.last_ns;
    }

    fn gather(&mut self, maps: &MappedMaps) {
        let now = now_ns();
        self.round = self.round.wrapping_add(1);
        for cpu in 0..maps.cpu_count() {
            self.gather_cpu(maps, cpu, now);
        }
        self.last_ns = now;
    }

    /// What the records of one CPU gained.
    fn gather_cpu(&mut self, maps: &MappedMaps, cpu: usize, now: u64) {
        let before = now_ns();
        let mut next = maps.detach_updated(cpu);
        let mut bound = now_ns();
        self.hold_times.add(bound - before);
        let was_active = std::mem::take(&mut self.lists[cpu].active);
        let mut walked = 0;
        while let Some(slot) = next {
            next = match maps.unlink(cpu, slot) {
                Next::Slot(slot) => Some(slot),
                Next::End => None,
                Next::Pending => {
                    // The updater was interrupted between its two stores. It is not waiting for us, we are for it.
                    self.contended += 1;
                    std::thread::yield_now();
                    continue;
                }
            };
            // Both barriers of rstat: the flag is cleared, then the values are read.
            fence(SeqCst);
            walked += 1;
            if walked % BATCH == 0 {
                bound = now_ns();
            }
            let gained = self.read(maps, cpu, slot, now, bound);
            self.gain(maps, cpu, slot, gained);
        }
        // What is active and was not touched needs no read: it grew with the clock.
        let elapsed = now.saturating_sub(self.last_ns);
        for slot in was_active {
            let record = &mut self.records[maps.index(cpu, slot)];
            if record.round == self.round || record.active == 0 {
                continue;
            }
            let mut gained = [0; STATES];
            for (state, gained) in gained.iter_mut().enumerate() {
                if record.active >> state & 1 != 0 {
                    *gained = elapsed;
                    record.seen[state] += elapsed;
                }
            }
            self.gain(maps, cpu, slot, gained);
        }
    }

    /// Notes what a record gained in this round.
    fn gain(&mut self, maps: &MappedMaps, cpu: usize, slot: u32, gained: Totals) {
        let record = &mut self.records[maps.index(cpu, slot)];
        record.round = self.round;
        for (window, gained) in record.window.iter_mut().zip(gained) {
            *window += gained;
        }
        if !std::mem::replace(&mut record.in_window, true) {
            self.lists[cpu].window.push(slot);
        }
        if record.active != 0 {
            self.lists[cpu].active.push(slot);
        }
    }

    /// Reads a record: what each state gained since the last look.
    fn read(&mut self, maps: &MappedMaps, cpu: usize, slot: u32, now: u64, bound: u64) -> Totals {
        let record = &mut self.records[maps.index(cpu, slot)];
        let mut delta = [0; STATES];
        let mut times = maps.times(cpu, slot);
        let mut bound = bound;
        let mut rejected = false;
        for state in 0..STATES {
            let mut tries = 0;
            let gained = loop {
                let gained = total_at(times[state], now).wrapping_sub(record.seen[state]) as i64;
                let most = bound.saturating_sub(self.last_ns) + record.unread_ns + LATE_ADD_NS;
                if gained.unsigned_abs() <= most {
                    break gained;
                }
                if tries == 3 {
                    self.rejected += 1;
                    rejected = true;
                    break 0;
                }
                // Two adds that landed in the opposite order show as a total out of range, for nanoseconds. Or this
                // thread was kept from reading, and what happened since is in the total.
                tries += 1;
                times = maps.times(cpu, slot);
                bound = now_ns();
            };
            let is_active = is_on(times[state]);
            record.active = record.active & !(1 << state) | u8::from(is_active) << state;
            // Below zero: the state began after `now` was read.
            delta[state] = gained.max(0) as u64;
            record.seen[state] += delta[state];
        }
        // What was not used is made up for by a later reading, which may then be larger by as much.
        record.unread_ns = if rejected {
            record.unread_ns + now.saturating_sub(self.last_ns)
        } else {
            0
        };
        delta
    }

    /// Weighs what each CPU gained in the open window by its non-idle time (collect_percpu_times,
    /// kernel/sched/psi.c); before that, interrupt time is summed up the tree: the BPF side charges it to the task's
    /// own cgroup alone. Leaves the sums in the slots that `touched` names.
    fn sum_up(&mut self, slots: &Slots, unit_ns: u64) {
        let Self {
            records,
            lists,
            slots: sums,
            touched,
            ..
        } = self;
        let width = sums.len();
        for (cpu, Lists { window, .. }) in lists.iter().enumerate() {
            let gained = |slot: u32| &records[cpu * width + slot as usize].window;
            let climb = |sums: &mut Vec<Slot>, visit: fn(&mut u64, u64)| {
                for &slot in window {
                    let irq = gained(slot)[IRQ];
                    let mut at = Some(slot).filter(|_| irq != 0);
                    while let Some(slot) = at {
                        visit(&mut sums[slot as usize].irq, irq);
                        at = slots.parent(slot);
                    }
                }
            };
            climb(sums, |sum, irq| *sum += irq);
            for &slot in window {
                let sum = &mut sums[slot as usize];
                let weight = gained(slot)[NONIDLE] / unit_ns;
                if !std::mem::replace(&mut sum.touched, true) {
                    touched.push(slot);
                }
                sum.weight += weight;
                for (state, weighted) in sum.weighted.iter_mut().enumerate() {
                    let gained = if state == IRQ { sum.irq } else { gained(slot)[state] };
                    *weighted += u128::from(gained) * u128::from(weight);
                }
            }
            // An ancestor that gained nothing on this CPU has no weight there: its share is dropped, as the kernel does.
            climb(sums, |sum, _| *sum = 0);
        }
    }
}

impl Slot {
    /// The weighted sum over the CPUs, which starts anew.
    fn take_sum(&mut self) -> Totals {
        let weight = u128::from(std::mem::take(&mut self.weight).max(1));
        self.touched = false;
        std::mem::take(&mut self.weighted).map(|weighted| (weighted / weight) as u64)
    }
}
