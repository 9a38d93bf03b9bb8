//! The accounting: how a task's change of state moves counts and time integrals, up the tree.
//!
//! No locks. Every update is one atomic add, and adds commute, so two CPUs may race in any order: a count can
//! be off for the nanoseconds between an exchange and its add, and is right when both have landed.

use crate::layout::{Counter, MAX_LEVEL, State};
use crate::queue_clock::QueueClock;
use crate::word::{Parked, Running, contribution, is_past_limit, occupied, parent_delta, states};

/// An event's time in ns of CLOCK_MONOTONIC, read when the first state flips, so that one event has one
/// timestamp and an event that flips nothing reads no clock; until then what the run queue's clock said, if that is
/// known. Also tells whether a count went past its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(u64);

impl Stamp {
    /// Not read yet.
    pub const UNREAD: Self = Self(0);
    const PAST_LIMIT: u64 = 1 << 63;

    /// A time in ns of CLOCK_MONOTONIC, below 2^61.
    #[inline(always)]
    pub const fn at(now: u64) -> Self {
        Self(now.wrapping_add(ENTRY))
    }

    /// Not read yet, of a wakeup.
    #[inline(always)]
    pub const fn unread(clock: QueueClock) -> Self {
        Self(clock.into_raw())
    }

    #[inline(always)]
    fn past_limit(self) -> bool {
        self.0 & Self::PAST_LIMIT != 0
    }

    /// The stamp as one register, for a call between BPF functions.
    #[inline(always)]
    pub const fn into_raw(self) -> u64 {
        self.0
    }

    /// The reverse of [`Self::into_raw`].
    #[inline(always)]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }
}

/// The memory that the accounting works on.
pub trait Records {
    /// A handle on one record.
    type Record: Copy;

    /// The record of `cpu` and `slot`; `None` if there is none.
    fn record(&self, cpu: u32, slot: u32) -> Option<Self::Record>;
    /// The parent's slot; `None` at the root.
    fn parent(&self, slot: u32) -> Option<u32>;
    /// Adds to the packed word, wrapping, and returns what it was. A full barrier.
    fn add_word(&self, record: Self::Record, delta: u64) -> u64;
    /// Adds ns to a time integral, wrapping.
    fn add_time(&self, record: Self::Record, state: State, delta: u64);
    /// Whether times go on in this record: a disabled one only counts.
    fn is_enabled(&self, record: Self::Record) -> bool;
    /// Puts the record on its CPU's updated list unless it is there.
    fn updated(&self, record: Self::Record, cpu: u32, slot: u32);
    /// ns of CLOCK_MONOTONIC, below 2^61: now, or when a wakeup was, by its run queue's clock.
    fn now(&self, clock: QueueClock) -> u64;
    /// Counts something missed or repaired.
    fn count(&self, counter: Counter);
    /// [`walk`], as a function of its own where inlining it would cost too much.
    fn add(&self, cpu: u32, slot: u32, delta: u64, stamp: Stamp) -> Stamp;
}

/// A word that is changed by exchange only.
pub trait Cell: Copy {
    /// Puts `new` in and returns what was there. A full barrier.
    fn swap(&self, new: u64) -> u64;
    /// Puts `new` in if `old` is there; says whether it did.
    fn replace(&self, old: u64, new: u64) -> bool;
}

/// Adds `delta` to the word of (`cpu`, `slot`) and carries what flips between zero and not zero to the ancestors.
///
/// A parent does not count tasks of its children: it counts, per field, the children for which that field is not
/// zero. So the walk ends at the first ancestor where nothing flips.
#[inline(always)]
pub fn walk<R: Records>(records: &R, cpu: u32, slot: u32, delta: u64, stamp: Stamp) -> Stamp {
    let mut now = stamp.0 & !Stamp::PAST_LIMIT;
    let mut slot = slot;
    let mut delta = delta;
    let mut past_limit = 0;
    let mut level = 0;
    while level <= MAX_LEVEL {
        let Some(record) = records.record(cpu, slot) else { break };
        let old = records.add_word(record, delta);
        let new = old.wrapping_add(delta);
        if level == 0 && is_past_limit(new) {
            past_limit = Stamp::PAST_LIMIT;
        }
        let (before, after) = (occupied(old), occupied(new));
        if before == after {
            return Stamp(now | past_limit);
        }
        let (was, is) = (states(before), states(after));
        let changed = was ^ is;
        if changed != 0 && records.is_enabled(record) {
            if now < ENTRY {
                now = records.now(QueueClock::from_raw(now)).wrapping_add(ENTRY);
            }
            flip(records, record, State::CpuSome, changed, is, now);
            flip(records, record, State::CpuFull, changed, is, now);
            flip(records, record, State::Nonidle, changed, is, now);
            if changed & IO_MEMORY != 0 {
                flip(records, record, State::IoSome, changed, is, now);
                flip(records, record, State::IoFull, changed, is, now);
                flip(records, record, State::MemSome, changed, is, now);
                flip(records, record, State::MemFull, changed, is, now);
            }
            records.updated(record, cpu, slot);
        }
        let Some(parent) = records.parent(slot) else {
            return Stamp(now | past_limit);
        };
        slot = parent;
        delta = parent_delta(before, after);
        level += 1;
    }
    records.count(Counter::BrokenWalks);
    Stamp(now | past_limit)
}

