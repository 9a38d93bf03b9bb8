//! This tracer's totals beside the kernel's own.

use std::{thread, time::Duration};

use serde_json::Value;
use tests::{cgroup::Cgroup, machine, program, running::Dump, session::Session};

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
    let _pipes = load().within(&cgroup).behind().start(&["ping-pong", "--pairs", "20"]);
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
        .alone()
        .start_on(&["read", "--threads", "4"], file.path());
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

/// The figures of one must not be taken for those of the other.
#[test]
fn another_cgroup_of_the_same_name_is_told() {
    let Some(session) = Session::start("another_cgroup_of_the_same_name_is_told") else {
        return;
    };
    if !machine::has_kernel_psi() {
        return session.skip("the kernel keeps no PSI to compare with");
    }
    let cgroup = Cgroup::new(session.name());
    let compare = Dump::start_command(&["compare", "--duration", "6s", "--cgroup", cgroup.path()]);
    compare.wait_until_ready();
    // The first sample follows at once.
    thread::sleep(Duration::from_secs(2));
    cgroup.remove();
    let _another = Cgroup::new(session.name());
    let finished = compare.wait();
    let message = finished.expect_failure(2);
    assert!(
        message.contains("was replaced"),
        "expected that it was replaced, saw {message}"
    );
}

#[test]
fn the_others_are_compared_when_one_goes() {
    let Some(session) = Session::start("the_others_are_compared_when_one_goes") else {
        return;
    };
    if !machine::has_kernel_psi() {
        return session.skip("the kernel keeps no PSI to compare with");
    }
    let outer = Cgroup::new(session.name());
    let (short, long) = (outer.child("short"), outer.child("long"));
    let cgroups = ["--cgroup", short.path(), "--cgroup", long.path()];
    let compare = Dump::start_command(&[&["compare", "--json", "--duration", "5s"], &cgroups[..]].concat());
    compare.wait_until_ready();
    // The first sample follows at once.
    thread::sleep(Duration::from_secs(2));
    let gone = short.path().to_owned();
    short.remove();
    let finished = compare.wait();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(finished.stderr, format!("psitrace: the cgroup {gone} is gone\n"));
    let comparison: Value = serde_json::from_str(&finished.stdout).expect("one JSON object");
    row(&comparison, long.path(), "cpu", "some");
    let rows = comparison["rows"].as_array().expect("rows");
    assert!(rows.iter().all(|row| row["cgroup"] == long.path()), "{comparison}");

    // With none left there is nothing to wait for.
    let compare = Dump::start_command(&["compare", "--duration", "10m", "--cgroup", long.path()]);
    compare.wait_until_ready();
    thread::sleep(Duration::from_secs(2));
    let gone = long.path().to_owned();
    long.remove();
    let finished = compare.wait();
    assert!(finished.expect_failure(2).contains(&format!("{gone} is gone")));
}

/// For the load's cgroup and for the whole system.
///
/// A comparison reads the kernel's files and this tracer's maps one after the other. On a busy machine it may lose the
/// CPU in between, so the best of a few counts: figures that are wrong are wrong each time.
fn agrees(path: &str, loaded: &str) {
    let mut seen = Vec::new();
    while let Some(disagreements) = disagreements(path, loaded) {
        seen.push(disagreements);
        assert!(
            seen.len() < 3,
            "expected a difference of at most 2 % or 10 ms, and a tick for each missed switch, saw each time more: {seen:#?}"
        );
    }
}

fn disagreements(path: &str, loaded: &str) -> Option<Vec<String>> {
    let finished = program::run(&[
        "compare",
        "--json",
        "--duration",
        "8s",
        "--cgroup",
        path,
        "--cgroup",
        "/",
    ]);
    let comparison = finished.expect_success().json();
    assert_eq!(comparison["schema"], "psitrace-compare/1");

    let missed = comparison["quality"]["missed_switches"].as_f64().expect("a count");
    let excused_us = missed * machine::tick().as_micros() as f64;
    let mut found = Vec::new();
    for cgroup in [path, "/"] {
        let pressure_us = row(&comparison, cgroup, loaded, "some")["kernel_us"]
            .as_f64()
            .expect("a number");
        assert!(
            pressure_us > 500_000.0,
            "expected {loaded} pressure of {cgroup} under this load, saw {comparison}"
        );
        for (resource, kind) in [("cpu", "some"), ("cpu", "full"), ("io", "some"), ("io", "full")] {
            let row = row(&comparison, cgroup, resource, kind);
            let difference_us = row["difference_us"].as_f64().expect("a number").abs();
            let allowed_us = (row["kernel_us"].as_f64().expect("a number") * 0.02).max(10_000.0) + excused_us;
            if difference_us > allowed_us {
                found.push(format!("{row}, quality {}", comparison["quality"]));
            }
        }
    }
    (!found.is_empty()).then(|| {
        println!("{}", found.join("\n"));
        found
    })
}

fn row<'a>(comparison: &'a Value, cgroup: &str, resource: &str, kind: &str) -> &'a Value {
    let rows = comparison["rows"]
        .as_array()
        .unwrap_or_else(|| panic!("expected rows, saw {comparison}"));
    rows.iter()
        .find(|row| row["cgroup"] == cgroup && row["resource"] == resource && row["kind"] == kind)
        .unwrap_or_else(|| panic!("expected a row {cgroup} {resource} {kind}, saw {comparison}"))
}
