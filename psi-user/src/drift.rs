//! By how much CLOCK_MONOTONIC gets ahead of the scheduler's clock: see `psi_common::queue_clock`.
//!
//! The scheduler's clock runs as CLOCK_MONOTONIC_RAW does: both count the machine's counter by its frequency as it was
//! calibrated, while time keeping bends CLOCK_MONOTONIC towards the time outside.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Looks closer together than this tell too little.
const SHORTEST: Duration = Duration::from_millis(200);

/// Both clocks at one time, ns.
#[derive(Clone, Copy, Debug)]
struct Look {
    monotonic: i64,
    raw: i64,
}

/// Follows the drift of CLOCK_MONOTONIC.
#[derive(Debug)]
pub(crate) struct Drift {
    last: Look,
    rate: i64,
}

impl Drift {
    pub(crate) fn new() -> Self {
        Self { last: look(), rate: 0 }
    }

    /// Looks at the clocks; returns by how much CLOCK_MONOTONIC gets ahead, in 2^-32 of the time that passes.
    pub(crate) fn update(&mut self) -> i64 {
        self.follow(look());
        self.rate
    }

    fn follow(&mut self, now: Look) {
        let Look { monotonic, raw } = self.last;
        let (monotonic, raw) = (now.monotonic - monotonic, now.raw - raw);
        if raw < SHORTEST.as_nanos() as i64 {
            return;
        }
        self.last = now;
        self.rate = ((i128::from(monotonic - raw) << 32) / i128::from(raw)) as i64;
    }
}

/// The best of a few looks: between two others nothing can have come between.
fn look() -> Look {
    let look = || {
        let before = ns(clock_gettime(ClockId::Monotonic));
        let raw = ns(clock_gettime(ClockId::MonotonicRaw));
        let after = ns(clock_gettime(ClockId::Monotonic));
        let monotonic = before + (after - before) / 2;
        (after - before, Look { monotonic, raw })
    };
    let looks = [look(), look(), look(), look()];
    looks
        .into_iter()
        .min_by_key(|(took, _)| *took)
        .map_or_else(|| look().1, |(_, look)| look)
}

const fn ns(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_clocks() {
        const SECOND: i64 = 1_000_000_000;
        let mut last = Look {
            monotonic: 5 * SECOND,
            raw: 7 * SECOND,
        };
        let mut drift = Drift { last, rate: 0 };
        for parts_in_million in [100_i64, 101, -20, 400] {
            last.monotonic += SECOND + parts_in_million * 1000;
            last.raw += SECOND;
            drift.follow(last);
            let seen = drift.rate as f64 * 1e6 / 2_f64.powi(32);
            assert!(
                (seen - parts_in_million as f64).abs() < 0.01,
                "expected {parts_in_million}, saw {seen} in a million"
            );
        }
        let before = drift.rate;
        last.raw += 1000;
        drift.follow(last);
        assert_eq!(drift.rate, before, "too short to tell");
    }
}
