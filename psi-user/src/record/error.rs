//! What can be wrong with a recording.

use std::{fmt, io, path::PathBuf};

use thiserror::Error;

use super::VERSION;

/// Why a recording cannot be read or written.
#[derive(Debug, Error)]
pub enum Error {
    /// A file that cannot be opened, read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A file of another kind; it is left as it is.
    #[error("{} is no recording of psitrace: name another file, or remove that one", path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
    },
    /// A file that a newer psitrace wrote; it is left as it is.
    #[error(
        "{} has version {version} of the format, this psitrace knows up to {VERSION}: use a newer psitrace",
        path.display()
    )]
    Newer {
        /// Which.
        path: PathBuf,
        /// Its version.
        version: u16,
    },
    /// Somebody removed or emptied it while it was recorded to.
    #[error("{} was removed or cut short by another process, and what it had is lost: record again", path.display())]
    Gone {
        /// Which.
        path: PathBuf,
    },
    /// Both files of a recording are the same one.
    #[error("{} is the same file as the recording's other half: remove that link", path.display())]
    Twice {
        /// The second.
        path: PathBuf,
    },
    /// Another process records to it.
    #[error("{} is being recorded to by another process", path.display())]
    Busy {
        /// Which.
        path: PathBuf,
    },
    /// A frame whose checksum is right and whose content is not.
    #[error("{}: the frame at byte {offset} is malformed: {what}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Where its frame begins.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// There is no such frame.
    #[error("the recording has no frame {0}")]
    NoFrame(usize),
    /// A snapshot larger than a reader accepts.
    #[error("a snapshot of {cgroups} cgroups is too large to be recorded")]
    TooLarge {
        /// Its cgroups.
        cgroups: usize,
    },
}

impl Error {
    /// Adds the path to an IO error.
    pub(super) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }

    /// Whether it is that a file is not there.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::File { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether the disk, or the user's share of it, is full: room may come back.
    pub fn is_full_disk(&self) -> bool {
        let Self::File { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// A part of a recording that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// In which file.
    pub path: PathBuf,
    /// Where it begins.
    pub offset: u64,
    /// How many frames are lost with it, as far as that can be known: those that build on a lost one are lost too.
    pub frames: usize,
    /// What is wrong.
    pub what: &'static str,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            offset,
            frames,
            what,
        } = self;
        let frames = match frames {
            1 => "1 frame".to_owned(),
            _ => format!("{frames} frames"),
        };
        write!(f, "{}: {frames} lost at byte {offset}: {what}", path.display())
    }
}
