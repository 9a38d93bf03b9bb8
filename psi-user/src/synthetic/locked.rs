//! The flush as the kernel's rstat did it, with a lock a CPU that updaters take too: for comparison only.

use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
};

use psi_common::{
    account::{Records, Stamp, total_at, walk},
    layout::{Counter, State},
    queue_clock::QueueClock,
};

use super::Synthetic;
use crate::{
    flush::HoldTimes,
    mapped::{MappedMaps, Next, now_ns},
};

/// How long the lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// While the list is walked and all values are read: rstat before its series of 2023.
    Walk,
    /// While the list is taken apart; values are read after that: rstat since the series' first patch.
    Chain,
}

/// One lock a CPU, each in cachelines of its own.
#[derive(Debug)]
pub struct Locks(Vec<Lock>);

#[derive(Debug, Default)]
#[repr(align(128))]
struct Lock {
    taken: AtomicBool,
}

impl Locks {
    /// Locks of `cpus` CPUs.
    pub fn new(cpus: usize) -> Self {
        Self((0..cpus).map(|_| Lock::default()).collect())
    }
}

impl Lock {
    fn try_take(&self) -> bool {
        !self.taken.swap(true, SeqCst)
    }

    fn take(&self) {
        while !self.try_take() {
            while self.taken.load(SeqCst) {
                spin_loop();
            }
        }
    }

    fn release(&self) {
        self.taken.store(false, SeqCst);
    }
}

/// What an updater met.
#[derive(Debug, Default)]
pub struct Met {
    /// Records listed.
    pub listed: AtomicU64,
    /// Updates that found the lock taken.
    pub delayed: AtomicU64,
    /// The longest wait of these, ns.
    pub longest_ns: AtomicU64,
}

/// A flusher that holds.
#[derive(Debug)]
pub struct LockedFlusher {
    hold: Hold,
    seen: Vec<[u64; State::ALL.len()]>,
    /// Weighted sums of each cgroup, as the real flush makes them.
    sums: Vec<[u64; State::ALL.len()]>,
    chain: Vec<u32>,
    /// How long it held each lock.
    pub hold_times: HoldTimes,
}

impl LockedFlusher {
    /// A flusher of such a machine; there must be one only.
    pub fn new(machine: &Synthetic, hold: Hold) -> Self {
        let MappedMaps { state, cgroups, .. } = &machine.maps;
        Self {
            hold,
            seen: vec![[0; State::ALL.len()]; state.len()],
            sums: vec![[0; State::ALL.len()]; cgroups.len()],
            chain: Vec::new(),
            hold_times: HoldTimes::default(),
        }
    }

    /// Takes in what was updated. As in the kernel, a CPU's lock is taken whether it has updates or not.
    pub fn flush(&mut self, machine: &Synthetic, locks: &Locks) {
        let maps = &machine.maps;
        let now = now_ns();
        for (cpu, lock) in locks.0.iter().enumerate() {
            lock.take();
            let taken = now_ns();
            let mut next = maps.detach_updated(cpu);
            while let Some(slot) = next {
                next = match maps.unlink(cpu, slot) {
                    Next::Slot(slot) => Some(slot),
                    Next::End => None,
                    // Not while the lock is held.
                    Next::Pending => continue,
                };
                match self.hold {
                    Hold::Walk => self.read(maps, cpu, slot, now),
                    Hold::Chain => self.chain.push(slot),
                }
            }
            let held = now_ns() - taken;
            lock.release();
            self.hold_times.add(held);
            let chain = std::mem::take(&mut self.chain);
            for &slot in &chain {
                self.read(maps, cpu, slot, now);
            }
            self.chain = chain;
            self.chain.clear();
        }
    }

    fn read(&mut self, maps: &MappedMaps, cpu: usize, slot: u32, now: u64) {
        maps.barrier();
        let times = maps.times(cpu, slot);
        let seen = &mut self.seen[maps.index(cpu, slot)];
        let sum = &mut self.sums[slot as usize];
        for (state, time) in times.into_iter().enumerate() {
            let total = total_at(time, now);
            sum[state] = sum[state].wrapping_add(total.wrapping_sub(seen[state]));
            seen[state] = total;
        }
    }
}

/// The maps as an updater sees them that takes the lock of its CPU to list a record.
struct Locked<'a> {
    maps: &'a MappedMaps,
    locks: &'a Locks,
    met: &'a Met,
}

impl Synthetic {
    /// As [`Synthetic::wait`], with a lock around the listing as in rstat (css_rstat_updated before 6.16).
    pub fn wait_locked(&self, cpu: usize, slot: u32, begins: bool, locks: &Locks, met: &Met) {
        let maps = &self.maps;
        walk(
            &Locked { maps, locks, met },
            cpu as u32,
            slot,
            super::waiting(begins),
            Stamp::UNREAD,
        );
    }
}

impl Records for Locked<'_> {
    type Record = <MappedMaps as Records>::Record;

    fn record(&self, cpu: u32, slot: u32) -> Option<Self::Record> {
        self.maps.record(cpu, slot)
    }

    fn parent(&self, slot: u32) -> Option<u32> {
        self.maps.parent(slot)
    }

    fn add_word(&self, record: Self::Record, delta: u64) -> u64 {
        self.maps.add_word(record, delta)
    }

    fn add_time(&self, record: Self::Record, state: State, delta: u64) {
        self.maps.add_time(record, state, delta);
    }

    fn is_enabled(&self, record: Self::Record) -> bool {
        self.maps.is_enabled(record)
    }

    fn updated(&self, record: Self::Record, cpu: u32, slot: u32) {
        // As in the kernel: who is on the list already takes no lock.
        if self.maps.is_listed(record) {
            return;
        }
        let lock = &self.locks.0[cpu as usize];
        if !lock.try_take() {
            let since = now_ns();
            lock.take();
            self.met.delayed.fetch_add(1, SeqCst);
            self.met.longest_ns.fetch_max(now_ns() - since, SeqCst);
        }
        self.maps.updated(record, cpu, slot);
        lock.release();
        self.met.listed.fetch_add(1, SeqCst);
    }

    fn now(&self, clock: QueueClock) -> u64 {
        Records::now(self.maps, clock)
    }

    fn count(&self, counter: Counter) {
        self.maps.count(counter);
    }

    fn add(&self, cpu: u32, slot: u32, delta: u64, stamp: Stamp) -> Stamp {
        walk(self, cpu, slot, delta, stamp)
    }
}
