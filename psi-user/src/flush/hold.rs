//! How long something was held or waited for, in the bins of the kernel's rstat series.

use serde::{Serialize, Serializer, ser::SerializeMap as _};

/// Counts in the bins of [`HoldTimes::BINS_US`], which are those of the rstat series of 2023 ("cgroup/rstat: Reduce
/// cpu_lock hold time in cgroup_rstat_flush_locked()").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoldTimes {
    /// One count a bin; the last holds everything above.
    pub counts: [u64; Self::BINS_US.len() + 1],
    /// The longest, ns.
    pub longest_ns: u64,
}

impl HoldTimes {
    /// Upper bounds of the bins in us, but for the last, which has none.
    pub const BINS_US: [u64; 13] = [1, 5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90];
    /// What the bins are called: in tables, and as JSON keys.
    pub const NAMES: [&str; 14] = [
        "0-1", "1-5", "5-10", "10-15", "15-20", "20-25", "25-30", "30-40", "40-50", "50-60", "60-70", "70-80", "80-90",
        ">90",
    ];

    /// Counts one.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        // Nearly all are in the first.
        let bin = if ns < 1000 {
            0
        } else {
            Self::BINS_US
                .iter()
                .position(|&us| ns < us * 1000)
                .unwrap_or(Self::BINS_US.len())
        };
        self.counts[bin] += 1;
        self.longest_ns = self.longest_ns.max(ns);
    }

    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
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
        let mut map = serializer.serialize_map(Some(self.counts.len()))?;
        for (name, count) in Self::NAMES.iter().zip(self.counts) {
            map.serialize_entry(name, &count)?;
        }
        map.end()
    }
}
