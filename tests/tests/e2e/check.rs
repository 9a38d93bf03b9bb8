//! `check`: whether the tracer can run here.

use serde_json::Value;
use tests::{machine, program::run, session::Session};

#[test]
fn check_says_that_it_can_run() {
    let Some(_session) = Session::start("check_says_that_it_can_run") else {
        return;
    };
    let finished = run(&["check"]);
    finished.expect_success();
    for words in [
        "the tracer can run",
        "sched_switch (required): loads",
        "kernel's PSI",
        "memory stalls",
    ] {
        assert!(
            finished.stdout.contains(words),
            "expected {words}, saw {}",
            finished.stdout
        );
    }
}

#[test]
fn check_json_has_the_same() {
    let Some(_session) = Session::start("check_json_has_the_same") else {
        return;
    };
    let finished = run(&["check", "--json"]);
    let report = finished.expect_success().json();
    assert_eq!(
        (&report["ok"], &report["btf"]),
        (&true.into(), &true.into()),
        "{report}"
    );
    assert_eq!(report["problems"], serde_json::json!([]), "{report}");
    let programs = report["programs"].as_array().expect("programs");
    for name in [
        "sched_switch",
        "sched_wakeup",
        "sched_migrate_task",
        "cgroup_mkdir",
        "walk_tasks",
    ] {
        let program = programs.iter().find(|program| program["name"] == name);
        let program = program.unwrap_or_else(|| panic!("expected the program {name}, saw {programs:?}"));
        assert_eq!(
            (&program["required"], &program["loadable"]),
            (&true.into(), &true.into()),
            "{program}"
        );
    }
    // A program that is left out is named with the reason.
    let silent = programs
        .iter()
        .find(|program| program["loadable"] == false && !program["reason"].is_string());
    assert_eq!(silent, None, "left out without a reason");
    assert!(
        report["map_bytes"].as_u64() > Some(0) && report["slots"].as_u64() > Some(0),
        "{report}"
    );

    assert_eq!(report["psi"] == "on", machine::has_kernel_psi(), "{report}");
    let mount = machine::v2_mount().expect("there is one");
    let mounts = report["cgroup_mounts"].as_array().expect("mounts");
    let found = mounts
        .iter()
        .find(|entry| entry["hierarchy"] == "v2")
        .map(|entry| &entry["path"]);
    assert_eq!(found.and_then(Value::as_str), mount.to_str(), "{report}");
}
