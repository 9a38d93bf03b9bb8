//! What the flush remembers of each CPU and cgroup: two cachelines, one of which every flush of the record changes.
//!
//! Memory comes zeroed and untouched, so it is there for records that were ever updated only.

use super::{IRQ, STATES, Totals};

/// In [`Lists::active`](super::Lists).
pub(super) const LISTED_ACTIVE: u8 = 1;
/// Readings were not used: see [`super::Flusher::unread`].
pub(super) const UNREAD: u8 = 2;

/// Totals but for [`IRQ`].
pub(super) type Opened = [u64; IRQ];

/// How a record stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meta {
    /// Its weight when it was weighed last, 24 bits: for interrupt time.
    pub(super) weight: u32,
    /// The window in which that was. While it is the open one the record is in [`Lists::window`](super::Lists), and its
    /// opening totals are valid.
    pub(super) window: u16,
    /// The round in which that was, of those in its window. Each round weighs all records in the window, so these
    /// bits do.
    pub(super) round: u8,
    /// States that were active at the last look: bit s for `State::ALL[s]`.
    pub(super) active: u8,
    pub(super) flags: u8,
}

/// Beyond is a window of 18 hours.
const MAX_WEIGHT: u32 = (1 << 24) - 1;

impl Meta {
    fn from_number(number: u64) -> Self {
        Self {
            weight: (number >> 40) as u32,
            window: (number >> 24) as u16,
            round: (number >> 16) as u8,
            active: (number >> 8) as u8,
            flags: number as u8,
        }
    }

    fn number(self) -> u64 {
        u64::from(self.weight.min(MAX_WEIGHT)) << 40
            | u64::from(self.window) << 24
            | u64::from(self.round) << 16
            | u64::from(self.active) << 8
            | u64::from(self.flags)
    }
}

/// Numbers of a record: last totals, totals when the window opened but for [`IRQ`], and how it stands.
const NUMBERS: usize = 2 * STATES;
const META: usize = NUMBERS - 1;

/// An array by CPU and slot.
#[derive(Debug)]
pub(super) struct Records {
    /// Asked for as numbers, since zeroed memory is then not written to.
    numbers: Vec<u64>,
    /// Numbers before the first record, which begins a cacheline.
    skip: usize,
}

/// One record.
pub(super) struct Record<'a>(&'a mut [u64; NUMBERS]);

impl Records {
    pub(super) fn new(count: usize) -> Self {
        let numbers = vec![0u64; (count + 1) * NUMBERS];
        let skip = numbers.as_ptr().align_offset(NUMBERS * 8).min(NUMBERS);
        Self { numbers, skip }
    }

    #[inline(always)]
    fn at(&self, index: usize) -> &[u64; NUMBERS] {
        &self.numbers[self.skip..].as_chunks().0[index]
    }

    #[inline(always)]
    pub(super) fn get(&mut self, index: usize) -> Record<'_> {
        Record(&mut self.numbers[self.skip..].as_chunks_mut().0[index])
    }

    pub(super) fn meta(&self, index: usize) -> Meta {
        Meta::from_number(self.at(index)[META])
    }

    /// Interrupt time that has been read.
    pub(super) fn irq(&self, index: usize) -> u64 {
        self.at(index)[IRQ]
    }

    /// Asks for a record's memory.
    #[inline(always)]
    pub(super) fn soon(&self, index: usize, prefetch: fn(*const u8)) {
        let record = self.at(index).as_ptr().cast::<u8>();
        prefetch(record);
        prefetch(record.wrapping_add(STATES * 8));
    }

    /// No record was in any window.
    pub(super) fn forget_windows(&mut self) {
        for numbers in self.numbers[self.skip..].as_chunks_mut::<NUMBERS>().0 {
            // Memory that was never used stays so.
            if numbers[META] != 0 {
                let meta = Meta::from_number(numbers[META]);
                numbers[META] = Meta { window: 0, ..meta }.number();
            }
        }
    }
}

impl Record<'_> {
    /// Last totals.
    #[inline(always)]
    pub(super) fn seen(&mut self) -> &mut Totals {
        self.0.first_chunk_mut().unwrap_or_else(|| unreachable!())
    }

    /// Totals when the window opened; valid while that is open.
    #[inline(always)]
    pub(super) fn opened(&mut self) -> &mut Opened {
        self.0[STATES..].first_chunk_mut().unwrap_or_else(|| unreachable!())
    }

    #[inline(always)]
    pub(super) fn meta(&self) -> Meta {
        Meta::from_number(self.0[META])
    }

    #[inline(always)]
    pub(super) fn set_meta(&mut self, meta: Meta) {
        self.0[META] = meta.number();
    }

    /// What it gained in the open window, but for [`IRQ`].
    #[inline(always)]
    pub(super) fn window(&self) -> Totals {
        std::array::from_fn(|state| {
            if state == IRQ {
                0
            } else {
                self.0[state] - self.0[STATES + state]
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_apart_and_begin_as_zero() {
        let mut records = Records::new(3);
        let meta = Meta {
            weight: u32::MAX,
            window: 0x1234,
            round: 0x78,
            active: 0x56,
            flags: LISTED_ACTIVE | UNREAD,
        };
        *records.get(1).seen() = [u64::MAX; STATES];
        *records.get(1).opened() = [1; IRQ];
        records.get(1).set_meta(meta);
        for other in [0, 2] {
            assert_eq!(records.at(other), &[0; NUMBERS]);
        }
        let read = records.meta(1);
        assert_eq!(read.number(), meta.number());
        assert_eq!((read.weight, read.window, read.round), (MAX_WEIGHT, 0x1234, 0x78));
        assert_eq!(records.get(1).window()[0], u64::MAX - 1);
        records.forget_windows();
        assert_eq!((records.meta(1).window, records.meta(1).active), (0, 0x56));
    }
}
