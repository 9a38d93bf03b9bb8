//! Only what is asked for: what an option leaves out is not loaded, and absent from every output.

use tests::{cgroup::Cgroup, machine, program::run, record::Record, record::Share, running::Dump, session::Session};

use crate::load;

#[test]
fn without_irq_and_memory_both_are_absent() {
    let Some(session) = Session::start("without_irq_and_memory_both_are_absent") else {
        return;
    };
    let cgroup = Cgroup::new(session.name());
    let _spinners = [0; 2].map(|_| load().within(&cgroup).alone().start(&["spin"]));
    let dump = |options: &[&str]| {
        let arguments = ["dump", "--count", "1", "--interval", "1s", "--cgroup", cgroup.path()];
        let finished = run(&[&arguments, options].concat());
        Record::all(&finished.expect_success().stdout).remove(0)
    };
    let all = dump(&[]);
    let has_memory = !all.json["source"]["memstall"].is_null();
    for options in [&["--no-irq"][..], &["--no-memstall"], &["--no-irq", "--no-memstall"]] {
        let record = dump(options);
        let (no_irq, no_memstall) = (options.contains(&"--no-irq"), options.contains(&"--no-memstall"));
        let source = &record.json["source"];
        assert_eq!(source["irq"] == serde_json::json!([]), no_irq, "{options:?}: {source}");
        assert_eq!(
            source["memstall"].is_null(),
            no_memstall || !has_memory,
            "{options:?}: {source}"
        );
        let seen = record.cgroup(cgroup.path()).expect("it exists");
        assert_eq!(seen.get("irq").is_none(), no_irq, "{options:?}: {seen}");
        assert_eq!(
            seen.get("memory").is_none(),
            no_memstall || !has_memory,
            "{options:?}: {seen}"
        );
        // What is left is measured as ever.
        let some_us = record.total_us(cgroup.path(), "cpu", "some");
        assert!(
            some_us > 900_000.0,
            "{options:?}: expected 1 s of cpu some, saw {some_us} us"
        );
    }
}

#[test]
fn check_tells_what_is_left_out() {
    let Some(_session) = Session::start("check_tells_what_is_left_out") else {
        return;
    };
    let finished = run(&["check", "--json", "--no-irq", "--no-memstall"]);
    let report = finished.expect_success().json();
    assert_eq!(
        (&report["ok"], &report["irq"], report.get("memstall")),
        (&true.into(), &serde_json::json!([]), None),
        "{report}"
    );
    for (name, option) in [
        ("softirq_entry", "--no-irq"),
        ("psi_memstall_enter", "--no-memstall"),
        ("mm_vmscan_direct_reclaim_begin", "--no-memstall"),
    ] {
        let programs = report["programs"].as_array().expect("programs");
        let program = programs
            .iter()
            .find(|program| program["name"] == name)
            .expect("it is named");
        assert_eq!(program["loadable"], false, "{program}");
        assert!(
            program["reason"].as_str().is_some_and(|reason| reason.contains(option)),
            "{program}"
        );
    }
    let finished = run(&["check", "--no-irq"]);
    assert!(
        finished
            .expect_success()
            .stdout
            .lines()
            .any(|line| line.starts_with("interrupts ") && line.ends_with("not measured")),
        "{}",
        finished.stdout
    );
}

#[test]
fn with_only_leaf_a_cgroup_has_its_own_tasks_only() {
    let Some(session) = Session::start("with_only_leaf_a_cgroup_has_its_own_tasks_only") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let inner = outer.child("inner");
    let mut dump = Dump::start(&[
        "--only-leaf",
        "--counts",
        "--interval",
        "400ms",
        "--cgroup",
        &outer.glob(),
    ]);
    dump.record();
    // Made while it runs: the programs' own doing.
    let later = outer.child("later");
    let _spinners = [&inner, &later].map(|cgroup| load().within(cgroup).alone().start(&["spin", "--threads", "2"]));
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(4);
    for cgroup in [&inner, &later] {
        before.expect(&after, cgroup, "cpu some", Share::ALWAYS);
    }
    for figure in ["cpu some", "cpu full", "irq full"] {
        if figure != "irq full" || after.json["source"]["irq"] != serde_json::json!([]) {
            before.expect(&after, &outer, figure, Share::about(0.0, 0.0));
        }
    }
    let counts = &after.cgroup(outer.path()).expect("it exists")["counts"];
    assert_eq!(
        counts["productive"], 0,
        "expected that nothing is carried up, saw {counts}"
    );
    dump.finish();
}

#[test]
fn with_only_leaf_compare_takes_leaves_only() {
    let Some(session) = Session::start("with_only_leaf_compare_takes_leaves_only") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let inner = outer.child("inner");
    for path in ["/", outer.path()] {
        let finished = run(&["compare", "--only-leaf", "--duration", "300ms", "--cgroup", path]);
        let line = finished.expect_failure(2);
        assert!(line.contains("--only-leaf") && line.contains(path), "{line}");
    }
    if !machine::has_kernel_psi() {
        return session.skip("the kernel keeps no PSI to compare with");
    }
    let _spinners = [0; 2].map(|_| load().within(&inner).alone().start(&["spin"]));
    let finished = run(&[
        "compare",
        "--only-leaf",
        "--json",
        "--duration",
        "3s",
        "--cgroup",
        inner.path(),
    ]);
    let comparison = finished.expect_success().json();
    let rows = comparison["rows"].as_array().expect("rows");
    let row = rows
        .iter()
        .find(|row| row["resource"] == "cpu" && row["kind"] == "some")
        .expect("cpu some");
    let percent = row["difference_percent"].as_f64().expect("the kernel's total grew");
    assert!(percent.abs() < 3.0, "expected what the kernel has, saw {row}");
}
