//! `dump`'s records: their form, and what no figure may be.

use std::{collections::BTreeSet, os::unix::fs::MetadataExt as _};

use serde_json::Value;
use tests::{cgroup::Cgroup, machine, program::run, record::Record, session::Session};

use crate::load;

#[test]
fn records_have_all_documented_fields() {
    let Some(session) = Session::start("records_have_all_documented_fields") else {
        return;
    };
    let cgroup = Cgroup::new(session.name());
    let finished = run(&["dump", "--count", "3", "--interval", "200ms"]);
    finished.expect_success();
    assert_eq!(
        finished.stdout.lines().count(),
        3,
        "expected 3 lines, saw {}",
        finished.stdout
    );
    for Record { json, .. } in Record::all(&finished.stdout) {
        has_keys(
            &json,
            &["schema", "time_ns", "interval_ns", "source", "quality", "cgroups"],
        );
        assert_eq!(json["schema"], "psitrace/1");
        // 2020 to 2100: ns since 1970.
        assert!(
            (1.58e18..4.1e18).contains(&json["time_ns"].as_f64().unwrap_or(0.0)),
            "time_ns {}",
            json["time_ns"]
        );
        let interval_ns = json["interval_ns"].as_u64().unwrap_or(0);
        assert!(
            interval_ns >= 150_000_000,
            "expected an interval_ns of about 200 ms, saw {interval_ns}"
        );

        let source = &json["source"];
        has_keys(source, &["irq", "hierarchy"]);
        assert_eq!(source["hierarchy"], "v2");
        let has_memory = source["memstall"].is_string();
        let has_irq = source["irq"].as_array().is_some_and(|kinds| !kinds.is_empty());
        has_keys(
            &json["quality"],
            &[
                "missed_switches",
                "repaired",
                "drift",
                "storage_failures",
                "overflows",
                "missed_irqs",
                "cgroups_without_slot",
                "program_misses",
                "rejected_readings",
            ],
        );
        assert!(
            json["quality"]
                .as_object()
                .is_some_and(|quality| quality.values().all(Value::is_u64))
        );

        for cgroup in json["cgroups"].as_array().expect("cgroups") {
            has_keys(cgroup, &["path", "id", "level", "cpu", "io"]);
            assert_eq!(
                cgroup.get("memory").is_some(),
                has_memory,
                "memory is there if and only if it is measured"
            );
            assert_eq!(
                cgroup.get("irq").is_some(),
                has_irq,
                "irq is there if and only if it is measured"
            );
            for resource in ["cpu", "io", "memory"] {
                let Some(figures) = cgroup.get(resource) else { continue };
                has_keys(figures, &["some", "full"]);
            }
            assert!(cgroup["irq"].get("some").is_none(), "irq has only full");
            for (name, pressure) in pressures(cgroup) {
                has_keys(pressure, &["avg10", "avg60", "avg300", "total_us"]);
                assert_eq!(
                    pressure.as_object().map(serde_json::Map::len),
                    Some(4),
                    "{name}: {pressure}"
                );
            }
        }
    }
    cgroup.remove();
}

#[test]
fn all_cgroups_are_listed_parents_first() {
    let Some(session) = Session::start("all_cgroups_are_listed_parents_first") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let inner = outer.child("inner");
    let mount = machine::v2_mount().expect("there is one");
    let before: BTreeSet<String> = machine::cgroup_paths(&mount).into_iter().collect();
    let finished = run(&["dump", "--count", "2", "--interval", "200ms"]);
    let after: BTreeSet<String> = machine::cgroup_paths(&mount).into_iter().collect();
    finished.expect_success();

    for record in Record::all(&finished.stdout) {
        let paths = record.paths();
        // Other programs may make and remove some at any time.
        for path in before.intersection(&after) {
            assert!(paths.contains(&path.as_str()), "expected {path}, saw {paths:?}");
        }
        let unique: BTreeSet<&str> = paths.iter().copied().collect();
        assert_eq!(unique.len(), paths.len(), "each once: {paths:?}");

        let root = &record.cgroups()[0];
        let id = mount.metadata().expect("the mount exists").ino();
        assert_eq!(
            (&root["path"], &root["id"], &root["level"]),
            (&"/".into(), &id.into(), &0.into())
        );
        for (cgroup, level) in [(&outer, 1), (&inner, 2)] {
            let seen = record.cgroup(cgroup.path()).expect("asserted above");
            assert_eq!(
                (&seen["id"], &seen["level"]),
                (&cgroup.id().into(), &level.into()),
                "{}",
                cgroup.path()
            );
        }
        for (n, path) in paths.iter().enumerate().skip(1) {
            let (parent, _) = path.rsplit_once('/').expect("paths start with /");
            let parent = if parent.is_empty() { "/" } else { parent };
            assert!(
                paths[..n].contains(&parent),
                "expected {parent} before {path}, saw {paths:?}"
            );
        }
    }
}

