//! Spikes: where a figure gets high.

use std::ops::Range;

use crate::{
    fields::{Figure, Unit},
    model::Snapshot,
};

/// The spikes of one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Spikes {
    /// Path of the cgroup that is looked at; without one all are, and the highest figure counts.
    pub cgroup: Option<String>,
    /// Of what.
    pub figure: Figure,
    /// A spike is where the figure rises to this or above, in its unit. Without one it is where the figure is at its
    /// highest: higher than one frame before, not lower than one after, and, as a percentage, at least 1 %.
    pub threshold: Option<f64>,
}

impl Spikes {
    /// The value in a snapshot. A cgroup that is not there has no pressure.
    pub fn value(&self, snapshot: &Snapshot) -> f64 {
        let is_meant = |path: &str| self.cgroup.as_deref().is_none_or(|cgroup| cgroup == path);
        let cgroups = snapshot.cgroups.iter().filter(|cgroup| is_meant(&cgroup.path));
        let values = cgroups.filter_map(|cgroup| self.figure.of(cgroup));
        values.reduce(f64::max).unwrap_or(0.0)
    }

    /// The first spike after the first of `frames`, given the value of each; each is asked for once at most, in order.
    ///
    /// # Errors
    /// Those of `value`.
    pub fn next<E>(
        &self,
        frames: Range<usize>,
        value: impl FnMut(usize) -> Result<f64, E>,
    ) -> Result<Option<usize>, E> {
        self.among(frames, value, true)
    }

    /// The last spike after the first of `frames`, likewise.
    ///
    /// # Errors
    /// Those of `value`.
    pub fn last<E>(
        &self,
        frames: Range<usize>,
        value: impl FnMut(usize) -> Result<f64, E>,
    ) -> Result<Option<usize>, E> {
        self.among(frames, value, false)
    }

    fn among<E>(
        &self,
        mut frames: Range<usize>,
        mut value: impl FnMut(usize) -> Result<f64, E>,
        is_first_wanted: bool,
    ) -> Result<Option<usize>, E> {
        let Some(first) = frames.next() else { return Ok(None) };
        let least = match self.figure.measure.unit() {
            Unit::Percent => 1.0,
            _ => f64::MIN_POSITIVE,
        };
        let mut before = value(first)?;
        let (mut rising, mut last) = (None, None);
        for frame in frames {
            let value = value(frame)?;
            let found = if let Some(threshold) = self.threshold {
                (before < threshold && value >= threshold).then_some(frame)
            } else if value > before {
                rising = (value >= least).then_some(frame);
                None
            } else if value < before {
                rising.take()
            } else {
                None
            };
            if is_first_wanted && found.is_some() {
                return Ok(found);
            }
            last = found.or(last);
            before = value;
        }
        Ok(rising.or(last))
    }
}
