//! A v1 controller's hierarchy.

use std::{fs, io::Write as _};

use tempfile::NamedTempFile;
use tests::{cgroup::Cgroup, machine, record::Share, running::Dump, session::Session};

use crate::load;

#[test]
fn v1_memory_limit_makes_memory_pressure() {
    const LIMIT: usize = 16 << 20;
    let Some(session) = Session::start("v1_memory_limit_makes_memory_pressure") else {
        return;
    };
    let Some(mount) = machine::v1_mount("memory") else {
        return session.skip("no v1 memory hierarchy is mounted");
    };
    let mut file = NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a file in the build folder");
    file.write_all(&vec![1; 4 * LIMIT]).expect("room in the build folder");
    file.as_file().sync_all().expect("the file can be written");
    drop_from_cache(&file);

    let cgroup = Cgroup::below(&mount, session.name());
    fs::write(cgroup.dir().join("memory.limit_in_bytes"), LIMIT.to_string()).expect("the limit can be set");
    let mut dump = Dump::start(&["--hierarchy", "memory", "--interval", "500ms"]);
    let before = dump.record();
    assert_eq!(before.json["source"]["hierarchy"], "memory");
    if before.json["source"]["memstall"].is_null() {
        return session.skip("memory stalls are not measured on this kernel");
    }

    let _reader = load().within(&cgroup).start_on(&["read-cached"], file.path());
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(6);
    let some = before.growth(&after, cgroup.path(), "memory", "some");
    assert!(
        some > 0.1,
        "expected memory pressure of a file four times the limit, saw {some} %: {}",
        after.json
    );
    let full = before.growth(&after, cgroup.path(), "memory", "full");
    assert!(
        full <= some + 0.1,
        "expected memory full {full} % to be within some {some} %"
    );
    dump.finish();
}

#[test]
fn v1_hierarchy_is_followed() {
    let Some(session) = Session::start("v1_hierarchy_is_followed") else {
        return;
    };
    let Some(mount) = machine::v1_mount("pids") else {
        return session.skip("no v1 pids hierarchy is mounted");
    };
    let outer = Cgroup::below(&mount, session.name());
    let (a, b) = (outer.child("a"), outer.child("b"));
    let spinner = load().within(&a).alone().start(&["spin", "--threads", "2"]);
    let mut dump = Dump::start(&["--hierarchy", "pids", "--interval", "400ms"]);
    let before = dump.record();
    let after = dump.fresh_after(3);
    before.expect(&after, &a, "cpu some", Share::ALWAYS);

    b.enter(spinner.pid());
    let new = outer.child("new");
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(3);
    before.expect(&after, &a, "cpu some", Share::NEVER);
    before.expect(&after, &b, "cpu some", Share::ALWAYS);
    assert!(
        after.cgroup(new.path()).is_some(),
        "expected {}, saw {:?}",
        new.path(),
        after.paths()
    );
    dump.finish();
}

fn drop_from_cache(file: &NamedTempFile) {
    // So that its pages are charged to the cgroup that reads it. The kernel may refuse: then there is less pressure.
    let _ = rustix::fs::fadvise(file.as_file(), 0, None, rustix::fs::Advice::DontNeed);
}
