//! Where `dump` writes to.

use std::{
    fs::{File, Metadata},
    io::{self, ErrorKind, Write as _},
    os::fd::AsFd as _,
    path::Path,
};

use crate::commands::Failure;

/// Where records go.
pub(super) struct Output {
    name: String,
    file: File,
    /// Bytes of whole records, for a regular file.
    whole: Option<u64>,
}

impl Output {
    /// A file, emptied, or standard output.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let name = path.map_or_else(|| "standard output".to_owned(), |path| path.display().to_string());
        let open = || match path {
            Some(path) => File::create(path),
            None => io::stdout().as_fd().try_clone_to_owned().map(File::from),
        };
        let file = open().map_err(|error| Failure::Usage(format!("cannot write {name}: {error}")))?;
        let whole = path
            .and_then(|_| file.metadata().ok())
            .filter(Metadata::is_file)
            .map(|_| 0);
        Ok(Self { name, file, whole })
    }

    /// Writes one whole record, or nothing of it where that can be helped. Says whether there is still a reader.
    pub(super) fn write(&mut self, record: &str) -> Result<bool, Failure> {
        match self.file.write_all(record.as_bytes()) {
            Ok(()) => {
                self.whole = self.whole.map(|whole| whole + record.len() as u64);
                Ok(true)
            }
            // The reader has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            Err(error) => {
                if let Some(whole) = self.whole {
                    // The disk is full, say: without the half record. If this fails too, the first error is told.
                    let _ = self.file.set_len(whole);
                }
                Err(Failure::Usage(format!("cannot write {}: {error}", self.name)))
            }
        }
    }
}
