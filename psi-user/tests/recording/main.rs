//! Recordings: whatever is in a file, the reader neither panics nor reads past a frame; what was written comes back.

mod damage;
mod round_trip;
mod snapshots;
mod spikes;

use std::path::Path;

use psi_user::{
    model::Snapshot,
    record::{Recorder, Replay},
};

/// A day.
const LONG: std::time::Duration = std::time::Duration::from_hours(24);

/// Records these snapshots and returns the file.
fn recorded(snapshots: &[Snapshot]) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording");
    record(&path, snapshots);
    std::fs::read(path).expect("the recording")
}

fn record(path: &Path, snapshots: &[Snapshot]) {
    let (mut recorder, damage) = Recorder::open(path, LONG).expect("a recording");
    assert_eq!(damage, []);
    for snapshot in snapshots {
        recorder.write(snapshot).expect("room");
    }
}

/// As much as can be read.
fn replayed(bytes: &[u8]) -> Vec<Snapshot> {
    let mut replay = Replay::from_bytes(bytes.to_vec()).expect("a recording");
    (0..replay.len()).map(|n| replay.frame(n).expect("a frame")).collect()
}

/// All that a snapshot says, with what JSON leaves out.
fn text(snapshot: &Snapshot) -> String {
    format!("{snapshot:?}")
}
