//! The frames of a recording, and what is at the beginning of its files: little-endian, each with its checksum.

use crc32fast::hash;
use miniz_oxide::{deflate::compress_to_vec, inflate::decompress_to_vec_with_limit};

use super::{VERSION, codec::Encoded, varint::Malformed};

/// What each file begins with.
pub(super) const MAGIC: [u8; 8] = *b"\x89PSIREC\n";
/// Length of what comes before the first frame.
pub(super) const FILE_HEADER: usize = 24;
/// Length of what comes before a frame's content.
pub(super) const FRAME_HEADER: usize = 33;
/// Longest content, compressed or not. It takes half a million cgroups with long names.
pub(super) const MAX_CONTENT: usize = 64 << 20;

/// Speed against size, 1 to 10: more costs much and gains a few percent.
const LEVEL: u8 = 6;

/// The beginning of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileHeader {
    /// Of the two files the one with the higher number is the newer.
    pub(super) sequence: u64,
}

/// What a file's beginning is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// A recording.
    Recording(FileHeader),
    /// Nothing, or a part of a recording's beginning: its writer came no further.
    Torn,
    /// A recording of a newer version.
    Newer(u16),
    /// Something else.
    Foreign,
}

impl FileHeader {
    pub(super) fn to_bytes(self) -> [u8; FILE_HEADER] {
        let mut bytes = [0; FILE_HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        // Two bytes of nothing.
        bytes[12..20].copy_from_slice(&self.sequence.to_le_bytes());
        let checksum = hash(&bytes[..20]);
        bytes[20..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }
}

impl Beginning {
    /// Of a file that begins with `bytes`, and has no more if they are fewer than [`FILE_HEADER`].
    pub(super) fn of(bytes: &[u8]) -> Self {
        let known = bytes.len().min(MAGIC.len());
        if bytes[..known] != MAGIC[..known] {
            return Self::Foreign;
        }
        let Some(header) = bytes.first_chunk::<FILE_HEADER>() else {
            return Self::Torn;
        };
        let version = u16::from_le_bytes(take(header, 8));
        if version > VERSION {
            // Whatever follows, this program cannot know.
            return Self::Newer(version);
        }
        if u32::from_le_bytes(take(header, 20)) != hash(&header[..20]) {
            return Self::Foreign;
        }
        Self::Recording(FileHeader {
            sequence: u64::from_le_bytes(take(header, 12)),
        })
    }
}

/// What is known of a frame before its content is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    /// Length of the compressed content.
    pub(super) length: u32,
    /// Length of the content.
    pub(super) full_length: u32,
    /// Whether it builds on nothing.
    pub(super) is_key: bool,
    /// The snapshot's.
    pub(super) time_ns: u64,
    /// The snapshot's.
    pub(super) interval_ns: u64,
    /// CRC-32 of the compressed content.
    pub(super) checksum: u32,
}

impl FrameHeader {
    fn to_bytes(self) -> [u8; FRAME_HEADER] {
        let mut bytes = [0; FRAME_HEADER];
        bytes[..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.full_length.to_le_bytes());
        bytes[8] = u8::from(!self.is_key);
        bytes[9..17].copy_from_slice(&self.time_ns.to_le_bytes());
        bytes[17..25].copy_from_slice(&self.interval_ns.to_le_bytes());
        bytes[25..29].copy_from_slice(&self.checksum.to_le_bytes());
        let checksum = hash(&bytes[..29]);
        bytes[29..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// None if its checksum is wrong, or it says what cannot be.
    pub(super) fn parse(bytes: &[u8; FRAME_HEADER]) -> Option<Self> {
        let header = Self {
            length: u32::from_le_bytes(take(bytes, 0)),
            full_length: u32::from_le_bytes(take(bytes, 4)),
            is_key: bytes[8] == 0,
            time_ns: u64::from_le_bytes(take(bytes, 9)),
            interval_ns: u64::from_le_bytes(take(bytes, 17)),
            checksum: u32::from_le_bytes(take(bytes, 25)),
        };
        let is_right = u32::from_le_bytes(take(bytes, 29)) == hash(&bytes[..29])
            && bytes[8] <= 1
            && header.length as usize <= MAX_CONTENT
            && header.full_length as usize <= MAX_CONTENT;
        is_right.then_some(header)
    }

    /// The content of a frame: never longer than its header says.
    pub(super) fn unpack(&self, compressed: &[u8]) -> Result<Vec<u8>, Malformed> {
        let content = decompress_to_vec_with_limit(compressed, self.full_length as usize)
            .map_err(|_| Malformed("it cannot be decompressed"))?;
        if content.len() != self.full_length as usize {
            return Err(Malformed("it is shorter than it should be"));
        }
        Ok(content)
    }
}

/// A whole frame; none if it would be larger than a reader accepts.
pub(super) fn pack(encoded: &Encoded, time_ns: u64, interval_ns: u64) -> Option<Vec<u8>> {
    let content = compress_to_vec(&encoded.bytes, LEVEL);
    if encoded.bytes.len().max(content.len()) > MAX_CONTENT {
        return None;
    }
    let header = FrameHeader {
        length: content.len() as u32,
        full_length: encoded.bytes.len() as u32,
        is_key: encoded.is_key,
        time_ns,
        interval_ns,
        checksum: hash(&content),
    };
    Some([&header.to_bytes(), &content[..]].concat())
}

/// `N` bytes at a place that is there.
fn take<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut taken = [0; N];
    taken.copy_from_slice(&bytes[at..at + N]);
    taken
}
