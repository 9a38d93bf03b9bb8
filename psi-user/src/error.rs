//! What can go wrong in the library, each with its remedy.

use std::{io, path::PathBuf};

use thiserror::Error;

/// Errors of the tracer.
#[derive(Debug, Error)]
pub enum Error {
    /// The process may not load BPF programs.
    #[error("no permission to trace: {missing} missing; run psitrace as root or with these capabilities")]
    Privilege {
        /// The capabilities that are missing, by name.
        missing: String,
    },
    /// The kernel has no type information.
    #[error("kernel type information: {0}; it comes with CONFIG_DEBUG_INFO_BTF=y and a mounted /sys")]
    Btf(String),
    /// A structure member that accounting cannot do without.
    #[error("this kernel has no {0}; `psitrace check` says what it lacks")]
    Member(String),
    /// The hierarchy asked for is not there.
    #[error("no cgroup hierarchy `{name}` is mounted; there is: {mounted}")]
    Hierarchy {
        /// What was asked for.
        name: String,
        /// What is mounted.
        mounted: String,
    },
    /// The kernel does not tell of its rstat locks.
    #[error(
        "this kernel has no cgroup_rstat_* tracepoints, which came with Linux 6.9: its rstat lock cannot be watched"
    )]
    NoRstat,
    /// A required program was refused.
    #[error("the kernel refused the required program {program}: {reason}; `psitrace check` says more")]
    Program {
        /// The program's name.
        program: String,
        /// The kernel's answer.
        reason: String,
    },
    /// The BPF object as a whole was refused.
    #[error("loading the BPF object: {0}; `psitrace check` says more")]
    Object(String),
    /// A map's memory.
    #[error("memory of the map {map}: {source}; with fewer slots (--max-cgroups) it takes less")]
    Map {
        /// The map's name.
        map: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A file that the tracer reads.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// More slots than the packed words can name.
    #[error("--max-cgroups {0} is out of range: 1 to {max}", max = psi_common::layout::MAX_SLOTS)]
    MaxCgroups(u32),
    /// The walk over the tasks.
    #[error("walking over the tasks: {0}")]
    Walk(io::Error),
}

impl Error {
    /// Adds the path to an IO error.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
