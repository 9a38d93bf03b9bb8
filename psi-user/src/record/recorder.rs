//! Writes a recording.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    codec::Encoder,
    error::{Damage, Error},
    files,
    frame::{FileHeader, pack},
    require_two,
    segment::scan,
};
use crate::model::Snapshot;

/// A key frame at least this often: what has to be read, at most, to jump to a frame.
const KEY_FRAMES: u32 = 60;

/// Appends snapshots to a recording.
///
/// All it needs are its two files, open from the start: it goes on when the process has given up its capabilities.
#[derive(Debug)]
pub struct Recorder {
    segments: [Segment; 2],
    current: usize,
    keep: Duration,
    encoder: Encoder,
    /// Frames since the last key frame; none when the next has to be one.
    since_key: Option<u32>,
}

/// One of the two files.
#[derive(Debug)]
struct Segment {
    path: PathBuf,
    file: File,
    /// Counts up; 0 for a file that has no beginning yet.
    sequence: u64,
    /// End of the last whole frame.
    end: u64,
    /// Time that its frames cover.
    covered: Duration,
}

impl Segment {
    /// Opens it and leaves it as it is, but makes it if it is not there.
    fn open(path: &Path, damage: &mut Vec<Damage>) -> Result<Self, Error> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(Error::file(path))?;
        if !file.metadata().map_err(Error::file(path))?.is_file() {
            return Err(Error::Foreign { path: path.to_owned() });
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Busy { path: path.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(Error::file(path)(error)),
        }
        let contents = scan(path, &mut file)?;
        damage.extend(contents.damage);
        Ok(Self {
            path: path.to_owned(),
            file,
            sequence: contents.header.map_or(0, |header| header.sequence),
            end: contents.end,
            covered: contents
                .entries
                .iter()
                .map(|entry| interval(entry.header.interval_ns))
                .sum(),
        })
    }

    /// Cuts off what is left of a torn frame at its end.
    fn trim(&self) -> Result<(), Error> {
        self.file.set_len(self.end).map_err(Error::file(&self.path))
    }

    /// Empties it and begins anew.
    fn begin(&mut self, sequence: u64) -> Result<(), Error> {
        self.sequence = 0;
        self.end = 0;
        self.covered = Duration::ZERO;
        self.file.set_len(0).map_err(Error::file(&self.path))?;
        self.append(&FileHeader { sequence }.to_bytes())?;
        self.sequence = sequence;
        Ok(())
    }

    /// Writes all of it, or nothing where that can be helped.
    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        // A log rotation or a sweep of old files would otherwise take all that comes, without a word.
        let metadata = self.file.metadata().map_err(Error::file(&self.path))?;
        if metadata.nlink() == 0 || metadata.len() < self.end {
            return Err(Error::Gone {
                path: self.path.clone(),
            });
        }
        self.file.write_all_at(bytes, self.end).map_err(|error| {
            // The disk is full, say: without the half frame. If this fails too, readers know it for torn.
            let _ = self.file.set_len(self.end);
            Error::file(&self.path)(error)
        })?;
        self.end += bytes.len() as u64;
        Ok(())
    }
}

/// Hostile lengths must not add up to a panic.
fn interval(ns: u64) -> Duration {
    Duration::from_nanos(ns.min(u64::from(u32::MAX) * 1_000_000_000))
}

impl Recorder {
    /// Opens the two [`files`] of a recording, or makes them. An existing recording is gone on with.
    ///
    /// Each holds `keep` of snapshots before the other is emptied and takes over. So there is always that much, and at
    /// most twice as much.
    ///
    /// Also says what of the existing recording is lost; torn frames at its end are cut off.
    ///
    /// # Errors
    /// When they cannot be opened, are no recording, are of a newer version, or another process records to them: then
    /// they are left as they are.
    pub fn open(path: &Path, keep: Duration) -> Result<(Self, Vec<Damage>), Error> {
        let files = files(path);
        require_two(&files)?;
        let [first, second] = files;
        let mut damage = Vec::new();
        let segments = [
            Segment::open(&first, &mut damage)?,
            Segment::open(&second, &mut damage)?,
        ];
        segments.iter().try_for_each(Segment::trim)?;
        let mut recorder = Self {
            current: usize::from(segments[1].sequence > segments[0].sequence),
            segments,
            keep,
            encoder: Encoder::default(),
            since_key: None,
        };
        let current = &mut recorder.segments[recorder.current];
        if current.sequence == 0 {
            current.begin(1)?;
        }
        Ok((recorder, damage))
    }

    /// Appends a snapshot; `counts` are left out.
    ///
    /// # Errors
    /// When it cannot be written, see [`Error::is_full_disk`]: then it is not in the recording, and the next one may be
    /// tried.
    pub fn write(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        if self.segments[self.current].covered >= self.keep {
            let sequence = self.segments[self.current].sequence + 1;
            let other = 1 - self.current;
            self.segments[other].begin(sequence)?;
            self.current = other;
            self.since_key = None;
        }
        let is_key_due = self.since_key.is_none_or(|since| since + 1 >= KEY_FRAMES);
        let encoded = self.encoder.encode(snapshot, is_key_due);
        let is_key = encoded.is_key;
        let frame = pack(&encoded, snapshot.time_ns, snapshot.interval_ns).ok_or(Error::TooLarge {
            cgroups: snapshot.cgroups.len(),
        })?;
        let segment = &mut self.segments[self.current];
        segment.append(&frame)?;
        segment.covered += interval(snapshot.interval_ns);
        self.encoder.accept(encoded);
        self.since_key = Some(match self.since_key {
            Some(since) if !is_key => since + 1,
            _ => 0,
        });
        Ok(())
    }

    /// Bytes of both files.
    pub fn size(&self) -> u64 {
        self.segments.iter().map(|segment| segment.end).sum()
    }

    /// Waits until all is on the disk.
    ///
    /// # Errors
    /// When the disk says so.
    pub fn sync(&self) -> Result<(), Error> {
        self.segments.iter().try_for_each(|segment| {
            let synced: io::Result<()> = segment.file.sync_data();
            synced.map_err(Error::file(&segment.path))
        })
    }
}
