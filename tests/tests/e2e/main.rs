//! End to end: the real program on the real kernel, as root, in cgroups of the tests' own.

mod arithmetic;
mod attach;
mod bench;
mod capabilities;
mod check;
mod churn;
mod compare;
mod configuration;
mod cost;
mod counts;
mod detach;
mod ending;
mod forms;
mod lost_switches;
mod moving;
mod new_cgroup;
mod only_asked;
mod output;
mod recording;
mod recording_errors;
mod recording_size;
mod records;
mod switch;
mod top;
mod track;
mod unprivileged;
mod v1;
mod wrong_arguments;

use tempfile::NamedTempFile;
use tests::{disk, load::Load, session::Session};

/// A load to be started.
fn load() -> Load {
    Load::new(env!("CARGO_BIN_EXE_psi-load"))
}

/// A file on a disk, see [`disk::file`].
fn disk_file(session: &Session) -> Option<NamedTempFile> {
    disk::file(session, env!("CARGO_TARGET_TMPDIR").as_ref())
}
