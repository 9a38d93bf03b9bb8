//! The flush: per-CPU updated lists are detached, one exchange each, and walked in private.
//!
//! Modelled on the kernel's cgroup rstat after its lock was split up (kernel/cgroup/rstat.c): what updaters can
//! meet is the exchange alone. Its time is kept as a histogram, see [`HoldTimes`].

use std::sync::atomic::{Ordering::SeqCst, fence};

use psi_common::{
    account::{Records as _, total_at},
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
#[derive(Debug)]
pub(crate) struct Flusher {
    /// Last total of each record and state.
    seen: Vec<Totals>,
    /// States that were active at the last look: bit s for `State::ALL[s]`.
    active: Vec<u8>,
    /// Records with an active state, by CPU.
    active_list: Vec<Vec<u32>>,
    /// Flush round in which a record was last on the list.
    round_of: Vec<u32>,
    round: u32,
    last_ns: u64,
    /// Time of one unit of weight in this round, ns.
    unit_ns: u64,
    tick_ns: u64,
    totals: Vec<Totals>,
    sums: Vec<Sum>,
    touched: Vec<u32>,
    irq: Vec<u64>,
    nonidle: Vec<u64>,
    pub(crate) hold_times: HoldTimes,
    /// Times that a list's next record was not linked yet.
    pub(crate) contended: u64,
    /// Readings that were not used.
    pub(crate) rejected: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    weight: u64,
    weighted: [u128; STATES],
    touched: bool,
}

impl Flusher {
    pub(crate) fn new(maps: &MappedMaps, now_ns: u64, tick_ns: u64) -> Self {
        let (slots, cpus) = (maps.slots(), maps.cpu_count());
        Self {
            seen: vec![[0; STATES]; slots * cpus],
            active: vec![0; slots * cpus],
            active_list: vec![Vec::new(); cpus],
            round_of: vec![0; slots * cpus],
            round: 0,
            last_ns: now_ns,
            unit_ns: tick_ns,
            tick_ns,
            totals: vec![[0; STATES]; slots],
            sums: vec![Sum::default(); slots],
            touched: Vec::new(),
            irq: vec![0; slots],
            nonidle: vec![0; slots],
            hold_times: HoldTimes::default(),
            contended: 0,
            rejected: 0,
        }
    }

    pub(crate) fn totals(&self, slot: u32) -> &Totals {
        &self.totals[slot as usize]
    }

    /// When the last flush read the clock.
    pub(crate) const fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Hands the interrupt time that a released slot has not told yet to its parent: all else the parent has itself.
    pub(crate) fn hand_up(&self, maps: &MappedMaps, slot: u32, parent: u32) {
        for cpu in 0..maps.cpu_count() {
            let told = self.seen[maps.index(cpu, slot)][IRQ];
            let untold = maps.times(cpu, slot)[IRQ].saturating_sub(told);
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
            self.seen[index] = [0; STATES];
            self.active[index] = 0;
        }
        self.totals[slot as usize] = [0; STATES];
    }

    /// Takes in everything that has changed since the last flush.
    ///
    /// Costs what was updated or is active, not CPUs times cgroups.
    pub(crate) fn flush(&mut self, maps: &MappedMaps, slots: &Slots) {
        let now = now_ns();
        // The kernel weighs in whole jiffies over windows of its averaging period. A shorter window is weighed in
        // units that are shorter by as much: or short windows would weigh nothing.
        let window = now.saturating_sub(self.last_ns);
        self.unit_ns = (u128::from(self.tick_ns) * u128::from(window) / u128::from(period_ns(self.tick_ns))) as u64;
        self.unit_ns = self.unit_ns.clamp(1, self.tick_ns);
        self.round = self.round.wrapping_add(1);
        for cpu in 0..maps.cpu_count() {
            let mut deltas = self.flush_cpu(maps, cpu, now);
            self.sum_up(slots, &mut deltas);
        }
        for slot in self.touched.drain(..) {
            let sum = std::mem::take(&mut self.sums[slot as usize]);
            for (total, weighted) in self.totals[slot as usize].iter_mut().zip(sum.weighted) {
                *total += (weighted / u128::from(sum.weight.max(1))) as u64;
            }
        }
        self.last_ns = now;
    }

    /// What the records of one CPU gained.
    fn flush_cpu(&mut self, maps: &MappedMaps, cpu: usize, now: u64) -> Vec<(u32, Totals)> {
        let before = now_ns();
        let mut next = maps.detach_updated(cpu);
        self.hold_times.add(now_ns() - before);
        let mut deltas = Vec::new();
        let mut still_active = Vec::new();
        let mut bound = now_ns();
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
            if deltas.len() % BATCH == 0 {
                bound = now_ns();
            }
            deltas.push((slot, self.read(maps, cpu, slot, now, bound)));
            let index = maps.index(cpu, slot);
            self.round_of[index] = self.round;
            if self.active[index] != 0 {
                still_active.push(slot);
            }
        }
        // What is active and was not touched needs no read: it grew with the clock.
        for slot in std::mem::take(&mut self.active_list[cpu]) {
            let index = maps.index(cpu, slot);
            let active = self.active[index];
            if self.round_of[index] == self.round || active == 0 {
                continue;
            }
            self.round_of[index] = self.round;
            let mut delta = [0; STATES];
            for (state, delta) in delta
                .iter_mut()
                .enumerate()
                .filter(|(state, _)| active >> state & 1 != 0)
            {
                *delta = now.saturating_sub(self.last_ns);
                self.seen[index][state] += *delta;
            }
            deltas.push((slot, delta));
            still_active.push(slot);
        }
        self.active_list[cpu] = still_active;
        deltas
    }

    /// Reads a record: what each state gained since the last look.
    fn read(&mut self, maps: &MappedMaps, cpu: usize, slot: u32, now: u64, bound: u64) -> Totals {
        let index = maps.index(cpu, slot);
        let mut delta = [0; STATES];
        let mut times = maps.times(cpu, slot);
        for state in 0..STATES {
            let seen = self.seen[index][state];
            let most = bound.saturating_sub(self.last_ns) + LATE_ADD_NS;
            let mut gained = total_at(times[state], now).wrapping_sub(seen) as i64;
            // Two adds that landed in the opposite order show as a total out of range, for nanoseconds.
            for _ in 0..3 {
                if -(most as i64) <= gained && gained <= most as i64 {
                    break;
                }
                times = maps.times(cpu, slot);
                gained = total_at(times[state], now_ns()).wrapping_sub(seen) as i64;
            }
            if gained > most as i64 || gained < -(most as i64) {
                self.rejected += 1;
                gained = 0;
            }
            let is_active = (times[state] as i64) < 0;
            self.active[index] = self.active[index] & !(1 << state) | u8::from(is_active) << state;
            // Below zero: the state began after `now` was read.
            delta[state] = gained.max(0) as u64;
            self.seen[index][state] = seen + delta[state];
        }
        delta
    }

    /// Weights one CPU's deltas by its non-idle time in jiffies (collect_percpu_times, kernel/sched/psi.c); before
    /// that interrupt time is summed up the tree, which the BPF side charges to the task's own cgroup alone.
    fn sum_up(&mut self, slots: &Slots, deltas: &mut Vec<(u32, Totals)>) {
        let own = deltas.len();
        for n in 0..own {
            let (slot, delta) = deltas[n];
            self.nonidle[slot as usize] = delta[NONIDLE];
            if delta[IRQ] == 0 {
                continue;
            }
            let mut at = Some(slot);
            while let Some(slot) = at {
                self.irq[slot as usize] += delta[IRQ];
                at = slots.parent(slot);
                if let Some(parent) = at {
                    deltas.push((parent, [0; STATES]));
                }
            }
        }
        for (n, (slot, delta)) in deltas.iter_mut().enumerate() {
            let slot_index = *slot as usize;
            let weight = self.nonidle[slot_index] / self.unit_ns;
            delta[IRQ] = std::mem::take(&mut self.irq[slot_index]);
            let sum = &mut self.sums[slot_index];
            if !sum.touched {
                sum.touched = true;
                self.touched.push(*slot);
            }
            if n < own {
                sum.weight += weight;
            }
            for (weighted, delta) in sum.weighted.iter_mut().zip(delta) {
                *weighted += u128::from(*delta) * u128::from(weight);
            }
        }
        for (slot, _) in deltas {
            self.nonidle[*slot as usize] = 0;
        }
    }
}
