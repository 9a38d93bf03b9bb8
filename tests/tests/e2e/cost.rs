//! What psitrace says of its own cost, and of the kernel's rstat.

use std::{fs, process::Stdio, thread::sleep, time::Duration};

use serde_json::Value;
use tests::{cgroup::Cgroup, machine, program, running::Dump, session::Session};

/// Runs psitrace to its end, with `meanwhile` beside it; its output as JSON.
fn json(arguments: &[&str], meanwhile: impl FnOnce()) -> Value {
    let child = program::command(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psitrace starts");
    meanwhile();
    let output = child.wait_with_output().expect("psitrace ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().last().expect("a line");
    serde_json::from_str(line).expect("JSON")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

fn sum(histogram: &Value) -> u64 {
    histogram.as_object().expect("bins").values().map(number).sum()
}

#[test]
fn maps_take_what_the_formula_says() {
    let Some(_session) = Session::start("maps_take_what_the_formula_says") else {
        return;
    };
    // Few slots, where what is fixed counts, and many.
    for slots in ["16", "20000"] {
        let stats = json(
            &["stats", "--json", "--duration", "100ms", "--max-cgroups", slots],
            || {},
        );
        let (real, formula) = (number(&stats["map_bytes"]), number(&stats["formula_bytes"]));
        assert!(
            real.abs_diff(formula) * 50 <= real,
            "{slots} slots: {real} bytes, by the formula {formula}: {}",
            stats["maps"]
        );
    }
}

#[test]
fn holds_are_counted_in_each_record() {
    let Some(_session) = Session::start("holds_are_counted_in_each_record") else {
        return;
    };
    let mut dump = Dump::start(&["--interval", "100ms"]);
    let record = dump.find("a hold", 50, |record| {
        number(&record.json["flush"]["flushes"]) > 1 && sum(&record.json["flush"]["hold_us"]) > 0
    });
    let flush = &record.json["flush"];
    assert!(
        number(&flush["records"]) >= sum(&flush["hold_us"]),
        "a list without records: {flush}"
    );
    assert!(number(&flush["time_ns"]) >= number(&flush["longest_ns"]), "{flush}");
    dump.finish();
}

#[test]
fn the_kernels_flushes_are_seen() {
    let Some(session) = Session::start("the_kernels_flushes_are_seen") else {
        return;
    };
    let cgroup = Cgroup::new(session.name());
    let mount = machine::v2_mount().expect("there is one: the session found it");
    let file = mount.join(cgroup.path().trim_start_matches('/')).join("cpu.stat");
    if !fs::read_to_string("/sys/kernel/tracing/available_events").is_ok_and(|all| all.contains("cgroup_rstat_locked"))
        && !fs::read("/sys/kernel/btf/vmlinux").is_ok_and(|btf| {
            let name = b"btf_trace_cgroup_rstat_locked";
            btf.windows(name.len()).any(|window| window == name)
        })
    {
        session.skip("this kernel has no cgroup_rstat_locked");
        return;
    }
    let reads = 40;
    let seen = json(&["rstat", "--json", "--duration", "4s", "--interval", "4s"], || {
        // Half of them at least come after the programs.
        for _ in 0..reads {
            sleep(Duration::from_millis(90));
            fs::read(&file).expect("cpu.stat");
        }
    });
    let lock = &seen["locks"][0];
    assert_eq!(lock["name"], "flush");
    assert!(sum(&lock["hold_us"]) >= reads / 2, "{reads} flushes, seen: {lock}");
    assert!(number(&lock["longest_hold_ns"]) > 0, "{lock}");
}
