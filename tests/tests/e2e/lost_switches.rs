//! Some kernels do not report all context switches: what is lost is noticed, told and put right.

use tests::{
    cgroup::Cgroup,
    record::{Record, Share},
    running::Dump,
    session::Session,
};

use crate::load;

#[test]
fn lost_switches_are_told_and_put_right() {
    let Some(session) = Session::start("lost_switches_are_told_and_put_right") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let (pair, single) = (outer.child("pair"), outer.child("single"));
    let _pair = [0; 2].map(|_| load().within(&pair).alone().start(&["spin"]));
    let glob = outer.glob();
    let mut dump = Dump::start(&["--drop-switches", "50", "--interval", "500ms", "--cgroup", &glob]);
    let before = dump.record();
    let after = dump.fresh_after(6);
    let noticed = |record: &Record| record.quality("missed_switches") + record.quality("repaired");
    let (start, end) = (noticed(&before), noticed(&after));
    assert!(
        end > start,
        "expected lost switches to be noticed, saw {}",
        after.json["quality"]
    );
    before.expect(&after, &pair, "cpu some", Share::about(100.0, 15.0));
    // One of the two always runs.
    before.expect(&after, &pair, "cpu full", Share::about(0.0, 15.0));

    // A third process: it waits for two thirds of the time.
    let _single = load().within(&single).alone().start(&["spin"]);
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(6);
    before.expect(&after, &single, "cpu some", Share::about(66.7, 15.0));
    before.expect(&after, &pair, "cpu full", Share::about(33.3, 15.0));
    dump.finish();
}
