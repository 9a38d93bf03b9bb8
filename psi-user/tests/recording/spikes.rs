//! Spikes.

use psi_user::{
    fields::{Field, Figure},
    record::{Replay, Spikes},
};

use crate::{recorded, snapshots::with_cpu_some};

#[test]
fn spikes_are_found() {
    let course = [0.0, 0.5, 0.0, 10.0, 30.0, 30.0, 20.0, 5.0, 50.0, 60.0];
    let snapshots: Vec<_> = (0..).zip(course).map(|(n, share)| with_cpu_some(n, share)).collect();
    let mut replay = Replay::from_bytes(recorded(&snapshots)).expect("a recording");
    let figure = |name| match Field::find(name).expect("a field") {
        Field::Figure(figure) => figure,
        other => panic!("{other:?} is no figure"),
    };
    let last: Figure = figure("cpu.some.last");
    let spikes = |cgroup: Option<&str>, figure, threshold| Spikes {
        cgroup: cgroup.map(str::to_owned),
        figure,
        threshold,
    };
    let mut next = |from, threshold| {
        let spikes = spikes(Some("/"), last, threshold);
        replay.next_spike(from..usize::MAX, &spikes).expect("frames")
    };
    // The highest ones; what is below 1 % is none, and the last one is still rising.
    assert_eq!(next(0, None), Some(4));
    assert_eq!(next(4, None), Some(9));
    assert_eq!(next(9, None), None);
    // Where it rises to 20 %.
    assert_eq!(next(0, Some(20.0)), Some(4));
    assert_eq!(next(4, Some(20.0)), Some(8));
    assert_eq!(next(8, Some(20.0)), None);
    assert_eq!(next(99, None), None);
    let mut previous = |until, threshold| {
        let spikes = spikes(None, last, threshold);
        replay.last_spike(0..until, &spikes).expect("frames")
    };
    assert_eq!(previous(99, None), Some(9));
    assert_eq!(previous(8, None), Some(4));
    assert_eq!(previous(4, None), Some(3));
    assert_eq!(previous(99, Some(20.0)), Some(8));
    assert_eq!(previous(8, Some(20.0)), Some(4));
    assert_eq!(previous(4, Some(20.0)), None);
    for nothing in [
        spikes(Some("/no/such"), last, None),
        spikes(Some("/"), figure("io.full.avg10"), None),
    ] {
        assert_eq!(replay.next_spike(0..usize::MAX, &nothing).expect("frames"), None);
    }
}

#[test]
fn runs_begin_where_a_frame_builds_on_nothing() {
    let snapshots: Vec<_> = (0..150).map(|n| with_cpu_some(n, 0.0)).collect();
    let replay = Replay::from_bytes(recorded(&snapshots)).expect("a recording");
    let starts = [0, 59, 60, 119, 120, 149, usize::MAX].map(|frame| replay.run_start(frame));
    assert_eq!(starts, [0, 0, 60, 60, 120, 120, 120]);
    assert_eq!(Replay::from_bytes(Vec::new()).expect("no frames").run_start(5), 0);
}
