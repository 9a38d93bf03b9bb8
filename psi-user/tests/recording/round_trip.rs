//! What was written comes back.

use proptest::prelude::*;
use psi_user::record::{Recorder, Replay, files};

use crate::{
    LONG, record, recorded, replayed,
    snapshots::{run, with_cpu_some},
    text,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Exactly, to the last bit of the last interval's share.
    #[test]
    fn snapshots_come_back(snapshots in run()) {
        let back = replayed(&recorded(&snapshots));
        prop_assert_eq!(
            back.iter().map(text).collect::<Vec<_>>(),
            snapshots.iter().map(text).collect::<Vec<_>>()
        );
    }

    #[test]
    fn frames_come_in_any_order(snapshots in run(), order in prop::collection::vec(any::<prop::sample::Index>(), 1..20)) {
        let mut replay = Replay::from_bytes(recorded(&snapshots)).expect("a recording");
        prop_assert_eq!(replay.len(), snapshots.len());
        for index in order {
            let n = index.index(snapshots.len());
            prop_assert_eq!(text(&replay.frame(n).expect("a frame")), text(&snapshots[n]));
        }
    }

    /// Each run of the recorder begins anew, in the same file.
    #[test]
    fn a_recording_is_gone_on_with(first in run(), second in run()) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("recording");
        record(&path, &first);
        record(&path, &second);
        let mut replay = Replay::open(&path).expect("a recording");
        let both: Vec<String> = first.iter().chain(&second).map(text).collect();
        let back: Vec<String> = (0..replay.len()).map(|n| text(&replay.frame(n).expect("a frame"))).collect();
        prop_assert_eq!(back, both);
    }
}

#[test]
fn times_find_frames() {
    let at = |second: u64| second * 1_000_000_000;
    // The clock is set back in between.
    let snapshots: Vec<_> = [10, 11, 12, 5, 6, 13]
        .map(|second| with_cpu_some(at(second), 0.0))
        .into();
    let replay = Replay::from_bytes(recorded(&snapshots)).expect("a recording");
    assert_eq!(replay.span_ns(), Some((at(10), at(13))));
    assert_eq!(replay.at_or_after(at(11)), Some(1));
    assert_eq!(replay.at_or_after(at(13)), Some(5));
    assert_eq!(replay.at_or_after(at(13) + 1), None);
    assert_eq!(replay.at_or_before(at(12)), Some(4));
    assert_eq!(replay.at_or_before(at(5)), Some(3));
    assert_eq!(replay.at_or_before(at(4)), None);
    assert_eq!(replay.time_ns(3), Some(at(5)));
    assert_eq!(replay.time_ns(6), None);
}

/// Half of the frames are on either file once both were in use, and the order is right whichever is the newer.
#[test]
fn the_two_files_take_turns() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording");
    let snapshots: Vec<_> = (0..35).map(|n| with_cpu_some(n * 1_000_000_000, 0.0)).collect();
    let mut written = 0;
    for part in snapshots.chunks(7) {
        let keep = std::time::Duration::from_secs(10);
        let (mut recorder, _) = Recorder::open(&path, keep).expect("a recording");
        for snapshot in part {
            recorder.write(snapshot).expect("room");
        }
        written += part.len() as u64;
        let replay = Replay::open(&path).expect("a recording");
        let (first, last) = replay.span_ns().expect("frames");
        assert_eq!(last, (written - 1) * 1_000_000_000, "the last one is there");
        let covered = replay.len() as u64;
        assert_eq!(
            last - first,
            (covered - 1) * 1_000_000_000,
            "none is missing in between"
        );
        assert!(covered >= written.min(10) && covered <= 20, "{covered} of {written}");
    }
    // One alone can be read as well.
    let both = Replay::open(&path).expect("a recording").len();
    let [first, second] = files(&path);
    std::fs::remove_file(&first).expect("it is there");
    let one = Replay::open(&path).expect("half a recording").len();
    assert!(one > 0 && one < both, "{one} of {both}");
    std::fs::remove_file(second).expect("it is there");
    assert!(Replay::open(&path).is_err());
}

/// An existing recording goes on with a smaller `keep`.
#[test]
fn an_old_recording_is_given_up_in_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording");
    let snapshots: Vec<_> = (0..100).map(|n| with_cpu_some(n * 1_000_000_000, 0.0)).collect();
    record(&path, &snapshots);
    let (mut recorder, _) = Recorder::open(&path, std::time::Duration::from_secs(2)).expect("a recording");
    let large = recorder.size();
    for snapshot in &snapshots[..5] {
        recorder.write(snapshot).expect("room");
    }
    assert!(recorder.size() < large / 4, "{} of {large}", recorder.size());
    assert!(Replay::open(&path).expect("a recording").len() <= 4);
    assert!(Recorder::open(&path, LONG).is_err(), "it is in use");
}
