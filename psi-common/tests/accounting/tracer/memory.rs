//! The maps as plain memory.

use std::cell::Cell;

use psi_common::{
    account::{self, Records, Stamp},
    layout::{Counter, State},
    list::{self, Next, Number},
    queue_clock::QueueClock,
};

/// `psi_common::layout::CpuCgroup`.
#[derive(Clone, Default)]
pub(crate) struct Record {
    pub(crate) word: Cell<u64>,
    pub(crate) times: [Cell<u64>; 14],
    pub(crate) disabled: Cell<bool>,
    next: Cell<u32>,
}

/// A link or a head of an updated list.
struct Link<'a>(&'a Cell<u32>);

impl Number for Link<'_> {
    fn get(&self) -> u32 {
        self.0.get()
    }

    fn set(&self, new: u32) {
        self.0.set(new);
    }

    fn swap(&self, new: u32) -> u32 {
        self.0.replace(new)
    }

    fn replace(&self, old: u32, new: u32) -> bool {
        let same = self.0.get() == old;
        if same {
            self.0.set(new);
        }
        same
    }
}

/// The maps.
pub(crate) struct Memory {
    parents: Vec<Option<u32>>,
    /// By CPU, then slot.
    records: Vec<Record>,
    /// Heads of the CPUs' updated lists.
    heads: Vec<Cell<u32>>,
    pub(crate) counters: [Cell<u64>; 8],
    pub(super) now: Cell<u64>,
    pub(super) clock_reads: Cell<u32>,
}

impl Memory {
    pub(super) fn new(parents: &[Option<usize>], cpus: usize) -> Self {
        Self {
            parents: parents
                .iter()
                .map(|parent| parent.map(|parent| parent as u32))
                .collect(),
            records: vec![Record::default(); parents.len() * cpus],
            heads: vec![Cell::new(0); cpus],
            counters: Default::default(),
            now: Cell::new(0),
            clock_reads: Cell::new(0),
        }
    }

    pub(crate) fn at(&self, cpu: usize, slot: usize) -> &Record {
        &self.records[cpu * self.parents.len() + slot]
    }

    pub(crate) const fn slots(&self) -> usize {
        self.parents.len()
    }

    pub(crate) const fn cpus(&self) -> usize {
        self.heads.len()
    }

    pub(crate) fn has_updates(&self, cpu: usize) -> bool {
        self.heads[cpu].get() != 0
    }

    pub(crate) fn detach(&self, cpu: usize) -> Option<u32> {
        list::detach(&Link(&self.heads[cpu]))
    }

    pub(crate) fn unlink(&self, cpu: usize, slot: usize) -> Next {
        list::unlink(&Link(&self.at(cpu, slot).next))
    }
}

impl Records for &Memory {
    type Record = usize;

    fn record(&self, cpu: u32, slot: u32) -> Option<usize> {
        let slots = self.parents.len();
        ((slot as usize) < slots).then(|| cpu as usize * slots + slot as usize)
    }

    fn parent(&self, slot: u32) -> Option<u32> {
        self.parents[slot as usize]
    }

    fn add_word(&self, record: usize, delta: u64) -> u64 {
        let word = &self.records[record].word;
        word.replace(word.get().wrapping_add(delta))
    }

    fn add_time(&self, record: usize, state: State, delta: u64) {
        let time = &self.records[record].times[state as usize];
        time.set(time.get().wrapping_add(delta));
    }

    fn is_enabled(&self, record: usize) -> bool {
        !self.records[record].disabled.get()
    }

    fn updated(&self, record: usize, cpu: u32, slot: u32) {
        assert_eq!(Some(record), self.record(cpu, slot));
        let head = || Some(Link(&self.heads[cpu as usize]));
        list::push(Link(&self.records[record].next), head, slot);
    }

    fn now(&self, _clock: QueueClock) -> u64 {
        self.clock_reads.set(self.clock_reads.get() + 1);
        self.now.get()
    }

    fn count(&self, counter: Counter) {
        let counter = &self.counters[counter as usize];
        counter.set(counter.get() + 1);
    }

    fn add(&self, cpu: u32, slot: u32, delta: u64, stamp: Stamp) -> Stamp {
        account::walk(self, cpu, slot, delta, stamp)
    }
}
