//! How long something was held or waited for, in the bins of the kernel's rstat series.

use psi_common::hold::{BINS, NAMES, bin};
use serde::{Serialize, Serializer, ser::SerializeMap as _};

/// Counts in the bins of [`psi_common::hold`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoldTimes {
    /// One count a bin; the last holds everything above.
    pub counts: [u64; BINS],
    /// The longest, ns.
    pub longest_ns: u64,
}

impl HoldTimes {
    /// Counts one.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        self.counts[bin(ns)] += 1;
        self.longest_ns = self.longest_ns.max(ns);
    }

    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How many took 10 us or longer.
    pub fn past_10_us(&self) -> u64 {
        self.counts[bin(10_000)..].iter().sum()
    }

    /// Adds what another one has counted.
    pub fn merge(&mut self, other: &Self) {
        for (count, other) in self.counts.iter_mut().zip(other.counts) {
            *count += other;
        }
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

/// As an object, bin by bin.
impl Serialize for HoldTimes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(BINS))?;
        for (name, count) in NAMES.iter().zip(self.counts) {
            map.serialize_entry(name, &count)?;
        }
        map.end()
    }
}
