//! Reads a recording.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Cursor},
    ops::Range,
    path::{Path, PathBuf},
};

use super::{
    codec::Decoder,
    error::{Damage, Error},
    files,
    frame::FrameHeader,
    segment::{Entry, Input, read, scan},
    spike::Spikes,
};
use crate::model::Snapshot;

/// A recording: its frames by number, in the order in which they were written.
///
/// Opening it reads it once, for its checksums and for an index; then each frame is read when it is asked for. Going
/// on by a frame decodes that one, a jump up to 60.
pub struct Replay {
    segments: Vec<(PathBuf, Box<dyn Input>)>,
    /// The frames, with their segment's number.
    index: Vec<(usize, Entry)>,
    damage: Vec<Damage>,
    decoder: Decoder,
    /// The frame that was decoded last.
    at: Option<usize>,
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("frames", &self.index.len())
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl Replay {
    /// Opens a recording, given its first file's path; one of the two [`files`] may be missing.
    ///
    /// # Errors
    /// When neither can be opened, or one is no recording or of a newer version.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut inputs: Vec<(PathBuf, Box<dyn Input>)> = Vec::new();
        let mut missing = None;
        for path in files(path) {
            // Of a fifo even opening may wait for ever; a folder says what it is.
            if fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
                return Err(Error::Foreign { path });
            }
            match File::open(&path) {
                Ok(file) => inputs.push((path, Box::new(file))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    missing.get_or_insert((path, error));
                }
                Err(error) => return Err(Error::file(path)(error)),
            }
        }
        match missing {
            Some((path, error)) if inputs.is_empty() => Err(Error::file(path)(error)),
            _ => Self::from_inputs(inputs),
        }
    }

    /// One file of a recording that is in memory.
    ///
    /// # Errors
    /// When it is no recording, or of a newer version.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Error> {
        Self::from_inputs(vec![(PathBuf::from("memory"), Box::new(Cursor::new(bytes)))])
    }

    fn from_inputs(inputs: Vec<(PathBuf, Box<dyn Input>)>) -> Result<Self, Error> {
        let mut found = Vec::new();
        for (path, mut input) in inputs {
            let contents = scan(&path, &mut *input)?;
            found.push((contents, path, input));
        }
        found.sort_by_key(|(contents, ..)| contents.header.map_or(0, |header| header.sequence));
        let mut replay = Self {
            segments: Vec::new(),
            index: Vec::new(),
            damage: Vec::new(),
            decoder: Decoder::default(),
            at: None,
        };
        for (n, (contents, path, input)) in found.into_iter().enumerate() {
            replay
                .index
                .extend(contents.entries.into_iter().map(|entry| (n, entry)));
            replay.damage.extend(contents.damage);
            replay.segments.push((path, input));
        }
        Ok(replay)
    }

    /// What of the recording is lost.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Number of frames.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// When a frame's snapshot was taken, ns since 1970.
    pub fn time_ns(&self, frame: usize) -> Option<u64> {
        self.index.get(frame).map(|(_, entry)| entry.header.time_ns)
    }

    /// When the first and the last frame's snapshots were taken.
    pub fn span_ns(&self) -> Option<(u64, u64)> {
        Some((self.time_ns(0)?, self.time_ns(self.len() - 1)?))
    }

    /// The first frame that is not before `time_ns`.
    ///
    /// By looking at all: the clock may have been set back meanwhile.
    pub fn at_or_after(&self, time_ns: u64) -> Option<usize> {
        self.index.iter().position(|(_, entry)| entry.header.time_ns >= time_ns)
    }

    /// The last frame that is not after `time_ns`.
    pub fn at_or_before(&self, time_ns: u64) -> Option<usize> {
        self.index
            .iter()
            .rposition(|(_, entry)| entry.header.time_ns <= time_ns)
    }

    /// A frame's snapshot.
    ///
    /// # Errors
    /// When there is no such frame, or its content is malformed, or its file cannot be read.
    pub fn frame(&mut self, frame: usize) -> Result<Snapshot, Error> {
        let FrameHeader {
            time_ns, interval_ns, ..
        } = self.decode(frame)?;
        self.decoder.snapshot(time_ns, interval_ns).ok_or(Error::NoFrame(frame))
    }

    /// Brings the decoder to a frame.
    fn decode(&mut self, frame: usize) -> Result<FrameHeader, Error> {
        if frame >= self.len() {
            return Err(Error::NoFrame(frame));
        }
        // From the nearest frame that is known or builds on nothing; the first of a file always does.
        let key = self.run_start(frame);
        let first = match self.at.take() {
            Some(at) if (key..=frame).contains(&at) => at + 1,
            _ => key,
        };
        for n in first..=frame {
            let (segment, entry) = self.index[n];
            let (path, input) = &mut self.segments[segment];
            let content = read(path, &mut **input, &entry)?;
            self.decoder
                .decode(entry.header.is_key, &content)
                .map_err(|error| Error::Malformed {
                    path: path.clone(),
                    offset: entry.offset,
                    what: error.0,
                })?;
        }
        self.at = Some(frame);
        Ok(self.index[frame].1.header)
    }

    /// The frame that must be decoded first to get at `frame`, the one it builds on in the end: to go backwards through
    /// a recording, it is best read run by run.
    pub fn run_start(&self, frame: usize) -> usize {
        let known = ..=frame.min(self.len().saturating_sub(1));
        let before = self.index.get(known).unwrap_or_default();
        before.iter().rposition(|(_, entry)| entry.header.is_key).unwrap_or(0)
    }

    /// The first spike among `frames`, but for the first of these, which is what the second may rise from. What of
    /// `frames` does not exist is left out.
    ///
    /// # Errors
    /// As of [`Self::frame`].
    pub fn next_spike(&mut self, frames: Range<usize>, spikes: &Spikes) -> Result<Option<usize>, Error> {
        let frames = frames.start..frames.end.min(self.len());
        spikes.next(frames, |frame| self.value(frame, spikes))
    }

    /// The last one, likewise.
    ///
    /// # Errors
    /// As of [`Self::frame`].
    pub fn last_spike(&mut self, frames: Range<usize>, spikes: &Spikes) -> Result<Option<usize>, Error> {
        let frames = frames.start..frames.end.min(self.len());
        spikes.last(frames, |frame| self.value(frame, spikes))
    }

    /// [`Spikes::value`] of a frame, without all the rest of its snapshot.
    fn value(&mut self, frame: usize, spikes: &Spikes) -> Result<f64, Error> {
        let Spikes { cgroup, figure, .. } = spikes;
        let FrameHeader { interval_ns, .. } = self.decode(frame)?;
        let value = self.decoder.highest(cgroup.as_deref(), *figure, interval_ns);
        Ok(value.unwrap_or(0.0))
    }
}
