//! The tracer's memory under loom: every access that threads can race for is a point where loom may switch.

use std::sync::atomic::{AtomicU64 as PlainU64, Ordering::Relaxed as Plain};

use loom::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    fence,
};
use psi_common::{
    account::{self, Records, Stamp, is_on, total_at},
    layout::{Counter, NOT_LISTED, State},
    list::{self, Next, Number},
    queue_clock::QueueClock,
    word::{occupied, parent_delta, states},
};

/// When the clock starts: far above what passes, so that an entry without its exit shows.
pub(crate) const BOOT_NS: u64 = 1 << 40;

/// How the machine orders an atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// x86: every atomic operation is a full barrier.
    Full,
    /// arm64: an add whose result nobody uses orders nothing, nor does a plain load or store; the others are full
    /// barriers (Documentation/bpf/standardization/instruction-set.rst and the JIT's choice of instructions).
    Weak,
}

/// Whether to look longer than is bearable every day.
pub(crate) fn is_thorough() -> bool {
    std::env::var_os("PSITRACE_CASES").is_some()
}

/// In how many preemptions loom looks where all of them would take too long.
pub(crate) fn some_preemptions(daily: usize) -> usize {
    if is_thorough() { daily + 2 } else { daily }
}

/// Runs an operation between full barriers. loom takes SeqCst on an operation itself for AcqRel.
fn full<T>(operation: impl FnOnce() -> T) -> T {
    fence(std::sync::atomic::Ordering::SeqCst);
    let result = operation();
    fence(std::sync::atomic::Ordering::SeqCst);
    result
}

/// A time integral.
#[derive(Debug)]
enum Time {
    /// Someone reads it while others add.
    Raced(AtomicU64),
    /// Only added to until all threads have ended: adds commute, so no order of them is worth a look.
    Commuting(PlainU64),
}

#[derive(Debug)]
struct Record {
    word: AtomicU64,
    next: AtomicU32,
    /// Only where someone disables it: no other test looks at more orders for it.
    disabled: Option<AtomicU32>,
    times: Vec<Time>,
}

/// The maps of a machine with one CPU less than loom has threads.
#[derive(Debug)]
pub(crate) struct Memory {
    parents: Vec<Option<u32>>,
    records: Vec<Record>,
    heads: Vec<AtomicU32>,
    clock: AtomicU64,
    order: Order,
    raced: bool,
}

/// A word, changed by exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<'a>(pub(crate) &'a AtomicU64);

impl account::Cell for Word<'_> {
    fn swap(&self, new: u64) -> u64 {
        full(|| self.0.swap(new, AcqRel))
    }

    fn replace(&self, old: u64, new: u64) -> bool {
        full(|| self.0.compare_exchange(old, new, AcqRel, Acquire)).is_ok()
    }
}

/// A link or a head of an updated list.
#[derive(Clone, Copy, Debug)]
struct Link<'a> {
    number: &'a AtomicU32,
    order: Order,
}

impl Number for Link<'_> {
    fn get(&self) -> u32 {
        self.number.load(match self.order {
            Order::Full => Acquire,
            Order::Weak => Relaxed,
        })
    }

    fn set(&self, new: u32) {
        let order = match self.order {
            Order::Full => Release,
            Order::Weak => Relaxed,
        };
        self.number.store(new, order);
    }

    fn swap(&self, new: u32) -> u32 {
        full(|| self.number.swap(new, AcqRel))
    }

    fn replace(&self, old: u32, new: u32) -> bool {
        full(|| self.number.compare_exchange(old, new, AcqRel, Acquire)).is_ok()
    }
}

impl Memory {
    /// `raced`: there is a flusher, which reads times while others add to them.
    pub(crate) fn new(parents: &[Option<u32>], cpus: usize, raced: bool, order: Order) -> Self {
        let time = || {
            if raced {
                Time::Raced(AtomicU64::new(0))
            } else {
                Time::Commuting(PlainU64::new(0))
            }
        };
        let record = || Record {
            word: AtomicU64::new(0),
            next: AtomicU32::new(NOT_LISTED),
            disabled: None,
            times: (0..11).map(|_| time()).collect(),
        };
        Self {
            parents: parents.to_vec(),
            records: (0..parents.len() * cpus).map(|_| record()).collect(),
            heads: (0..cpus).map(|_| AtomicU32::new(0)).collect(),
            clock: AtomicU64::new(BOOT_NS),
            order,
            raced,
        }
    }

    /// With cgroups that are disabled and enabled.
    pub(crate) fn with_switches(mut self) -> Self {
        for record in &mut self.records {
            record.disabled = Some(AtomicU32::new(0));
        }
        self
    }

    /// Userspace's side of it, where SeqCst means what it says.
    pub(crate) fn set_disabled(&self, cpu: u32, slot: u32, disabled: bool) {
        if let Some(flag) = &self.at(cpu, slot).disabled {
            full(|| flag.store(disabled.into(), Release));
        }
    }

    fn at(&self, cpu: u32, slot: u32) -> &Record {
        &self.records[cpu as usize * self.parents.len() + slot as usize]
    }

