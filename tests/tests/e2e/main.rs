//! End to end: the real program on the real kernel, as root, in cgroups of the tests' own.

mod arithmetic;
mod attach;
mod capabilities;
mod check;
mod churn;
mod compare;
mod counts;
mod detach;
mod ending;
mod lost_switches;
mod moving;
mod new_cgroup;
mod output;
mod records;
mod top;
mod unprivileged;
mod v1;
mod wrong_arguments;

use std::{fs::OpenOptions, io::Write as _, os::unix::fs::OpenOptionsExt as _};

use rustix::fs::OFlags;
use tempfile::NamedTempFile;
use tests::{load::Load, session::Session};

/// A load to be started.
fn load() -> Load {
    Load::new(env!("CARGO_BIN_EXE_psi-load"))
}

/// A file on a disk, to be read past the page cache; none, and a skip, if the build folder is not on one.
fn disk_file(session: &Session) -> Option<NamedTempFile> {
    const MEGABYTE: usize = 1 << 20;
    let mut file = NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a file in the build folder");
    for n in 0..128_u8 {
        file.write_all(&vec![n; MEGABYTE])
            .expect("room for 128 MiB in the build folder");
    }
    file.as_file().sync_all().expect("the file can be written");
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
