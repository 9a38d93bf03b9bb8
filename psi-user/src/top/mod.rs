//! The live view: `psitrace top`, and the same for a recording.
//!
//! Runs one way: [`Feed`] -> `state` -> [`View`] -> `terminal`. One task does it all; only the keys come from a thread of
//! their own (`input`).

mod acts;
mod columns;
mod detail;
mod escape;
mod filter;
#[cfg(test)]
mod fixture;
mod glyph;
mod header;
mod input;
mod inspect;
mod keys;
mod names;
mod order;
mod pane;
mod player;
mod prompt;
mod run;
mod search;
mod shown;
mod signals;
mod source;
mod state;
mod style;
mod table;
mod terminal;
#[cfg(test)]
mod tests;
mod trail;
mod view;
mod watch;

use std::time::Duration;

use jiff::tz::TimeZone;

pub use self::{
    columns::{SortKey, Window},
    inspect::{Inspection, Task, Tasks, inspect},
    run::run,
    source::{Feed, History, Source},
    style::Palette,
    view::View,
};

use crate::fields::Stall;

/// Shortest time between two refreshes.
pub const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// Longest time between two refreshes.
pub const MAX_INTERVAL: Duration = Duration::from_mins(1);

/// How the view starts; keys change all of it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Time between two refreshes, or two frames of a recording that is played; brought into [`MIN_INTERVAL`] to
    /// [`MAX_INTERVAL`].
    pub interval: Duration,
    /// Children below their parents, rather than one sorted list.
    pub tree: bool,
    /// Column to sort by.
    pub sort: SortKey,
    /// Time that the figures cover.
    pub window: Window,
    /// Where the reader is: times are shown and read as they are there.
    pub zone: TimeZone,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            tree: false,
            sort: SortKey::Stall(Stall::CPU_SOME),
            window: Window::AVG10,
            zone: TimeZone::UTC,
        }
    }
}
