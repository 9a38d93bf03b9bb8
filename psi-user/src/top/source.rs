//! Where the view's snapshots come from: the tracer, or a recording.

use std::os::fd::BorrowedFd;

use anyhow::Result;

use super::inspect::Inspection;
use crate::{model::Snapshot, record::Replay};

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

    /// The first frame after `from` (before it, unless `forward`) where `figure` has reached `threshold` (%) and had
    /// not in the frame before. What is absent has not.
    ///
    /// A reader that knows a faster way than to look at all frames may go it.
    ///
    /// # Errors
    /// As [`frame`](Self::frame).
    fn spike(
        &mut self,
        from: usize,
        forward: bool,
        threshold: f64,
        figure: &dyn Fn(&Snapshot) -> Option<f64>,
    ) -> Result<Option<usize>> {
        let count = self.len();
        let mut is_high = |index| anyhow::Ok(figure(&self.frame(index)?).is_some_and(|figure| figure >= threshold));
        if forward {
            let mut before = from < count && is_high(from)?;
            for index in from + 1..count {
                let now = is_high(index)?;
                if now && !before {
                    return Ok(Some(index));
                }
                before = now;
            }
        } else if from > 0 {
            let mut now = is_high(from - 1)?;
            for index in (1..from).rev() {
                let before = is_high(index - 1)?;
                if now && !before {
                    return Ok(Some(index));
                }
                now = before;
            }
        }
        Ok(None)
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
}
