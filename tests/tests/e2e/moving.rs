//! Tasks that are moved to another cgroup are charged there, all threads of a process and sleeping ones too.

use tests::{cgroup::Cgroup, record::assert_near, running::Dump, session::Session};

use crate::{disk_file, load};

#[test]
fn waiting_threads_move() {
    let Some(session) = Session::start("waiting_threads_move") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let (a, b) = (outer.child("a"), outer.child("b"));
    let spinner = load().within(&a).alone().start(&["spin", "--threads", "4"]);
    let mut dump = Dump::start(&["--interval", "400ms", "--cgroup", &outer.glob()]);
    let before = dump.record();
    let after = dump.fresh_after(3);
    assert_near("a before", before.growth(&after, a.path(), "cpu", "some"), 100.0, 5.0);
    assert_near("b before", before.growth(&after, b.path(), "cpu", "some"), 0.0, 0.0);

    b.enter(spinner.pid());
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(4);
    assert_near("a after", before.growth(&after, a.path(), "cpu", "some"), 0.0, 0.0);
    assert_near("b after", before.growth(&after, b.path(), "cpu", "some"), 100.0, 5.0);
    assert_near(
        "outer all the time",
        before.growth(&after, outer.path(), "cpu", "some"),
        100.0,
        5.0,
    );

    drop(spinner);
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(2);
    assert_near("b, empty", before.growth(&after, b.path(), "cpu", "some"), 0.0, 0.0);
    dump.finish();
}

/// They sleep before, during and after the move, and before the tracer comes: no event of theirs says where they are.
#[test]
fn sleeping_threads_move() {
    let Some(session) = Session::start("sleeping_threads_move") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let (a, b) = (outer.child("a"), outer.child("b"));
    let waiter = load().within(&a).start(&["wait-for-io", "--threads", "3"]);
    let mut dump = Dump::start(&["--interval", "400ms", "--cgroup", &outer.glob()]);
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(3);
    let share = before.growth(&after, a.path(), "io", "some");
    if share == 0.0 {
        return session.skip("this kernel does not count waiting for io_uring as iowait");
    }
    for kind in ["some", "full"] {
        assert_near("a before", before.growth(&after, a.path(), "io", kind), 100.0, 1.0);
        assert_near(
            "outer before",
            before.growth(&after, outer.path(), "io", kind),
            100.0,
            1.0,
        );
    }

    b.enter(waiter.pid());
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(4);
    for kind in ["some", "full"] {
        assert_near("a after", before.growth(&after, a.path(), "io", kind), 0.0, 0.0);
        assert_near("b after", before.growth(&after, b.path(), "io", kind), 100.0, 1.0);
        assert_near(
            "outer after",
            before.growth(&after, outer.path(), "io", kind),
            100.0,
            1.0,
        );
    }

    drop(waiter);
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(2);
    assert_near("b, empty", before.growth(&after, b.path(), "io", "some"), 0.0, 0.0);
    dump.finish();
}

#[test]
fn reading_threads_move() {
    let Some(session) = Session::start("reading_threads_move") else {
        return;
    };
    let Some(file) = disk_file(&session) else { return };
    let outer = Cgroup::new(session.name());
    let (a, b) = (outer.child("a"), outer.child("b"));
    let reader = load().within(&a).start_on(&["read", "--threads", "4"], file.path());
    let mut dump = Dump::start(&["--interval", "400ms", "--cgroup", &outer.glob()]);
    let before = dump.record();
    let after = dump.fresh_after(3);
    let share = before.growth(&after, a.path(), "io", "some");
    assert!(share > 20.0, "expected io pressure of four readers, saw {share:.1} %");

    b.enter(reader.pid());
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(4);
    assert_near("a after", before.growth(&after, a.path(), "io", "some"), 0.0, 0.0);
    let share = before.growth(&after, b.path(), "io", "some");
    assert!(share > 20.0, "expected io pressure of four readers, saw {share:.1} %");
    dump.finish();
}
