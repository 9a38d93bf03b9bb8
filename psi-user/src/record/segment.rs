//! One of a recording's files: which frames it has.

use std::{
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use super::{
    error::{Damage, Error},
    frame::{Beginning, FILE_HEADER, FRAME_HEADER, FileHeader, FrameHeader},
};

/// A file, or what stands for one.
pub(super) trait Input: Read + Seek + Send {}

impl<T: Read + Seek + Send> Input for T {}

/// A frame that can be used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Where its header begins.
    pub(super) offset: u64,
    pub(super) header: FrameHeader,
}

/// What is in a file.
#[derive(Debug)]
pub(super) struct Contents {
    /// None if the file is empty, or its writer came no further than into its beginning.
    pub(super) header: Option<FileHeader>,
    /// In their order.
    pub(super) entries: Vec<Entry>,
    pub(super) damage: Vec<Damage>,
    /// Where the last whole frame ends.
    pub(super) end: u64,
}

/// Reads through a file once: its length is what it takes, whatever is in it.
pub(super) fn scan(path: &Path, input: &mut dyn Input) -> Result<Contents, Error> {
    let failed = || Error::file(path);
    let length = input.seek(SeekFrom::End(0)).map_err(failed())?;
    input.rewind().map_err(failed())?;
    let mut beginning = Vec::new();
    (&mut *input)
        .take(FILE_HEADER as u64)
        .read_to_end(&mut beginning)
        .map_err(failed())?;
    let header = match Beginning::of(&beginning) {
        Beginning::Recording(header) => Some(header),
        Beginning::Torn => None,
        Beginning::Newer(version) => {
            return Err(Error::Newer {
                path: path.to_owned(),
                version,
            });
        }
        Beginning::Foreign => return Err(Error::Foreign { path: path.to_owned() }),
    };
    let mut contents = Contents {
        end: if header.is_some() { FILE_HEADER as u64 } else { 0 },
        header,
        entries: Vec::new(),
        damage: Vec::new(),
    };
    if header.is_some() {
        frames(path, input, length, &mut contents)?;
    }
    Ok(contents)
}

fn frames(path: &Path, input: &mut dyn Input, length: u64, contents: &mut Contents) -> Result<(), Error> {
    let mut offset = FILE_HEADER as u64;
    // Whether the frame before can be built on.
    let mut is_whole = false;
    let Contents {
        entries,
        damage,
        end: usable,
        ..
    } = contents;
    let lost = |offset, what| Damage {
        path: path.to_owned(),
        offset,
        frames: 1,
        what,
    };
    while offset < length {
        let mut bytes = [0; FRAME_HEADER];
        if length - offset < FRAME_HEADER as u64 {
            damage.push(lost(offset, "the file ends within it"));
            break;
        }
        input.read_exact(&mut bytes).map_err(Error::file(path))?;
        let Some(header) = FrameHeader::parse(&bytes) else {
            // Where the next one begins cannot be known.
            damage.push(lost(
                offset,
                "it is damaged, and whatever follows it in this file is lost too",
            ));
            break;
        };
        let end = offset + FRAME_HEADER as u64 + u64::from(header.length);
        if end > length {
            damage.push(lost(offset, "the file ends within it"));
            break;
        }
        if checksum(input, header.length.into()).map_err(Error::file(path))? != header.checksum {
            damage.push(lost(offset, "it is damaged"));
            is_whole = false;
        } else if header.is_key || is_whole {
            entries.push(Entry { offset, header });
            is_whole = true;
        } else if let Some(damage) = damage.last_mut() {
            damage.frames += 1;
        } else {
            damage.push(lost(offset, "the frame that it builds on is missing"));
        }
        offset = end;
        *usable = end;
    }
    Ok(())
}

/// CRC-32 of the next `length` bytes.
fn checksum(input: &mut dyn Input, length: u64) -> io::Result<u32> {
    let mut hasher = crc32fast::Hasher::new();
    let mut rest = input.take(length);
    let mut chunk = [0; 16 << 10];
    loop {
        match rest.read(&mut chunk) {
            Ok(0) => return Ok(hasher.finalize()),
            Ok(count) => hasher.update(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A frame's content, decompressed.
pub(super) fn read(path: &Path, input: &mut dyn Input, entry: &Entry) -> Result<Vec<u8>, Error> {
    let Entry { offset, header } = entry;
    let malformed = |what| Error::Malformed {
        path: path.to_owned(),
        offset: *offset,
        what,
    };
    input
        .seek(SeekFrom::Start(offset + FRAME_HEADER as u64))
        .map_err(Error::file(path))?;
    // No longer than the file, which was looked at: this much there was.
    let mut compressed = vec![0; header.length as usize];
    input.read_exact(&mut compressed).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => malformed("it was overwritten since the recording was opened"),
        _ => Error::file(path)(error),
    })?;
    if crc32fast::hash(&compressed) != header.checksum {
        return Err(malformed("it was overwritten since the recording was opened"));
    }
    header.unpack(&compressed).map_err(|error| malformed(error.0))
}
