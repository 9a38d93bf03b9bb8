//! A against B: interleaved, medians, and how far they can be trusted.

use serde::Serialize;

/// Ratios of runs with something to runs without it, right before and after.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs(Vec<f64>);

/// What a set of pairs says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Summary {
    /// Pairs.
    pub(super) pairs: usize,
    /// The middle ratio.
    pub(super) median: f64,
    /// The smallest ratio.
    pub(super) min: f64,
    /// The largest ratio.
    pub(super) max: f64,
    /// By how much the median can be wrong, with 95 % confidence.
    pub(super) noise: f64,
}

impl Pairs {
    /// A run that took `with` between two that took `before` and `after` without it: what drifts evenly cancels out.
    pub(super) fn push(&mut self, before: f64, with: f64, after: f64) {
        self.0.push(2.0 * with / (before + after));
    }

    /// None without a pair.
    pub(super) fn summary(&self) -> Option<Summary> {
        let ratios = sorted(self.0.iter().copied());
        let median = middle(&ratios)?;
        let apart = sorted(ratios.iter().map(|ratio| (ratio - median).abs()));
        // The standard error of a median, from the median distance, if the ratios are about normal.
        let sigma = 1.4826 * middle(&apart)?;
        Some(Summary {
            pairs: ratios.len(),
            median,
            min: *ratios.first()?,
            max: *ratios.last()?,
            noise: 1.96 * 1.2533 * sigma / (ratios.len() as f64).sqrt(),
        })
    }
}

impl Summary {
    /// The ratio, or, if noise explains it, what noise leaves of it.
    pub(super) fn text(&self) -> String {
        let Self { median, noise, .. } = self;
        if (median - 1.0).abs() > *noise {
            format!("{median:.3} ± {noise:.3}")
        } else {
            format!("within noise ({:.3})", 1.0 + noise)
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
        let small = text(&[0.98, 1.05, 1.01, 0.97, 1.03]).unwrap_or_default();
        assert!(small.starts_with("within noise"), "expected no ratio, saw {small}");
        let large = text(&[1.18, 1.2, 1.19, 1.22, 1.17]).unwrap_or_default();
        assert!(large.starts_with("1.190 ± 0.0"), "expected 1.190 ± 0.0.., saw {large}");
        assert_eq!(text(&[]), None);
    }

    #[test]
    fn even_drift_cancels_out() {
        let mut pairs = Pairs::default();
        pairs.push(1.0, 1.5, 2.0);
        assert_eq!(pairs.summary().map(|summary| summary.median), Some(1.0));
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
    }
}
