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

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

pub use self::{
    error::{Damage, Error},
    recorder::Recorder,
    replay::Replay,
    spike::Spikes,
};

/// The version of the format that is written; all up to it are read.
pub const VERSION: u16 = 1;

/// The two files of a recording: they take turns, so that the older frames can be given up without touching the others.
///
/// Where `path` is a symbolic link they lie where it leads to: two halves in two folders would be no recording.
pub fn files(path: &Path) -> [PathBuf; 2] {
    let first = followed(path);
    let mut second = first.as_os_str().to_owned();
    second.push(".2");
    [first, second.into()]
}

/// Fails if both names are those of one file: it cannot take turns with itself.
fn require_two([first, second]: &[PathBuf; 2]) -> Result<(), Error> {
    let file = |path: &Path| fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
    if file(first).is_some_and(|first| Some(first) == file(second)) {
        return Err(Error::Twice { path: second.clone() });
    }
    Ok(())
}

/// What a symbolic link names in the end, even if that is not there yet.
fn followed(path: &Path) -> PathBuf {
    /// As many as Linux follows.
    const MOST_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        let target = path.parent().unwrap_or(Path::new("")).join(target);
        // Those in /proc/PID/fd lead to what may have no name: `pipe:[4711]`.
        if path.exists() && !target.exists() {
            break;
        }
        path = target;
    }
    path
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn both_files_lie_where_a_link_leads_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("disk")).expect("a folder");
        symlink("second", at("first")).expect("a link");
        symlink(at("disk/there"), at("second")).expect("a link");
        let pair = |name| [at(name), at(&format!("{name}.2"))];
        // First there is none yet.
        assert_eq!(files(&at("first")), pair("disk/there"));
        fs::write(at("disk/there"), "").expect("a file");
        assert_eq!(files(&at("first")), pair("disk/there"));
        assert_eq!(files(&at("none")), pair("none"));
        assert_eq!(
            files(Path::new("no-such-recording"))[1],
            Path::new("no-such-recording.2")
        );
        // One that leads to itself ends, whatever it yields.
        symlink("circle", at("circle")).expect("a link");
        assert_eq!(files(&at("circle")), pair("circle"));
    }
}
