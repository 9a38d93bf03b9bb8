//! Coming and going under load.

use tests::{
    PATIENCE,
    bpf_ids::Ids,
    cgroup::Cgroup,
    eventually,
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
        last.expect_readings();
        let some = records[0].growth(last, cgroup.path(), "cpu", "some");
        assert!(
            (20.0..=100.1).contains(&some),
            "expected much cpu pressure under this load, saw {some:.1} %"
        );
    }
}

/// Made after the tracer looked which cgroups there are, and before its programs tell of new ones. The tasks are seen by
/// the programs before the tracer has found their cgroup.
#[test]
fn cgroups_come_during_the_attachment() {
    let Some(session) = Session::start("cgroups_come_during_the_attachment") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let mut dump = Dump::start(&["--interval", "300ms"]);
    wait_until_loading(&dump);
    let coming: Vec<Cgroup> = (0..20).map(|n| outer.child(&format!("coming-{n}"))).collect();
    let _pipes = load().within(&coming[0]).alone().start(&["ping-pong", "--pairs", "10"]);

    let before = dump.fresh_after(2);
    let after = dump.fresh_after(4);
    for cgroup in &coming {
        assert!(
            after.cgroup(cgroup.path()).is_some(),
            "expected {}, saw {:?}",
            cgroup.path(),
            after.paths()
        );
    }
    // One process of each pair can run.
    before.expect(&after, &coming[0], "cpu some", Share::ALWAYS);
    dump.finish();
}

/// Gone before the programs could tell.
#[test]
fn cgroups_go_during_the_attachment() {
    let Some(session) = Session::start("cgroups_go_during_the_attachment") else {
        return;
    };
    // The deepest have no figures of their own.
    let mut chain = vec![Cgroup::new(session.name())];
    for _ in 0..45 {
        chain.push(chain[chain.len() - 1].child("deep"));
    }
    let mut dump = Dump::start(&["--interval", "300ms"]);
    wait_until_loading(&dump);
    while let Some(last) = chain.pop() {
        last.remove();
    }
    let record = dump.fresh_after(4);
    let gone = record.paths().into_iter().find(|path| path.contains(session.name()));
    assert_eq!(gone, None, "expected no cgroup that is gone");
    assert_eq!(record.quality("cgroups_without_slot"), 0, "{}", record.json["quality"]);
    dump.finish();
}

/// By then it has looked which cgroups there are.
fn wait_until_loading(dump: &Dump) {
    let loads = || (!Ids::of_process(dump.pid()).is_empty()).then_some(());
    eventually("psitrace loads its programs", PATIENCE, loads);
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
    cgroup.wait_until_empty();
    // More than the 2 s that the kernel sums up at a time.
    let before = dump.fresh_after(15);
    let after = dump.fresh_after(5);
    for figure in ["cpu some", "cpu full", "io some", "io full"] {
        before.expect(&after, &cgroup, figure, Share::about(0.0, 0.0));
    }
    dump.finish();
}
