//! The benchmarks: that they run, refuse what would spoil them, and leave nothing behind.

use std::{fs, os::unix::fs::symlink, process::Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tests::{PATIENCE, eventually, machine, program, running::Dump, session::Session};

/// False, and a skip, where psitrace said that somebody else's tracer is at work: that is no baseline.
fn has_baseline(session: &Session, stderr: &str) -> bool {
    let is_alone = !stderr.contains("another tracer is attached");
    if !is_alone {
        session.skip("another tracer than those of the tests is attached to sched_switch");
    }
    is_alone
}

/// None, and a skip, without a baseline.
fn json(session: &Session, arguments: &[&str]) -> Option<Value> {
    let finished = program::run(arguments);
    has_baseline(session, &finished.stderr).then(|| finished.expect_success().json())
}

/// One run with a tracer and one without can be told apart from nothing, but not from each other: no bar here.
#[track_caller]
fn assert_ratio(cell: &Value, pairs: u64) {
    assert_eq!(cell["pairs"].as_u64(), Some(pairs), "{cell}");
    let ratio = |name: &str| cell[name].as_f64().unwrap_or_else(|| panic!("no {name} in {cell}"));
    let (low, median, high) = (ratio("low"), ratio("median"), ratio("high"));
    assert!(0.1 < low && low <= median && median <= high && high < 10.0, "{cell}");
}

#[test]
fn overhead_is_measured_for_each_option() {
    let Some(session) = Session::start("overhead_is_measured_for_each_option") else {
        return;
    };
    let Some(report) = json(
        &session,
        &["bench", "overhead", "--load", "fork", "--pairs", "1", "--json"],
    ) else {
        return;
    };
    let subjects = report["loads"][0]["subjects"].as_array().expect("subjects");
    let names: Vec<&str> = subjects.iter().filter_map(|cell| cell["subject"].as_str()).collect();
    assert_eq!(
        names,
        [
            "detached",
            "empty programs",
            "attached",
            "--no-irq",
            "--no-memstall",
            "--only-leaf",
            "--track /"
        ]
    );
    for cell in subjects {
        assert_ratio(cell, 1);
    }
    assert_eq!(report["left_loaded"], 0, "{report}");
}

#[test]
fn depth_is_measured_and_its_cgroups_go() {
    let Some(session) = Session::start("depth_is_measured_and_its_cgroups_go") else {
        return;
    };
    let Some(report) = json(&session, &["bench", "depth", "--load", "udp", "--pairs", "1", "--json"]) else {
        return;
    };
    let depths = report["loads"][0]["depths"].as_array().expect("depths");
    let levels: Vec<u64> = depths.iter().filter_map(|depth| depth["levels"].as_u64()).collect();
    assert_eq!(levels, [1, 4, 8, 16]);
    for depth in depths {
        assert_ratio(&depth["attached"], 1);
        if machine::has_kernel_psi() && fs::exists("/sys/fs/cgroup/cgroup.pressure").unwrap_or(false) {
            assert_ratio(&depth["kernel"], 1);
        }
    }
    let mount = machine::v2_mount().expect("there is one: the session found it");
    let left: Vec<String> = machine::cgroup_paths(&mount)
        .into_iter()
        .filter(|path| path.starts_with("/psitrace-bench-"))
        .collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[test]
fn a_signal_leaves_nothing_behind() {
    let Some(session) = Session::start("a_signal_leaves_nothing_behind") else {
        return;
    };
    let mut child = program::command(&["bench", "depth", "--load", "udp"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psitrace starts");
    let mount = machine::v2_mount().expect("there is one: the session found it");
    let own = mount.join(format!("psitrace-bench-{}", child.id()));
    let has_ended = eventually("its cgroups are there, or its end", PATIENCE, || {
        let has_ended = child.try_wait().expect("own child").is_some();
        (has_ended || own.is_dir()).then_some(has_ended)
    });
    if !has_ended {
        kill_process(Pid::from_child(&child), Signal::TERM).expect("a signal");
    }
    let output = child.wait_with_output().expect("psitrace ends");
    let line = String::from_utf8_lossy(&output.stderr);
    if !has_baseline(&session, &line) {
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{line}");
    assert!(line.contains("ended by a signal"), "{line}");
    assert!(!own.exists(), "{} is left", own.display());
}

#[test]
fn another_tracer_is_no_baseline() {
    let Some(_session) = Session::start("another_tracer_is_no_baseline") else {
        return;
    };
    let mut dump = Dump::start(&["--interval", "100ms"]);
    dump.record();
    for bench in ["overhead", "depth"] {
        let said = program::run(&["bench", bench, "--load", "udp", "--pairs", "1"]);
        let line = said.expect_failure(1);
        assert!(line.contains("another tracer is attached"), "{bench}: {line}");
    }
    dump.finish();
}

#[test]
fn a_load_that_is_not_installed_is_told() {
    let Some(session) = Session::start("a_load_that_is_not_installed_is_told") else {
        return;
    };
    let only_a_shell = tempfile::tempdir().expect("a folder");
    symlink("/bin/sh", only_a_shell.path().join("sh")).expect("a link");
    let output = program::command(&["bench", "overhead", "--load", "pipe"])
        .env("PATH", only_a_shell.path())
        .output()
        .expect("psitrace starts");
    let line = String::from_utf8_lossy(&output.stderr);
    if !has_baseline(&session, &line) {
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{line}");
    assert!(line.contains("no perf on this machine; install it"), "{line}");
}
