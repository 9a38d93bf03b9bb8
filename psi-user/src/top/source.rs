//! Where the view's snapshots come from: the tracer, or a recording.

use std::{ops::Range, os::fd::BorrowedFd};

use anyhow::Result;

use super::inspect::Inspection;
use crate::{
    model::Snapshot,
    record::{Replay, Spikes},
};

/// What the view shows.
pub enum Feed<'a> {
    /// What happens now.
    Live(&'a mut dyn Source),
    /// What happened.
    Replay(&'a mut dyn History),
}

/// What happens now.
pub trait Source {
    /// Takes the figures as of now. Called once per interval, also while the view is paused.
    ///
    /// # Errors
    /// End the view.
    fn snapshot(&mut self) -> Result<Snapshot>;

    /// A descriptor that is readable when there is work to do; asked for once.
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Does all the work that made [`wake_fd`](Self::wake_fd) readable: what it leaves waits for the next wake-up.
    ///
    /// # Errors
    /// End the view.
    fn housekeeping(&mut self) -> Result<()> {
        Ok(())
    }

    /// What the kernel tells of the cgroup with this path; none where it cannot be asked.
    fn inspect(&mut self, path: &str) -> Option<Inspection> {
        let _ = path;
        None
    }
}

/// What happened: frames by time.
pub trait History {
    /// Number of frames.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When frame `index` (below [`len`](Self::len)) was taken, ns since 1970.
    fn time_ns(&self, index: usize) -> u64;

    /// Frame `index`, with [`last`](crate::model::Pressure::last) as it was.
    ///
    /// # Errors
    /// When it cannot be read; this ends the view.
    fn frame(&mut self, index: usize) -> Result<Snapshot>;

    /// The frame to read first to get at `index`: where reading ahead from is cheap.
    fn run_start(&self, index: usize) -> usize {
        index.saturating_sub(60)
    }

    /// The first spike among `frames`, but for the first of these, which is what the second may rise from.
    ///
    /// A reader that knows a faster way than to read all of each frame may go it.
    ///
    /// # Errors
    /// As [`frame`](Self::frame).
    fn next_spike(&mut self, frames: Range<usize>, spikes: &Spikes) -> Result<Option<usize>> {
        spikes.next(frames, |index| Ok(spikes.value(&self.frame(index)?)))
    }

    /// The last one, likewise.
    ///
    /// # Errors
    /// As [`frame`](Self::frame).
    fn last_spike(&mut self, frames: Range<usize>, spikes: &Spikes) -> Result<Option<usize>> {
        spikes.last(frames, |index| Ok(spikes.value(&self.frame(index)?)))
    }
}

impl History for Replay {
    fn len(&self) -> usize {
        Self::len(self)
    }

    fn time_ns(&self, index: usize) -> u64 {
        Self::time_ns(self, index).unwrap_or_default()
    }

    fn frame(&mut self, index: usize) -> Result<Snapshot> {
        Ok(Self::frame(self, index)?)
    }

    fn run_start(&self, index: usize) -> usize {
        Self::run_start(self, index)
    }

    fn next_spike(&mut self, frames: Range<usize>, spikes: &Spikes) -> Result<Option<usize>> {
        Ok(Self::next_spike(self, frames, spikes)?)
    }

    fn last_spike(&mut self, frames: Range<usize>, spikes: &Spikes) -> Result<Option<usize>> {
        Ok(Self::last_spike(self, frames, spikes)?)
    }
}
