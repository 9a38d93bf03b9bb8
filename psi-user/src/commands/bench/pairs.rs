//! A against B: interleaved, medians, and how far they can be trusted.

use serde::Serialize;

/// Ratios of runs with something to runs without it, right before and after.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs(Vec<f64>);

/// With fewer pairs not even all of them span the median with 95 % confidence.
const ENOUGH: usize = 6;

/// What a set of pairs says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Summary {
    /// Pairs.
    pub(super) pairs: usize,
    /// The middle ratio.
    pub(super) median: f64,
    /// The true median is above this, and
    pub(super) low: f64,
    /// below this, with 95 % confidence or more.
    pub(super) high: f64,
}

impl Pairs {
    /// A run that took `with` between two that took `before` and `after` without it: what drifts evenly cancels out.
    pub(super) fn push(&mut self, before: f64, with: f64, after: f64) {
        self.0.push(2.0 * with / (before + after));
    }

    /// None without a pair.
    pub(super) fn summary(&self) -> Option<Summary> {
        let ratios = sorted(self.0.iter().copied());
        let outside = left_out(ratios.len());
        Some(Summary {
            pairs: ratios.len(),
            median: middle(&ratios)?,
            low: *ratios.get(outside)?,
            high: *ratios.get(ratios.len() - 1 - outside)?,
        })
    }
}

/// How many of so many sorted values may be left out at each end so that what is left spans the median with 95 % confidence:
/// that of fair coins no more than these fall on one side. No assumption about how the values are spread. With fewer than
/// [`ENOUGH`] values it is less.
fn left_out(count: usize) -> usize {
    let mut ways = 1.0;
    let mut tail = 0.0;
    for few in 0..count {
        tail += ways / 2_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
        if 2.0 * tail > 0.05 {
            return few.saturating_sub(1);
        }
        ways *= (count - few) as f64 / (few + 1) as f64;
    }
    0
}

impl Summary {
    /// Whether the ratio is told from 1.
    pub(super) fn is_told(&self) -> bool {
        self.pairs >= ENOUGH && !(self.low..=self.high).contains(&1.0)
    }

    /// The ratio and between what it is; no ratio if it could as well be 1, or if there are too few pairs to tell.
    pub(super) fn text(&self) -> String {
        let Self { median, low, high, .. } = self;
        let between = format!("({low:.3} to {high:.3})");
        if self.is_told() {
            format!("{median:.3} {between}")
        } else {
            format!("noise {between}")
        }
    }
}

/// The median; 0 for nothing.
pub(super) fn median(values: &[f64]) -> f64 {
    middle(&sorted(values.iter().copied())).unwrap_or(0.0)
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    let upper = *sorted.get(half)?;
    Some(if sorted.len() % 2 == 1 {
        upper
    } else {
        f64::midpoint(sorted[half - 1], upper)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_swallows_a_small_ratio() {
        let text = |ratios: &[f64]| Pairs(ratios.to_vec()).summary().map(|summary| summary.text());
        let small = text(&[0.98, 1.05, 1.01, 0.97, 1.03, 1.02]);
        assert_eq!(small.as_deref(), Some("noise (0.970 to 1.050)"));
        let large = text(&[1.18, 1.2, 1.19, 1.22, 1.17, 1.19, 1.3, 1.1, 1.2]);
        assert_eq!(large.as_deref(), Some("1.190 (1.170 to 1.220)"));
        let few = text(&[1.18, 1.2, 1.19, 1.22, 1.17]);
        assert_eq!(few.as_deref(), Some("noise (1.170 to 1.220)"));
        assert_eq!(text(&[]), None);
    }

    #[test]
    fn confidence_is_that_of_fair_coins() {
        // From a table of the sign test, 5 % on both sides together.
        for (count, left) in [
            (1, 0),
            (5, 0),
            (6, 0),
            (8, 0),
            (9, 1),
            (12, 2),
            (15, 3),
            (20, 5),
            (25, 7),
        ] {
            assert_eq!(left_out(count), left, "of {count}");
        }
    }

    #[test]
    fn even_drift_cancels_out() {
        let mut pairs = Pairs::default();
        pairs.push(1.0, 1.5, 2.0);
        assert_eq!(pairs.summary().map(|summary| summary.median), Some(1.0));
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
    }
}
