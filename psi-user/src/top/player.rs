//! Moves through a recording.

use std::time::Instant;

use anyhow::Result;

use super::{
    search::{Looked, Search},
    source::History,
};
use crate::{model::Snapshot, record::Spikes};

/// Where to go in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Travel {
    /// So many frames on, or back.
    Frames(isize),
    /// So many ns on, or back; at least a frame.
    Span(i64),
    /// The last frame until this time, ns since 1970.
    To(u64),
}

/// A place in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) index: usize,
    pub(super) count: usize,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
}

/// A recording and the frame that is shown; it has one at least.
pub(super) struct Player<'a> {
    history: &'a mut dyn History,
    index: usize,
}

impl<'a> Player<'a> {
    /// At the first frame; none if the recording is empty.
    pub(super) fn new(history: &'a mut dyn History) -> Option<Self> {
        (!history.is_empty()).then_some(Self { history, index: 0 })
    }

    pub(super) fn place(&self) -> Place {
        let Self { history, index } = self;
        let count = history.len();
        Place {
            index: *index,
            count,
            first_ns: history.time_ns(0),
            last_ns: history.time_ns(count - 1),
        }
    }

    /// The frame that is shown.
    pub(super) fn frame(&mut self) -> Result<Snapshot> {
        self.history.frame(self.index)
    }

    /// The frames of the time before the one that is shown, the oldest first.
    pub(super) fn before(&mut self, span_ns: u64) -> impl Iterator<Item = Result<Snapshot>> {
        let Self { history, index } = self;
        let from_ns = history.time_ns(*index).saturating_sub(span_ns);
        let first = first_from(&**history, from_ns).min(*index);
        (first..*index).map(move |index| history.frame(index))
    }

    /// A search from the frame that is shown.
    pub(super) fn search(&self, forward: bool, spikes: Spikes) -> Search {
        Search::new(&*self.history, self.index, forward, spikes)
    }

    /// Looks on until this time, and goes to what it finds.
    pub(super) fn look(&mut self, search: &mut Search, until: Instant) -> Result<Looked> {
        let looked = search.go_on(self.history, until)?;
        if let Looked::Found(index) = looked {
            self.index = index;
        }
        Ok(looked)
    }

    /// Goes there; else says why not.
    pub(super) fn go(&mut self, travel: Travel) -> Result<(), &'static str> {
        let Self { history, index } = self;
        let last = history.len() - 1;
        let now_ns = history.time_ns(*index);
        let to = match travel {
            Travel::Frames(frames) => index.saturating_add_signed(frames),
            Travel::Span(span) if span < 0 => {
                until(&**history, now_ns.saturating_add_signed(span)).min(index.saturating_sub(1))
            }
            Travel::Span(span) => until(&**history, now_ns.saturating_add_signed(span)).max(*index + 1),
            Travel::To(time_ns) => until(&**history, time_ns),
        };
        let to = to.min(last);
        if to == *index {
            return match travel {
                Travel::Frames(frames) if frames < 0 => Err("the recording begins here"),
                Travel::Span(span) if span < 0 => Err("the recording begins here"),
                Travel::Frames(_) | Travel::Span(_) => Err("the recording ends here"),
                Travel::To(_) => Ok(()),
            };
        }
        *index = to;
        Ok(())
    }
}

/// The first frame that is not before `time_ns`, or the number of frames. By looking at all, as below: the clock may
/// have been set back meanwhile.
fn first_from(history: &dyn History, time_ns: u64) -> usize {
    let count = history.len();
    (0..count)
        .find(|index| history.time_ns(*index) >= time_ns)
        .unwrap_or(count)
}

/// The last frame that is not after `time_ns`, or the first one.
fn until(history: &dyn History, time_ns: u64) -> usize {
    let mut backwards = (0..history.len()).rev();
    backwards
        .find(|index| history.time_ns(*index) <= time_ns)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::fixture::{Recording, cgroup, snapshot};

    const SECOND: u64 = 1_000_000_000;

    /// A frame each five seconds from 1000 s on, with these figures.
    fn recording(figures: &[f64]) -> Recording {
        let frame = |(n, percent): (u64, &f64)| Snapshot {
            time_ns: (1000 + 5 * n) * SECOND,
            ..snapshot(vec![cgroup("/a", 1, *percent)])
        };
        Recording((0..).zip(figures).map(frame).collect())
    }

    #[track_caller]
    fn goes(player: &mut Player<'_>, travel: Travel, expected: Result<usize, &str>) {
        let result = player.go(travel);
        assert_eq!(result.map(|()| player.index), expected);
    }

    #[test]
    fn frames_and_minutes() {
        let mut recording = recording(&[0.0; 30]);
        let mut player = Player::new(&mut recording).expect("not empty");
        goes(&mut player, Travel::Frames(-1), Err("the recording begins here"));
        goes(&mut player, Travel::Frames(1), Ok(1));
        goes(&mut player, Travel::Span(60 * SECOND as i64), Ok(13));
        goes(&mut player, Travel::Span(60 * SECOND as i64), Ok(25));
        goes(&mut player, Travel::Span(60 * SECOND as i64), Ok(29));
        goes(&mut player, Travel::Frames(1), Err("the recording ends here"));
        goes(&mut player, Travel::Span(-60 * SECOND as i64), Ok(17));
        // Less than a frame is a frame.
        goes(&mut player, Travel::Span(-1), Ok(16));
        goes(&mut player, Travel::Span(1), Ok(17));
        goes(&mut player, Travel::To(1012 * SECOND), Ok(2));
        goes(&mut player, Travel::To(1015 * SECOND), Ok(3));
        goes(&mut player, Travel::To(0), Ok(0));
        goes(&mut player, Travel::To(u64::MAX), Ok(29));
        let before: Vec<u64> = player
            .before(10 * SECOND)
            .map(|frame| frame.expect("a frame").time_ns / SECOND)
            .collect();
        assert_eq!(before, [1135, 1140]);
    }

    #[test]
    fn an_empty_recording_has_no_player() {
        assert!(Player::new(&mut recording(&[])).is_none());
    }
}
