//! Files on a disk.

use std::{fs::OpenOptions, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path};

use rustix::fs::OFlags;
use tempfile::NamedTempFile;

use crate::session::Session;

/// Size of [`file`], bytes.
pub const SIZE: usize = 128 << 20;

/// A file in this folder, to be read past the page cache; none, and a skip, if the folder is not on a disk.
pub fn file(session: &Session, folder: &Path) -> Option<NamedTempFile> {
    let file = filled(folder);
    if OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::DIRECT.bits().cast_signed())
        .open(file.path())
        .is_err()
    {
        session.skip("the file system of the build folder has no direct io");
        return None;
    }
    Some(file)
}

/// A file of [`SIZE`] in this folder, on the disk if there is one.
pub fn filled(folder: &Path) -> NamedTempFile {
    const MEGABYTE: usize = 1 << 20;
    let mut file = NamedTempFile::new_in(folder).expect("a file in the build folder");
    for n in 0..SIZE / MEGABYTE {
        // Not all zeros: a file system may keep those without a disk.
        file.write_all(&vec![n as u8 | 1; MEGABYTE])
            .expect("room in the build folder");
    }
    file.as_file().sync_all().expect("the file can be written");
    file
}
