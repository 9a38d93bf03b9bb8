//! Recordings, read as docs/record-format.md describes them: a reader of their outside that is not psitrace's own.

use std::{fs, path::Path};

/// Length of a file's beginning.
pub const FILE_HEADER: usize = 24;
const FRAME_HEADER: usize = 33;

/// One frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Where it begins.
    pub offset: usize,
    /// Its length, with its header.
    pub length: usize,
    /// Whether it builds on nothing.
    pub is_key: bool,
    /// When it was taken, ns since 1970.
    pub time_ns: u64,
}

/// The whole frames of a file.
pub fn frames(path: &Path) -> Vec<Frame> {
    let bytes = fs::read(path).expect("the recording can be read");
    let mut frames = Vec::new();
    let mut offset = FILE_HEADER;
    while let Some(header) = bytes.get(offset..offset + FRAME_HEADER) {
        let length = u32::from_le_bytes(header[..4].try_into().expect("four bytes")) as usize;
        let length = FRAME_HEADER + length;
        if offset + length > bytes.len() {
            break;
        }
        frames.push(Frame {
            offset,
            length,
            is_key: header[8] == 0,
            time_ns: u64::from_le_bytes(header[9..17].try_into().expect("eight bytes")),
        });
        offset += length;
    }
    frames
}