    pub(crate) fn time(&self, cpu: u32, slot: u32, state: State) -> u64 {
        match &self.at(cpu, slot).times[state as usize] {
            Time::Raced(time) => time.load(Acquire),
            Time::Commuting(time) => time.load(Plain),
        }
    }

    /// Userspace's side of the list, where SeqCst means what it says.
    pub(crate) fn detach(&self, cpu: u32) -> Option<u32> {
        list::detach(&Link {
            number: &self.heads[cpu as usize],
            order: Order::Full,
        })
    }

    pub(crate) fn unlink(&self, cpu: u32, slot: u32) -> Next {
        list::unlink(&Link {
            number: &self.at(cpu, slot).next,
            order: Order::Full,
        })
    }

    pub(crate) fn word(&self, cpu: u32, slot: u32) -> u64 {
        self.at(cpu, slot).word.load(Acquire)
    }

    /// Empties a slot: what is there is replaced.
    pub(crate) fn overwrite(&self, slot: u32) {
        let record = self.at(0, slot);
        full(|| record.word.store(0, Release));
        for time in &record.times {
            if let Time::Raced(time) = time {
                full(|| time.store(0, Release));
            }
        }
    }

    /// Empties a slot: what was read of its times is taken off, but for what is on.
    pub(crate) fn take_off(&self, slot: u32) {
        for time in &self.at(0, slot).times {
            if let Time::Raced(time) = time {
                let read = time.load(Acquire);
                if !is_on(read) {
                    full(|| time.fetch_sub(read, AcqRel));
                }
            }
        }
    }

    /// After all threads: the words are what `own` says plus what the children carry up, and each integral has as
    /// many entries as exits, one more if its state is on.
    pub(crate) fn check(&self, own: impl Fn(u32, u32) -> u64) {
        assert_eq!(self.faults(own), "");
    }

    pub(crate) fn is_right(&self, own: impl Fn(u32, u32) -> u64) -> bool {
        self.faults(own).is_empty()
    }

    fn faults(&self, own: impl Fn(u32, u32) -> u64) -> String {
        use std::fmt::Write as _;
        let mut faults = String::new();
        let end = self.clock.load(Acquire);
        let elapsed = (end - BOOT_NS) as i64;
        for cpu in 0..self.heads.len() as u32 {
            for slot in 0..self.parents.len() as u32 {
                let children = (0..self.parents.len()).filter(|&child| self.parents[child] == Some(slot));
                let carried = children
                    .map(|child| parent_delta(0, occupied(self.word(cpu, child as u32))))
                    .fold(own(cpu, slot), u64::wrapping_add);
                let word = self.word(cpu, slot);
                if word != carried {
                    let _ = write!(faults, "cpu {cpu} slot {slot}: word {word:x}, not {carried:x}; ");
                }
                for state in State::ALL {
                    let on_record = states(occupied(word)) >> state as u32 & 1 != 0;
                    let time = self.time(cpu, slot, state);
                    // Each event's clock is off by what passes until it lands.
                    let possible = -elapsed..=2 * elapsed;
                    if is_on(time) != on_record || !possible.contains(&(total_at(time, end) as i64)) {
                        let _ = write!(faults, "cpu {cpu} slot {slot}: {state:?} {time:x} in {elapsed}; ");
                    }
                }
            }
        }
        faults
    }
}

impl Records for &Memory {
    type Record = usize;

    fn record(&self, cpu: u32, slot: u32) -> Option<usize> {
        ((slot as usize) < self.parents.len()).then(|| cpu as usize * self.parents.len() + slot as usize)
    }

    fn parent(&self, slot: u32) -> Option<u32> {
        self.parents[slot as usize]
    }

    fn add_word(&self, record: usize, delta: u64) -> u64 {
        full(|| self.records[record].word.fetch_add(delta, AcqRel))
    }

    fn add_time(&self, record: usize, state: State, delta: u64) {
        match &self.records[record].times[state as usize] {
            Time::Raced(time) if self.order == Order::Full => _ = full(|| time.fetch_add(delta, AcqRel)),
            Time::Raced(time) => _ = time.fetch_add(delta, Relaxed),
            Time::Commuting(time) => _ = time.fetch_add(delta, Plain),
        }
    }

    fn is_enabled(&self, record: usize) -> bool {
        let disabled = self.records[record].disabled.as_ref();
        disabled.is_none_or(|disabled| disabled.load(Acquire) == 0)
    }

    fn updated(&self, record: usize, cpu: u32, slot: u32) {
        if !self.raced {
            // Nobody flushes.
            return;
        }
        let link = |number| Link {
            number,
            order: self.order,
        };
        let head = || Some(link(&self.heads[cpu as usize]));
        list::push(link(&self.records[record].next), head, slot);
    }

    fn now(&self, _clock: QueueClock) -> u64 {
        // Relaxed: reading a clock synchronizes nothing.
        self.clock.fetch_add(1, Relaxed) + 1
    }

    fn count(&self, counter: Counter) {
        assert_ne!(counter, Counter::BrokenWalks);
    }

    fn add(&self, cpu: u32, slot: u32, delta: u64, stamp: Stamp) -> Stamp {
        account::walk(self, cpu, slot, delta, stamp)
    }
}
