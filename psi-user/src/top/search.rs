//! Looks for spikes in a recording, bit by bit: keys are not to wait for it.

use std::{ops::Range, time::Instant};

use anyhow::Result;

use super::source::History;
use crate::record::Spikes;

/// Frames that are looked at together on the way forwards.
const FRAMES: usize = 20;

/// A search that goes on.
#[derive(Debug)]
pub(super) struct Search {
    pub(super) forward: bool,
    spikes: Spikes,
    /// What is looked at next: a spike may be at any of these but the first, which is what the second rises from.
    next: Range<usize>,
}

/// How far a search came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// It goes on there.
    Until(usize),
    Found(usize),
    Nowhere,
}

impl Search {
    /// From a frame on, or back.
    pub(super) fn new(history: &dyn History, from: usize, forward: bool, spikes: Spikes) -> Self {
        let next = if forward {
            from..(from + FRAMES).min(history.len())
        } else {
            history.run_start(from.saturating_sub(1))..from
        };
        Self { forward, spikes, next }
    }

    /// Looks on until this time; a little at least.
    pub(super) fn go_on(&mut self, history: &mut dyn History, until: Instant) -> Result<Looked> {
        let Self { forward, spikes, next } = self;
        loop {
            let frames = next.clone();
            let (found, at) = if *forward {
                (history.next_spike(frames, spikes)?, next.end)
            } else {
                // Backwards run by run, each from its beginning: a frame builds on the one before.
                (history.last_spike(frames, spikes)?, next.start)
            };
            if let Some(found) = found {
                return Ok(Looked::Found(found));
            }
            *next = match (*forward, at) {
                (true, at) if at >= history.len() => return Ok(Looked::Nowhere),
                (true, at) => at - 1..(at + FRAMES).min(history.len()),
                (false, 0) => return Ok(Looked::Nowhere),
                (false, at) => history.run_start(at - 1)..at + 1,
            };
            if Instant::now() >= until {
                return Ok(Looked::Until(at));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fields::{Figure, Measure, Stall},
        top::fixture::{Recording, cgroup, snapshot},
    };

    fn search(recording: &mut Recording, from: usize, forward: bool) -> Looked {
        let spikes = Spikes {
            cgroup: Some("/a".to_owned()),
            figure: Figure {
                stall: Stall::CPU_SOME,
                measure: Measure::Avg10,
            },
            threshold: Some(10.0),
        };
        let mut search = Search::new(recording, from, forward, spikes);
        loop {
            // In the smallest steps.
            match search.go_on(recording, Instant::now()).expect("frames can be read") {
                Looked::Until(at) => assert!(at > 0 && at < recording.len()),
                looked => return looked,
            }
        }
    }

    fn recording(figures: impl IntoIterator<Item = f64>) -> Recording {
        let frames = figures.into_iter().map(|percent| {
            let other = cgroup("/b", 2, 100.0 - percent);
            snapshot(vec![cgroup("/a", 1, percent), other])
        });
        Recording(frames.collect())
    }

    #[test]
    fn spikes_begin_where_the_figure_gets_high() {
        let mut recording = recording([20.0, 20.0, 1.0, 10.0, 99.0, 0.0, 0.0, 12.0, 9.99]);
        for (from, forward, expected) in [
            (0, true, Looked::Found(3)),
            (3, true, Looked::Found(7)),
            (7, true, Looked::Nowhere),
            (8, true, Looked::Nowhere),
            (8, false, Looked::Found(7)),
            (7, false, Looked::Found(3)),
            (3, false, Looked::Nowhere),
            (0, false, Looked::Nowhere),
        ] {
            assert_eq!(
                search(&mut recording, from, forward),
                expected,
                "from {from}, {forward}"
            );
        }
    }

    #[test]
    fn none_is_missed_where_two_steps_meet() {
        const COUNT: usize = 200;
        for spike in 1..COUNT {
            let mut recording = recording((0..COUNT).map(|n| if n == spike { 50.0 } else { 0.0 }));
            assert_eq!(search(&mut recording, 0, true), Looked::Found(spike));
            assert_eq!(
                search(&mut recording, COUNT - 1, false),
                if spike == COUNT - 1 {
                    Looked::Nowhere
                } else {
                    Looked::Found(spike)
                }
            );
        }
    }
}
