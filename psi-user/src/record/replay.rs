//! Reads a recording.

use std::{
    fmt,
    fs::{self, File},
    io::Cursor,
    ops::Range,
    path::{Path, PathBuf},
};

use super::{
    codec::Decoder,
    error::{Damage, Error},
    files,
    frame::FrameHeader,
    require_two,
    segment::{Contents, Entry, Input, read, scan},
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
    left_out: Option<Error>,
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
    /// Opens a recording, given its first file's path. One of the two [`files`] may be missing. So may one be foreign, of a
    /// newer version or unreadable, if the other has frames: it is [`left_out`](Self::left_out).
    ///
    /// # Errors
    /// When neither has frames and one cannot be used, or both are missing.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let files = files(path);
        let [first, second] = &files;
        let second = require_two(&files).and_then(|()| Half::open(second));
        Self::from_halves([Half::open(first), second])
    }

    /// One file of a recording that is in memory.
    ///
    /// # Errors
    /// When it is no recording, or of a newer version.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Error> {
        Self::from_halves([Half::scan(Path::new("memory"), Box::new(Cursor::new(bytes)))])
    }

    fn from_halves(halves: impl IntoIterator<Item = Result<Half, Error>>) -> Result<Self, Error> {
        let mut found = Vec::new();
        let (mut missing, mut left_out) = (None, None);
        for half in halves {
            match half {
                Ok(half) => found.push(half),
                Err(error) if error.is_missing() => missing = missing.or(Some(error)),
                Err(error) => left_out = left_out.or(Some(error)),
            }
        }
        // With nothing to show, the reason is what counts. Else that one is missing is no news.
        if found.iter().all(|half| half.contents.entries.is_empty())
            && let Some(error) = left_out.take().or(missing.filter(|_| found.is_empty()))
        {
            return Err(error);
        }
        found.sort_by_key(|half| half.contents.header.map_or(0, |header| header.sequence));
        let mut replay = Self {
            segments: Vec::new(),
            index: Vec::new(),
            damage: Vec::new(),
            left_out,
            decoder: Decoder::default(),
            at: None,
        };
        for (n, Half { path, input, contents }) in found.into_iter().enumerate() {
            replay
                .index
                .extend(contents.entries.into_iter().map(|entry| (n, entry)));
            replay.damage.extend(contents.damage);
            replay.segments.push((path, input));
        }
        Ok(replay)
    }

    /// Why one of the two files is left out, if one is.
    pub const fn left_out(&self) -> Option<&Error> {
        self.left_out.as_ref()
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

/// One of the two files.
struct Half {
    path: PathBuf,
    input: Box<dyn Input>,
    contents: Contents,
}

impl Half {
    fn open(path: &Path) -> Result<Self, Error> {
        // Of a fifo even opening may wait for ever; a folder says what it is.
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
            return Err(Error::Foreign { path: path.to_owned() });
        }
        let file = File::open(path).map_err(Error::file(path))?;
        Self::scan(path, Box::new(file))
    }

    fn scan(path: &Path, mut input: Box<dyn Input>) -> Result<Self, Error> {
        Ok(Self {
            contents: scan(path, &mut *input)?,
            path: path.to_owned(),
            input,
        })
    }
}
