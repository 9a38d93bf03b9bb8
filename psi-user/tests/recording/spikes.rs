//! Spikes.

use psi_user::{
    fields::{Field, Figure},
    record::Replay,
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
    let mut next = |from, threshold| replay.next_spike(from, "/", last, threshold).expect("frames");
    // The highest ones; what is below 1 % is none, and the last one is still rising.
    assert_eq!(next(0, None), Some(4));
    assert_eq!(next(4, None), Some(9));
    assert_eq!(next(9, None), None);
    // Where it rises to 20 %.
    assert_eq!(next(0, Some(20.0)), Some(4));
    assert_eq!(next(4, Some(20.0)), Some(8));
    assert_eq!(next(8, Some(20.0)), None);
    assert_eq!(next(99, None), None);
    assert_eq!(replay.next_spike(0, "/no/such", last, None).expect("frames"), None);
    assert_eq!(
        replay
            .next_spike(0, "/", figure("io.full.avg10"), None)
            .expect("frames"),
        None
    );
}
