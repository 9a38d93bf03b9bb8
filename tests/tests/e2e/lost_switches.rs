//! Some kernels do not report all context switches: what is lost is noticed, told and put right.

use tests::{
    cgroup::Cgroup,
    machine,
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

/// A CPU weighs as much as it is not idle: one that is taken for busy while it sleeps would take from all totals.
#[test]
fn a_lost_switch_to_idle_is_put_right() {
    let Some(session) = Session::start("a_lost_switch_to_idle_is_put_right") else {
        return;
    };
    let load_cpu = machine::load_cpu();
    let Some(&other) = machine::cpus().iter().find(|&&cpu| cpu != load_cpu) else {
        return session.skip("it takes two CPUs");
    };
    let cgroup = Cgroup::new(session.name());
    let Some(_waiting) = load().within(&cgroup).alone().try_start(&["wait-for-io"]) else {
        return session.skip("the kernel has no io_uring, or forbids it");
    };
    // Busy for a few percent of the time, and asleep for longer than a tick in between.
    let naps = "echo ready; while sleep 0.05; do :; done";
    let _naps = load().within(&cgroup).on_cpu(other).start(&["run", "sh", "-c", naps]);
    let glob = cgroup.glob();
    let mut dump = Dump::start(&["--drop-switches", "3", "--interval", "500ms", "--cgroup", &glob]);
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(8);
    before.expect(&after, &cgroup, "io some", Share::about(97.0, 4.0));
    dump.finish();
}
