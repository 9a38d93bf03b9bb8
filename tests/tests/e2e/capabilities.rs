//! What the process may still do once it traces: nothing.

use std::fs;

use tests::{cgroup::Cgroup, record::Share, running::Dump, session::Session};

use crate::load;

/// And without any capability it still follows new cgroups and moved tasks.
#[test]
fn tracing_goes_on_without_capabilities() {
    let Some(session) = Session::start("tracing_goes_on_without_capabilities") else {
        return;
    };
    let mut dump = Dump::start(&["--interval", "400ms"]);
    dump.record();
    assert_eq!(capabilities(dump.pid()), [0], "expected no capability in any thread");

    let outer = Cgroup::new(session.name());
    let (a, b) = (outer.child("a"), outer.child("b"));
    let spinners = [0; 2].map(|_| load().within(&a).alone().start(&["spin"]));
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(3);
    before.expect(&after, &a, "cpu some", Share::ALWAYS);

    for spinner in &spinners {
        b.enter(spinner.pid());
    }
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(3);
    before.expect(&after, &a, "cpu some", Share::NEVER);
    before.expect(&after, &b, "cpu some", Share::ALWAYS);
    assert_eq!(capabilities(dump.pid()), [0], "expected no capability in any thread");
    dump.finish();
}

/// The different sets of effective, permitted and ambient capabilities of a process's threads.
fn capabilities(pid: u32) -> Vec<u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("the process runs");
    let statuses = threads.map(|thread| fs::read_to_string(thread.expect("a thread").path().join("status")));
    let mut sets = Vec::new();
    for status in statuses {
        let status = status.expect("the thread runs");
        for line in status.lines() {
            let Some((name, set)) = line.split_once(':') else {
                continue;
            };
            if ["CapEff", "CapPrm", "CapAmb"].contains(&name) {
                sets.push(u64::from_str_radix(set.trim(), 16).expect("hexadecimal"));
            }
        }
    }
    sets.sort_unstable();
    sets.dedup();
    sets
}
