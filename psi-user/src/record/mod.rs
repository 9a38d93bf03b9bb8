//! Recordings: snapshots in a file, compact enough to be kept for days. docs/record-format.md describes the format.
//!
//! [`Recorder`] writes one, [`Replay`] reads it and yields the same [`Snapshot`](crate::model::Snapshot)s as the tracer
//! did.

mod codec;
mod error;
mod frame;
mod recorder;
mod replay;
mod segment;
mod spike;
mod varint;

use std::path::{Path, PathBuf};

pub use self::{
    error::{Damage, Error},
    recorder::Recorder,
    replay::Replay,
    spike::Spikes,
};

/// The version of the format that is written; all up to it are read.
pub const VERSION: u16 = 1;

/// The two files of a recording: they take turns, so that the older frames can be given up without touching the others.
pub fn files(path: &Path) -> [PathBuf; 2] {
    let mut second = path.as_os_str().to_owned();
    second.push(".2");
    [path.to_owned(), second.into()]
}
