//! Cgroups whose times stand still, with the meaning of 0 and 1 in the kernel's `cgroup.pressure`
//! (kernel/sched/psi.c, psi_group_change and psi_cgroup_restart): counts go on, and once it is enabled again the states
//! are those that the counts tell, from that moment on.
//!
//! There is no lock to keep updaters out, and one that looked at the flag before it was set may add to a time after. So what
//! the times must be is looked at again later, and put right by atomic adds. While a cgroup is disabled its times must be
//! what they were. When it has been enabled each integral must hold one entry without an exit if its state is on, and none if
//! it is off; how many it holds can be told from the integral, since an entry takes 2^62 off and an exit gives it back.

use psi_common::{
    account::{ENTRY, Records as _, ended_at, unmatched_entries},
    layout::State,
    word::{occupied, states},
};

use crate::mapped::{MappedMaps, now_ns};

const STATES: usize = State::ALL.len();
/// How long after a cgroup was enabled its times are looked at: far longer than any updater takes.
const WATCH_NS: u64 = 2_000_000_000;
/// Looks at a record that must agree before anything is corrected: an event that is under way is no fault.
const LOOKS: usize = 4;
/// Looks in which no event may come between, out of which those are taken.
const TRIES: usize = 64;

/// How many entries each integral lacks; below 0 it has too many.
type Faults = [i8; STATES];

/// The cgroups that are disabled, and those that were not long ago.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    disabled: Vec<Disabled>,
    enabled: Vec<Enabled>,
}

#[derive(Debug)]
struct Disabled {
    slot: u32,
    /// What the integrals must be, by CPU. Not of interrupt time, which an ancestor may need.
    times: Vec<[u64; STATES]>,
}

#[derive(Debug)]
struct Enabled {
    slot: u32,
    since_ns: u64,
    /// What the last round found, by CPU.
    faults: Vec<Faults>,
}

impl Switches {
    /// Whether a cgroup's times stand still.
    pub(crate) fn is_disabled(&self, slot: u32) -> bool {
        self.disabled.iter().any(|disabled| disabled.slot == slot)
    }

    /// Lets a cgroup's times stand still.
    pub(crate) fn disable(&mut self, maps: &MappedMaps, slot: u32) {
        if self.is_disabled(slot) {
            return;
        }
        self.enabled.retain(|enabled| enabled.slot != slot);
        for cpu in 0..maps.cpu_count() {
            maps.set_disabled(cpu, slot, true);
        }
        let now = now_ns();
        let times = (0..maps.cpu_count()).map(|cpu| maps.times(cpu, slot).map(|time| ended_at(time, now)));
        let disabled = Disabled {
            slot,
            times: times.collect(),
        };
        disabled.settle(maps);
        self.disabled.push(disabled);
    }

    /// Lets a cgroup's times go on.
    pub(crate) fn enable(&mut self, maps: &MappedMaps, slot: u32) {
        let Some(at) = self.disabled.iter().position(|disabled| disabled.slot == slot) else {
            return;
        };
        self.disabled.swap_remove(at).settle(maps);
        let cpus = 0..maps.cpu_count();
        for cpu in cpus.clone() {
            maps.set_disabled(cpu, slot, false);
        }
        let now = now_ns();
        for cpu in cpus.clone() {
            let on = states(occupied(maps.word(cpu, slot)));
            let entry = |state: State| (on >> state as u32 & 1) * now.wrapping_add(ENTRY).wrapping_neg();
            add(maps, cpu, slot, State::ALL.map(entry));
        }
        self.enabled.push(Enabled {
            slot,
            since_ns: now,
            faults: cpus.map(|_| [0; STATES]).collect(),
        });
    }

    /// Puts right what updaters changed that had looked at the flag before it changed. To be called before each flush.
    ///
    /// Says whether no fault was found where a cgroup was enabled.
    pub(crate) fn settle(&mut self, maps: &MappedMaps) -> bool {
        for disabled in &self.disabled {
            disabled.settle(maps);
        }
        let now = now_ns();
        let mut are_right = true;
        self.enabled.retain_mut(|enabled| {
            let is_right = enabled.settle(maps);
            are_right &= is_right;
            !is_right || now.saturating_sub(enabled.since_ns) < WATCH_NS
        });
        are_right
    }

    /// Forgets a slot that has been emptied.
    pub(crate) fn forget(&mut self, slot: u32) {
        self.disabled.retain(|disabled| disabled.slot != slot);
        self.enabled.retain(|enabled| enabled.slot != slot);
    }
}

impl Disabled {
    fn settle(&self, maps: &MappedMaps) {
        for (cpu, times) in self.times.iter().enumerate() {
            let seen = maps.times(cpu, self.slot);
            let mut wrong = [0; STATES];
            for (n, wrong) in wrong.iter_mut().enumerate() {
                if State::ALL[n] != State::IrqFull {
                    *wrong = times[n].wrapping_sub(seen[n]);
                }
            }
            add(maps, cpu, self.slot, wrong);
        }
    }
}

impl Enabled {
    /// Corrects what two rounds in a row found; says whether this one found nothing.
    fn settle(&mut self, maps: &MappedMaps) -> bool {
        let mut is_right = true;
        for (cpu, before) in self.faults.iter_mut().enumerate() {
            let mut faults = faults(maps, cpu, self.slot);
            is_right &= faults == [0; STATES];
            let mut correction = [0; STATES];
            for (n, fault) in faults.iter_mut().enumerate() {
                if *fault != 0 && *fault == before[n] {
                    // The ones too many, and those that are missing, were at about that time.
                    let entry = self.since_ns.wrapping_add(ENTRY).wrapping_neg();
                    correction[n] = entry.wrapping_mul(i64::from(*fault) as u64);
                    *fault = 0;
                }
            }
            *before = faults;
            add(maps, cpu, self.slot, correction);
        }
        is_right
    }
}

/// How many entries each integral lacks, as some looks at the record all tell; 0 where they do not.
fn faults(maps: &MappedMaps, cpu: usize, slot: u32) -> Faults {
    let mut all: Option<Faults> = None;
    let looks = (0..TRIES).filter_map(|_| look(maps, cpu, slot)).take(LOOKS);
    for (word, times) in looks {
        let on = states(occupied(word));
        let mut seen = [0; STATES];
        for (n, state) in State::ALL.into_iter().enumerate() {
            if state != State::IrqFull {
                let wanted = (on >> state as u32 & 1) as i8;
                seen[n] = wanted - unmatched_entries(times[n]);
            }
        }
        let both = all.get_or_insert(seen);
        for (fault, seen) in both.iter_mut().zip(seen) {
            if *fault != seen {
                *fault = 0;
            }
        }
    }
    all.unwrap_or_default()
}

/// A record's word, and its times while that was the word; none if it changed.
fn look(maps: &MappedMaps, cpu: usize, slot: u32) -> Option<(u64, [u64; STATES])> {
    let word = maps.word(cpu, slot);
    let times = maps.times(cpu, slot);
    (maps.word(cpu, slot) == word).then_some((word, times))
}

/// Adds to a record's integrals, and lets the flush read it anew if that changes any.
fn add(maps: &MappedMaps, cpu: usize, slot: u32, deltas: [u64; STATES]) {
    let Some(record) = maps.record(cpu as u32, slot).filter(|_| deltas != [0; STATES]) else {
        return;
    };
    for (state, delta) in State::ALL.into_iter().zip(deltas) {
        if delta != 0 {
            maps.add_time(record, state, delta);
        }
    }
    maps.updated(record, cpu as u32, slot);
}
