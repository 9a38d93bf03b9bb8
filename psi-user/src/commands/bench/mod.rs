//! `psitrace bench`: one command makes each table of docs/performance.md.

mod depth;
mod flush;
pub(crate) mod loads;
mod machine;
mod nested;
mod overhead;
mod pairs;
mod subject;

use std::{
    process::ExitCode,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::Failure;
use crate::cli::{Bench, BenchArgs};

/// Whether a signal asks for the end.
static ENDED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode, Failure> {
    match &args.bench {
        Bench::Overhead(args) => overhead::run(args),
        Bench::Depth(args) => depth::run(args),
        Bench::Flush(args) => flush::run(args),
        Bench::Load(args) => loads::run(args),
    }
}

/// From here on SIGINT, SIGTERM and SIGHUP end nothing at once: [`go_on`] tells.
fn take_signals() -> Result<(), Failure> {
    let ended = ENDED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(ended))
            .map_err(|error| Failure::Cannot(format!("waiting for signals: {error}")))?;
    }
    Ok(())
}

/// Fails once a signal came: what is attached and made is then taken back on the way out.
fn go_on() -> Result<(), Failure> {
    if ENDED.get().is_some_and(|ended| ended.load(SeqCst)) {
        return Err(Failure::Cannot("ended by a signal before all was measured".to_owned()));
    }
    Ok(())
}
