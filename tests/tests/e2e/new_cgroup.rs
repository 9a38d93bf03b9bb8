//! Cgroups that are made while the tracer runs.

use tests::{cgroup::Cgroup, record::Share, running::Dump, session::Session};

use crate::load;

#[test]
fn new_cgroup_appears_with_its_pressure() {
    let Some(session) = Session::start("new_cgroup_appears_with_its_pressure") else {
        return;
    };
    let mut dump = Dump::start(&["--interval", "500ms"]);
    dump.record();

    let outer = Cgroup::new(session.name());
    let inner = outer.child("inner");
    let empty = dump.fresh_after(2);
    for cgroup in [&outer, &inner] {
        assert_eq!(
            empty.cgroup(cgroup.path()).map(|seen| &seen["id"]),
            Some(&cgroup.id().into()),
            "{}",
            cgroup.path()
        );
    }
    let total_us = empty.total_us(inner.path(), "cpu", "some");
    assert!(
        total_us == 0.0,
        "expected no pressure where nobody is, saw {total_us} us"
    );

    let spinners = [0; 2].map(|_| load().within(&inner).alone().start(&["spin"]));
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(4);
    for cgroup in [&outer, &inner] {
        // One of the two always waits.
        before.expect(&after, cgroup, "cpu some", Share::ALWAYS);
    }

    let gone = inner.path().to_owned();
    drop(spinners);
    inner.remove();
    let last = dump.fresh_after(2);
    assert!(
        last.cgroup(&gone).is_none(),
        "expected {gone} to be gone, saw {:?}",
        last.paths()
    );
    dump.finish();
}

/// A process that is born in a cgroup never moves there, and no event says that it came.
#[test]
fn children_are_charged_to_their_parents_cgroup() {
    let Some(session) = Session::start("children_are_charged_to_their_parents_cgroup") else {
        return;
    };
    let cgroup = Cgroup::new(session.name());
    let mut dump = Dump::start(&["--interval", "500ms", "--cgroup", cgroup.path()]);
    dump.record();
    let _pipes = load().within(&cgroup).alone().start(&["ping-pong", "--pairs", "10"]);
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(4);
    // 20 processes, one of each pair runnable, on one CPU.
    before.expect(&after, &cgroup, "cpu some", Share::ALWAYS);
    dump.finish();
}
