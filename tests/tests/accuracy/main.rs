//! Accuracy: psitrace beside the kernel's own PSI, on the real kernel, under loads of all kinds.
//!
//! `cargo xtask accuracy` runs this and writes the figures to docs/accuracy.md, which says what is compared and what may
//! differ. Each load runs in a cgroup of its own below a parent of its own, and is at work before psitrace comes and
//! after it has gone.

mod attaching;
mod cgroups;
mod hotplug;
mod io;
mod measure;
mod model;
mod processor;
mod storms;

use std::path::Path;

use tests::{
    load::{self, Load, Working},
    session::Session,
};

/// A load to be started.
fn load() -> Load {
    Load::new(env!("CARGO_BIN_EXE_psi-load"))
}

/// Where files of the tests go: the build folder.
fn folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Loads of others, which `cargo xtask setup` installs.
const TOOLS: [&str; 5] = ["cyclictest", "fio", "hackbench", "perf", "stress-ng"];

/// Starts another program in a load's place, `fio ...` say; none, and a skip, if it is not installed.
fn tool(session: &Session, load: Load, line: &str) -> Option<Working> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let missing = words
        .iter()
        .find(|word| TOOLS.contains(word) && !load::is_installed(word));
    if let Some(missing) = missing {
        session.skip(&format!("{missing} is not installed; run `cargo xtask setup`"));
        return None;
    }
    Some(load.start_tool(&words))
}
