//! Moves through a recording.

use anyhow::Result;

use super::{source::History, style::HIGH};
use crate::model::Snapshot;

/// Where to go in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Travel {
    /// So many frames on, or back.
    Frames(isize),
    /// So many ns on, or back; at least a frame.
    Span(i64),
    /// The last frame until this time, ns since 1970.
    To(u64),
    /// Where the figure that is sorted by gets high next, or did before.
    Spike {
        /// The next one.
        forward: bool,
    },
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

    /// Goes there; else says why not.
    pub(super) fn go(
        &mut self,
        travel: Travel,
        figure: &dyn Fn(&Snapshot) -> Option<f64>,
    ) -> Result<Result<(), &'static str>> {
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
            Travel::Spike { forward } => match history.spike(*index, forward, HIGH, figure)? {
                Some(found) => found,
                None if forward => return Ok(Err("no spike from here to the end")),
                None => return Ok(Err("no spike from the beginning to here")),
            },
        };
        let to = to.min(last);
        if to == *index {
            return Ok(match travel {
                Travel::Frames(frames) if frames < 0 => Err("the recording begins here"),
                Travel::Span(span) if span < 0 => Err("the recording begins here"),
                Travel::Frames(_) | Travel::Span(_) => Err("the recording ends here"),
                Travel::To(_) | Travel::Spike { .. } => Ok(()),
            });
        }
        *index = to;
        Ok(Ok(()))
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
    use crate::fields::Stall;
    use crate::top::{
        columns::{SortKey, Window},
        fixture::{Recording, cgroup, snapshot},
    };

    const SECOND: u64 = 1_000_000_000;

    /// A frame each five seconds from 1000 s on, with these figures.
    fn recording(figures: &[f64]) -> Recording {
        let frame = |(n, percent): (u64, &f64)| Snapshot {
            time_ns: (1000 + 5 * n) * SECOND,
            ..snapshot(vec![cgroup("/a", 1, *percent)])
        };
        Recording((0..).zip(figures).map(frame).collect())
    }

    fn figure(snapshot: &Snapshot) -> Option<f64> {
        SortKey::Stall(Stall::CPU_SOME).figure(&snapshot.cgroups[0], Window::AVG10)
    }

    #[track_caller]
    fn goes(player: &mut Player<'_>, travel: Travel, expected: Result<usize, &str>) {
        let result = player.go(travel, &figure).expect("frames can be read");
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
    fn spikes_begin_where_the_figure_gets_high() {
        let mut recording = recording(&[20.0, 20.0, 1.0, 10.0, 99.0, 0.0, 0.0, 12.0, 9.99]);
        let mut player = Player::new(&mut recording).expect("not empty");
        let (next, previous) = (Travel::Spike { forward: true }, Travel::Spike { forward: false });
        goes(&mut player, next, Ok(3));
        goes(&mut player, next, Ok(7));
        goes(&mut player, next, Err("no spike from here to the end"));
        goes(&mut player, previous, Ok(3));
        goes(&mut player, previous, Err("no spike from the beginning to here"));
        goes(&mut player, Travel::Frames(2), Ok(5));
        goes(&mut player, previous, Ok(3));
    }

    #[test]
    fn an_empty_recording_has_no_player() {
        assert!(Player::new(&mut recording(&[])).is_none());
    }
}