/// The states in a record's second cacheline: most events touch none of them.
const IO_MEMORY: u64 =
    1 << State::IoSome as u32 | 1 << State::IoFull as u32 | 1 << State::MemSome as u32 | 1 << State::MemFull as u32;

#[inline(always)]
fn flip<R: Records>(records: &R, record: R::Record, state: State, changed: u64, is: u64, now: u64) {
    if changed >> state as u32 & 1 != 0 {
        let minus = (is >> state as u32 & 1).wrapping_neg();
        records.add_time(record, state, (now ^ minus).wrapping_sub(minus));
    }
}

/// What an entry takes off a time integral beside the time, and an exit gives back.
///
/// Of two events that race one can read the clock before the other's add and land after it. Where one turns a state on
/// and the other turns it off, the exit's time is then before the entry's, and a total that was 0 is below 0 for good.
/// That must not look like a state that is on.
pub const ENTRY: u64 = 1 << 62;

/// Whether the state of a time integral is on.
#[inline(always)]
pub const fn is_on(integral: u64) -> bool {
    (integral as i64) < -(ENTRY as i64 / 2)
}

/// How many entries of a state a time integral holds beyond the exits: -2 to 2. All but 0 and 1 are faults, or two adds
/// that landed the other way round.
#[inline(always)]
pub const fn unmatched_entries(integral: u64) -> i8 {
    // The nearest multiple of what an entry takes off.
    match integral.wrapping_neg().wrapping_add(ENTRY / 2) >> 62 {
        0 => 0,
        1 => 1,
        3 => -1,
        // Two of either. The times that came with them are larger than any total.
        _ if (integral.wrapping_sub(2 * ENTRY) as i64) < 0 => 2,
        _ => -2,
    }
}

/// A time integral without the entries that it holds beyond the exits, as if all of them ended at `now`.
#[inline(always)]
pub const fn ended_at(integral: u64, now: u64) -> u64 {
    let entries = unmatched_entries(integral) as i64 as u64;
    integral.wrapping_add(ENTRY.wrapping_add(now).wrapping_mul(entries))
}

/// Reads a time integral as of `now`: ns spent in the state so far, wrapping: below 0 by as much as events raced, or
/// where the state is on since after `now`. The caller clamps it to the last total.
#[inline(always)]
pub const fn total_at(integral: u64, now: u64) -> u64 {
    if is_on(integral) {
        integral.wrapping_add(ENTRY).wrapping_add(now)
    } else {
        integral
    }
}

/// Puts a task that is not running into a new state, whatever its state was.
#[inline(always)]
pub fn park<R: Records, C: Cell>(records: &R, task: C, new: Parked, stamp: Stamp) -> Stamp {
    let old = Parked(task.swap(new.0));
    exchange(records, task, old, new, stamp)
}

/// [`park`] if the task's state is still `old`; says whether it was.
#[inline(always)]
pub fn park_if<R: Records, C: Cell>(records: &R, task: C, old: Parked, new: Parked) -> bool {
    let replaced = task.replace(old.0, new.0);
    if replaced {
        exchange(records, task, old, new, Stamp::UNREAD);
    }
    replaced
}

/// The counts' part of [`park`]: where both states count in the same record it is one add.
#[inline(always)]
fn exchange<R: Records, C: Cell>(records: &R, task: C, old: Parked, new: Parked, stamp: Stamp) -> Stamp {
    let mut stamp = stamp;
    let mut take = contribution(old.class());
    let put = contribution(new.class());
    if take != 0 && put != 0 && !(old.cpu() == new.cpu() && old.slot() == new.slot()) {
        stamp = records.add(old.cpu(), old.slot(), take.wrapping_neg(), stamp);
        take = 0;
    }
    let place = if put != 0 { new } else { old };
    let delta = put.wrapping_sub(take);
    if delta == 0 {
        return stamp;
    }
    stamp = records.add(place.cpu(), place.slot(), delta, stamp);
    refuse(records, task, new, stamp)
}

/// Takes a task's contribution back if a count went past its limit: it is then known to contribute nothing, so
/// nothing is taken back later, until its next event tries again.
#[inline(always)]
fn refuse<R: Records, C: Cell>(records: &R, task: C, new: Parked, stamp: Stamp) -> Stamp {
    let put = contribution(new.class());
    if !stamp.past_limit() || put == 0 || !task.replace(new.0, Parked::NOTHING.0) {
        return stamp;
    }
    records.count(Counter::Overflows);
    records.add(new.cpu(), new.slot(), put.wrapping_neg(), stamp)
}

