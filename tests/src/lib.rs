//! Helpers of the end-to-end tests, which run the real program on the real kernel.
//!
//! They panic with what was expected and what was seen: their callers are tests.

pub mod bpf_ids;
pub mod cgroup;
pub mod disk;
pub mod load;
pub mod machine;
pub mod program;
pub mod record;
pub mod recording;
pub mod running;
pub mod session;
pub mod terminal;

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

/// Longest wait for anything that has to happen: long, for a busy machine is no failure.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Asks `probe` until it has an answer; panics when there is none within `patience`.
pub fn eventually<T>(what: &str, patience: Duration, mut probe: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(start.elapsed() < patience, "expected within {patience:?}: {what}");
        sleep(Duration::from_millis(20));
    }
}
