//! What the flush remembers of each CPU and cgroup: 64 bytes that every flush of a record reads, 64 that an open window
//! takes, 8 that tell whether to look.
//!
//! Memory comes zeroed and untouched, so it is there for records that were ever updated only.

use super::{STATES, Totals};

/// In [`Lists::active`](super::Lists).
pub(super) const LISTED_ACTIVE: u8 = 1;
/// In [`Lists::window`](super::Lists), and its opening totals are valid.
pub(super) const IN_WINDOW: u8 = 2;
/// Readings were not used: see [`super::Flusher::unread`].
pub(super) const UNREAD: u8 = 4;

/// What tells whether a record has to be looked at.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Meta {
    /// Its weight when it was weighed last.
    pub(super) weight: u32,
    /// In which round that was.
    pub(super) round: u16,
    /// States that were active at the last look: bit s for `State::ALL[s]`.
    pub(super) active: u8,
    pub(super) flags: u8,
}

/// Arrays by CPU and slot.
#[derive(Debug)]
pub(super) struct Records {
    seen: Lines,
    opened: Lines,
    meta: Vec<Meta>,
}

/// One record.
pub(super) struct Record<'a> {
    /// Last totals.
    pub(super) seen: &'a mut Totals,
    /// Totals when the window opened; valid with [`IN_WINDOW`].
    pub(super) opened: &'a mut Totals,
    pub(super) meta: &'a mut Meta,
}

impl Records {
    pub(super) fn new(count: usize) -> Self {
        Self {
            seen: Lines::new(count),
            opened: Lines::new(count),
            meta: zeroed(count),
        }
    }

    #[inline]
    pub(super) fn get(&mut self, index: usize) -> Record<'_> {
        Record {
            seen: self.seen.get(index),
            opened: self.opened.get(index),
            meta: &mut self.meta[index],
        }
    }

    #[inline]
    pub(super) fn meta(&self, index: usize) -> Meta {
        self.meta[index]
    }

    pub(super) fn seen(&self, index: usize) -> &Totals {
        &self.seen.lines()[index]
    }

    /// Memory that will be needed soon: of the meta, the totals, and with a window the opening ones.
    #[inline]
    pub(super) fn soon(&self, index: usize, opened: bool, prefetch: fn(*const u8)) {
        prefetch((&raw const self.meta[index]).cast());
        prefetch((&raw const self.seen.lines()[index]).cast());
        if opened {
            prefetch((&raw const self.opened.lines()[index]).cast());
        }
    }

    /// No record was looked at in any round.
    pub(super) fn forget_rounds(&mut self) {
        for meta in &mut self.meta {
            meta.round = 0;
        }
    }
}

/// An array of cachelines.
#[derive(Debug)]
struct Lines {
    numbers: Vec<u64>,
    /// Numbers before the first that begins a cacheline.
    skip: usize,
}

impl Lines {
    fn new(count: usize) -> Self {
        // Asked for as numbers the zeroed memory is not written to.
        let numbers = vec![0u64; (count + 1) * STATES];
        let skip = numbers.as_ptr().align_offset(64).min(STATES);
        Self { numbers, skip }
    }

    #[inline]
    fn lines(&self) -> &[Totals] {
        self.numbers[self.skip..].as_chunks().0
    }

    #[inline]
    fn get(&mut self, index: usize) -> &mut Totals {
        &mut self.numbers[self.skip..].as_chunks_mut().0[index]
    }
}

/// Zeroed memory that is not written to: [`Meta`] is no type that the standard library knows that of.
fn zeroed(count: usize) -> Vec<Meta> {
    let zeroed = Box::<[Meta]>::new_zeroed_slice(count);
    // SAFETY: Meta is valid when all its bytes are zero.
    unsafe { zeroed.assume_init() }.into_vec()
}
