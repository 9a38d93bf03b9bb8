//! This tracer's totals beside the kernel's own.

use std::process::{Child, Stdio};

use serde_json::Value;
use tests::{
    cgroup::Cgroup,
    machine,
    program::{self, Finished},
    session::Session,
};

use crate::{disk_file, load};

#[test]
fn agrees_with_the_kernel_under_pipes() {
    let Some(session) = Session::start("agrees_with_the_kernel_under_pipes") else {
        return;
    };
    if !machine::has_kernel_psi() {
        return session.skip("the kernel keeps no PSI to compare with");
    }
    let cgroup = Cgroup::new(session.name());
    let _pipes = load().within(&cgroup).start(&["ping-pong", "--pairs", "20"]);
    agrees(cgroup.path(), "cpu");
}

#[test]
fn agrees_with_the_kernel_under_disk_io() {
    let Some(session) = Session::start("agrees_with_the_kernel_under_disk_io") else {
        return;
    };
    if !machine::has_kernel_psi() {
        return session.skip("the kernel keeps no PSI to compare with");
    }
    let Some(file) = disk_file(&session) else { return };
    let cgroup = Cgroup::new(session.name());
    let _readers = load()
        .within(&cgroup)
        .start_on(&["read", "--threads", "2"], file.path());
    agrees(cgroup.path(), "io");
}

#[test]
fn compare_prints_a_table() {
    let Some(session) = Session::start("compare_prints_a_table") else {
        return;
    };
    let cgroup = Cgroup::new(session.name());
    let finished = program::run(&["compare", "--duration", "300ms", "--cgroup", cgroup.path()]);
    if !machine::has_kernel_psi() {
        finished.expect_failure(1);
        return session.skip("the kernel keeps no PSI to compare with");
    }
    finished.expect_success();
    for words in [cgroup.path(), "cpu some", "cpu full", "io some", "memory full"] {
        assert!(
            finished.stdout.contains(words),
            "expected {words}, saw {}",
            finished.stdout
        );
    }
}

/// For the load's cgroup and for the whole system, at the same time.
///
/// A comparison reads the kernel's files and this tracer's maps one after the other. On a busy machine it may lose the
/// CPU in between, so the best of a few counts: figures that are wrong are wrong each time.
fn agrees(path: &str, loaded: &str) {
    let mut differences = Vec::new();
    for _ in 0..3 {
        let compares = [path, "/"].map(start_compare);
        let compares = compares.map(|compare| compare.wait_with_output().map(Finished::from).expect("psitrace runs"));
        let comparisons = compares.map(|finished| {
            finished.expect_success();
            serde_json::from_str::<Value>(&finished.stdout).expect("JSON")
        });
        for comparison in &comparisons {
            let pressure = row(comparison, loaded, "some")["kernel_us"].as_f64();
            assert!(
                pressure > Some(500_000.0),
                "expected {loaded} pressure under this load, saw {comparison}"
            );
        }
        let found: Vec<String> = comparisons.iter().flat_map(disagreements).collect();
        if found.is_empty() {
            return;
        }
        println!("{}", found.join("\n"));
        differences.push(found);
    }
    panic!("expected a difference of at most 2 % or 10 ms, saw each time more: {differences:#?}");
}

fn start_compare(path: &str) -> Child {
    let mut command = program::command(["compare", "--json", "--duration", "8s", "--cgroup", path]);
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psitrace starts")
}

fn disagreements(comparison: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (resource, kind) in [("cpu", "some"), ("cpu", "full"), ("io", "some"), ("io", "full")] {
        let row = row(comparison, resource, kind);
        let difference_us = row["difference_us"].as_f64().expect("a number").abs();
        let allowed_us = (row["kernel_us"].as_f64().expect("a number") * 0.02).max(10_000.0);
        if difference_us > allowed_us {
            found.push(format!(
                "{} {row}, quality {}",
                comparison["cgroup"], comparison["quality"]
            ));
        }
    }
    found
}

fn row<'a>(comparison: &'a Value, resource: &str, kind: &str) -> &'a Value {
    let rows = comparison["rows"]
        .as_array()
        .unwrap_or_else(|| panic!("expected rows, saw {comparison}"));
    rows.iter()
        .find(|row| row["resource"] == resource && row["kind"] == kind)
        .unwrap_or_else(|| panic!("expected a row {resource} {kind}, saw {comparison}"))
}