/// A context switch on `cpu`.
///
/// `running` is the CPU's own word. Of the task that stops, the word (none if it is the idle task or unknown) and its new
/// state; of the task that starts, the word (none likewise) and what it contributes while running; `stamp` is the event's,
/// read or not. What the CPU had on record is taken back exactly, whoever it belonged to, and is returned.
#[inline(always)]
pub fn switch<R: Records, C: Cell>(
    records: &R,
    cpu: u32,
    running: C,
    (prev, parked): (Option<C>, Parked),
    (next, new): (Option<C>, Running),
    stamp: Stamp,
) -> Running {
    let old = Running(running.swap(new.0));
    let mut stamp = stamp;

    let waited = next.map_or(Parked::NOTHING, |next| Parked(next.swap(Parked::ON_CPU.0)));
    let mut next_delta = contribution(new.class());
    let take = contribution(waited.class());
    if waited.cpu() == cpu && waited.slot() == new.slot() {
        next_delta = next_delta.wrapping_sub(take);
    } else if take != 0 {
        stamp = records.add(waited.cpu(), waited.slot(), take.wrapping_neg(), stamp);
    }

    let stale = prev.map_or(Parked::NOTHING, |prev| Parked(prev.swap(parked.0)));
    if stale.class() != 0 {
        // Its switch to this CPU was lost: what it contributed while it waited is still counted.
        stamp = records.add(
            stale.cpu(),
            stale.slot(),
            contribution(stale.class()).wrapping_neg(),
            stamp,
        );
    }
    let put = contribution(parked.class());
    let mut prev_slot = old.slot();
    let mut prev_delta = contribution(old.class()).wrapping_neg();
    if put != 0 && parked.slot() != prev_slot {
        if prev_delta != 0 {
            stamp = records.add(cpu, prev_slot, prev_delta, stamp);
        }
        prev_delta = 0;
        prev_slot = parked.slot();
    }
    prev_delta = prev_delta.wrapping_add(put);

    if prev_slot == new.slot() {
        prev_delta = prev_delta.wrapping_add(next_delta);
    } else if next_delta != 0 {
        // Next first: a common ancestor then never sees the CPU without a running task.
        stamp = records.add(cpu, new.slot(), next_delta, stamp);
    }
    if prev_delta != 0 {
        stamp = records.add(cpu, prev_slot, prev_delta, stamp);
        if let Some(prev) = prev {
            refuse(records, prev, parked, stamp);
        }
    }
    old
}

/// Changes what the running task contributes if `running` still says `old`; says whether it did.
///
/// For changes from within the task itself (memory stalls), from interrupts and from the audit.
#[inline(always)]
pub fn rerun<R: Records, C: Cell>(records: &R, cpu: u32, running: C, old: Running, new: Running) -> bool {
    if !running.replace(old.0, new.0) {
        return false;
    }
    let (take, put) = (contribution(old.class()), contribution(new.class()));
    let mut stamp = Stamp::UNREAD;
    let mut delta = put;
    if old.slot() == new.slot() {
        delta = put.wrapping_sub(take);
    } else if take != 0 {
        stamp = records.add(cpu, old.slot(), take.wrapping_neg(), stamp);
    }
    if delta != 0 {
        records.add(cpu, new.slot(), delta, stamp);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_without_exits_are_told_from_the_integral() {
        let (boot, long_after) = (5_000, 1 << 57);
        for (total, times) in [
            (0, [boot, boot + 10]),
            (boot - 1, [boot; 2]),
            (1 << 40, [long_after; 2]),
        ] {
            let integral = |entries: &[u64], exits: &[u64]| {
                let sum = |times: &[u64]| times.iter().fold(0_u64, |sum, &time| sum.wrapping_add(time + ENTRY));
                u64::wrapping_add(total, sum(exits)).wrapping_sub(sum(entries))
            };
            let with = |entries: &[u64], exits: &[u64]| unmatched_entries(integral(entries, exits));
            assert_eq!(with(&[], &[]), 0);
            assert_eq!(with(&times[..1], &[]), 1);
            assert_eq!(with(&times, &[]), 2);
            assert_eq!(with(&[], &times[..1]), -1);
            assert_eq!(with(&[], &times), -2);
            assert_eq!(with(&times, &times[..1]), 1);
            let end = times[1] + 3;
            for (entries, exits, lasted) in [
                (&times[..0], &times[..0], 0),
                (&times[..1], &times[..0], end - times[0]),
                (&times[..], &times[..0], 2 * end - times[0] - times[1]),
                (&times[..0], &times[..1], (times[0]).wrapping_sub(end)),
            ] {
                let ended = ended_at(integral(entries, exits), end);
                assert_eq!(ended, u64::wrapping_add(total, lasted), "{entries:?} {exits:?}");
            }
        }
        // Events that raced leave a total a little below zero.
        assert_eq!(unmatched_entries(0_u64.wrapping_sub(40)), 0);
    }
}
