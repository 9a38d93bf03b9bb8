//! Coming and going under load.

use tests::{
    cgroup::Cgroup,
    program::run,
    record::{Record, Share},
    running::Dump,
    session::Session,
};

use crate::load;

/// Tasks that wait when the tracer comes are counted from then on, though no event tells of them for a while.
#[test]
fn first_interval_is_complete() {
    let Some(session) = Session::start("first_interval_is_complete") else {
        return;
    };
    let cgroup = Cgroup::new(session.name());
    let _spinners = [0; 3].map(|_| load().within(&cgroup).alone().start(&["spin"]));
    let finished = run(&["dump", "--count", "1", "--interval", "2s", "--cgroup", cgroup.path()]);
    let records = Record::all(&finished.expect_success().stdout);
    // The interval begins before the programs are attached; 2 s pass after that.
    let (some_us, interval_us) = (
        records[0].total_us(cgroup.path(), "cpu", "some"),
        records[0].at_ns as f64 / 1000.0,
    );
    assert!(
        (1_950_000.0..=interval_us + 1.0).contains(&some_us),
        "expected a cpu some of 2 s or a little more, at most {interval_us} us, saw {some_us} us"
    );
}

/// Tasks wake, move between CPUs, are born and end at every moment of the attachment.
#[test]
fn coming_and_going_under_load() {
    let Some(session) = Session::start("coming_and_going_under_load") else {
        return;
    };
    let cgroup = Cgroup::new(session.name());
    let _pipes = load().within(&cgroup).behind().start(&["ping-pong", "--pairs", "8"]);
    let _processes = load().within(&cgroup).behind().start(&["processes"]);
    for _ in 0..10 {
        let finished = run(&["dump", "--count", "2", "--interval", "100ms"]);
        let records = Record::all(&finished.expect_success().stdout);
        let last = &records[1];
        assert_eq!(last.quality("overflows"), 0, "{}", last.json["quality"]);
        assert_eq!(last.quality("rejected_readings"), 0, "{}", last.json["quality"]);
        let some = records[0].growth(last, cgroup.path(), "cpu", "some");
        assert!(
            (20.0..=100.1).contains(&some),
            "expected much cpu pressure under this load, saw {some:.1} %"
        );
    }
}

/// What was counted has to be uncounted: when the load is gone, its pressure is.
#[test]
fn nothing_stays_counted_when_the_load_is_gone() {
    let Some(session) = Session::start("nothing_stays_counted_when_the_load_is_gone") else {
        return;
    };
    let cgroup = Cgroup::new(session.name());
    let pipes = load().within(&cgroup).behind().start(&["ping-pong", "--pairs", "8"]);
    let processes = load().within(&cgroup).behind().start(&["processes"]);
    // Where there is no io_uring the others have to do.
    let waiter = load().within(&cgroup).try_start(&["wait-for-io", "--threads", "3"]);
    let mut dump = Dump::start(&["--interval", "200ms", "--cgroup", cgroup.path()]);
    dump.fresh_after(10);
    drop((pipes, processes, waiter));
    // More than the 2 s that the kernel sums up at a time.
    let before = dump.fresh_after(15);
    let after = dump.fresh_after(5);
    for figure in ["cpu some", "cpu full", "io some", "io full"] {
        before.expect(&after, &cgroup, figure, Share::about(0.0, 0.0));
    }
    dump.finish();
}