#[test]
fn figures_stay_within_their_bounds() {
    let Some(session) = Session::start("figures_stay_within_their_bounds") else {
        return;
    };
    let cgroup = Cgroup::new(session.name());
    let _pipes = load().within(&cgroup).behind().start(&["ping-pong", "--pairs", "8"]);
    let finished = run(&["dump", "--count", "20", "--interval", "100ms"]);
    finished.expect_success();
    let records = Record::all(&finished.stdout);
    for record in &records {
        for cgroup in record.cgroups() {
            for (name, pressure) in pressures(cgroup) {
                let at = format!("{} {name} {pressure}", cgroup["path"]);
                for average in ["avg10", "avg60", "avg300"] {
                    let average = pressure[average].as_f64().expect("averages are numbers");
                    assert!((0.0..=100.0).contains(&average), "expected 0 to 100 %, saw {at}");
                }
                let total_us = pressure["total_us"].as_f64().expect("totals are numbers");
                let elapsed_us = record.at_ns as f64 / 1000.0;
                assert!(
                    (0.0..=elapsed_us + 1.0).contains(&total_us),
                    "expected 0 to {elapsed_us} us, saw {at}"
                );
            }
            // All tasks waiting includes one task waiting. Not so for cpu: on another CPU one may run.
            for (name, some) in pressures(cgroup).into_iter().filter(|(name, _)| name.ends_with("some")) {
                let full = &cgroup[name.trim_end_matches(" some")]["full"];
                assert!(
                    some["total_us"].as_f64() >= full["total_us"].as_f64(),
                    "{name} {some}, full {full}"
                );
            }
        }
    }
    for pair in records.windows(2) {
        for cgroup in pair[1].cgroups() {
            let path = cgroup["path"].as_str().expect("paths are strings");
            let Some(before) = pair[0].cgroup(path).filter(|before| before["id"] == cgroup["id"]) else {
                continue;
            };
            for ((name, before), (_, after)) in pressures(before).into_iter().zip(pressures(cgroup)) {
                let (before, after) = (before["total_us"].as_f64(), after["total_us"].as_f64());
                assert!(
                    before <= after,
                    "{path} {name}: the total fell from {before:?} to {after:?}"
                );
            }
        }
    }
    assert!(
        records[19].total_us(cgroup.path(), "cpu", "some") > 0.0,
        "16 processes on few CPUs have to wait"
    );
}

#[test]
fn strange_names_are_kept() {
    let Some(session) = Session::start("strange_names_are_kept") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let strange = outer.child("a \"b\" \\ \u{1b}[31m \u{e9}\t{*}");
    let finished = run(&["dump", "--count", "1", "--interval", "50ms", "--cgroup", &outer.glob()]);
    finished.expect_success();
    assert_eq!(Record::all(&finished.stdout)[0].paths(), [outer.path(), strange.path()]);

    let finished = run(&[
        "dump",
        "--count",
        "1",
        "--interval",
        "50ms",
        "--format",
        "table",
        "--cgroup",
        &outer.glob(),
    ]);
    finished.expect_success();
    assert!(
        finished.stdout.contains("a \"b\""),
        "expected the name, saw {:?}",
        finished.stdout
    );
    let control = finished.stdout.chars().find(|&c| c.is_control() && c != '\n');
    assert_eq!(
        control, None,
        "expected no control character in a table, saw {:?}",
        finished.stdout
    );
}

/// All figures of a cgroup, with names such as `cpu some`.
fn pressures(cgroup: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for resource in ["cpu", "io", "memory", "irq"] {
        for kind in ["some", "full"] {
            found.extend(
                cgroup[resource]
                    .get(kind)
                    .map(|pressure| (format!("{resource} {kind}"), pressure)),
            );
        }
    }
    found
}

#[track_caller]
fn has_keys(json: &Value, keys: &[&str]) {
    for key in keys {
        assert!(json.get(key).is_some(), "expected the field {key}, saw {json}");
    }
}
