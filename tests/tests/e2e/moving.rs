//! Tasks that are moved to another cgroup are charged there, all threads of a process and sleeping ones too.

use tests::{cgroup::Cgroup, machine, record::Share, running::Dump, session::Session};

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
    before.expect(&after, &a, "cpu some", Share::ALWAYS);
    before.expect(&after, &b, "cpu some", Share::NEVER);

    b.enter(spinner.pid());
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(4);
    before.expect(&after, &a, "cpu some", Share::NEVER);
    before.expect(&after, &b, "cpu some", Share::ALWAYS);
    before.expect(&after, &outer, "cpu some", Share::ALWAYS);

    drop(spinner);
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(2);
    before.expect(&after, &b, "cpu some", Share::NEVER);
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
    let Some(waiter) = load().within(&a).try_start(&["wait-for-io", "--threads", "3"]) else {
        return session.skip("this kernel has no io_uring");
    };
    let mut dump = Dump::start(&["--interval", "400ms", "--cgroup", &outer.glob()]);
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(3);
    let share = before.growth(&after, a.path(), "io", "some");
    if share == 0.0 {
        return session.skip("this kernel does not count waiting for io_uring as iowait");
    }
    for figure in ["io some", "io full"] {
        before.expect(&after, &a, figure, Share::ALWAYS);
        before.expect(&after, &outer, figure, Share::ALWAYS);
    }

    b.enter(waiter.pid());
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(4);
    for figure in ["io some", "io full"] {
        before.expect(&after, &a, figure, Share::NEVER);
        before.expect(&after, &b, figure, Share::ALWAYS);
        before.expect(&after, &outer, figure, Share::ALWAYS);
    }

    drop(waiter);
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(2);
    before.expect(&after, &b, "io some", Share::NEVER);
    dump.finish();
}

#[test]
fn single_threads_move() {
    let Some(session) = Session::start("single_threads_move") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let (a, b) = (outer.child("a"), outer.child("b"));
    if !(a.take_threads() && b.take_threads()) {
        return session.skip("this kernel makes no threaded cgroups here");
    }
    let spinner = load().within(&outer).alone().start(&["spin", "--threads", "4"]);
    let mut dump = Dump::start(&["--interval", "400ms", "--cgroup", &outer.glob()]);
    dump.record();
    let threads = machine::threads(spinner.pid());
    for (from, to) in [(&b, &a), (&a, &b)] {
        // Two of the four: one of them always waits, and both do for as long as another one runs.
        for &thread in &threads[2..] {
            to.enter_thread(thread);
        }
        let before = dump.fresh_after(2);
        let after = dump.fresh_after(4);
        before.expect(&after, from, "cpu some", Share::NEVER);
        before.expect(&after, to, "cpu some", Share::ALWAYS);
        before.expect(&after, to, "cpu full", Share::about(50.0, 15.0));
        before.expect(&after, &outer, "cpu full", Share::about(0.0, 5.0));
    }
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
    before.expect(&after, &a, "io some", Share::NEVER);
    let share = before.growth(&after, b.path(), "io", "some");
    assert!(share > 20.0, "expected io pressure of four readers, saw {share:.1} %");
    dump.finish();
}
