//! What the records count: nothing, once the tasks are gone.

use tests::{cgroup::Cgroup, record::counts_nothing, running::Dump, session::Session};

use crate::{disk_file, load};

#[test]
fn nothing_is_counted_once_all_tasks_are_gone() {
    let Some(session) = Session::start("nothing_is_counted_once_all_tasks_are_gone") else {
        return;
    };
    let Some(file) = disk_file(&session) else { return };
    let outer = Cgroup::new(session.name());
    let inner = outer.child("inner");
    let start = || {
        [
            load().within(&inner).behind().start(&["spin", "--threads", "3"]),
            load().within(&inner).behind().start(&["ping-pong", "--pairs", "4"]),
            load().within(&outer).behind().start(&["processes"]),
            load().within(&inner).start_on(&["read", "--threads", "4"], file.path()),
        ]
    };
    // Some tasks are there before the tracer is, some come later.
    let early = start();
    let glob = outer.glob();
    let mut dump = Dump::start(&["--counts", "--interval", "200ms", "--cgroup", &glob]);
    let late = start();
    dump.find("counted tasks", 10, |record| {
        [&outer, &inner].iter().all(|cgroup| {
            record
                .cgroup(cgroup.path())
                .is_some_and(|found| found["counts"]["productive"].as_i64().is_some_and(|count| count > 0))
        })
    });
    drop((early, late));
    outer.wait_until_empty();
    // A task may have been on its way to its last switch.
    dump.find("no counted task", 10, |record| {
        [&outer, &inner]
            .iter()
            .all(|cgroup| record.cgroup(cgroup.path()).is_some_and(counts_nothing))
    });
    dump.finish();
}
