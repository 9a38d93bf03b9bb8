//! `dump`'s options.

use std::fs;

use tests::{cgroup::Cgroup, program::run, record::Record, session::Session};

#[test]
fn count_and_duration_end_it() {
    let Some(_session) = Session::start("count_and_duration_end_it") else {
        return;
    };
    let records = |arguments: &[&str]| {
        let finished = run(&[&["dump", "--depth", "0"], arguments].concat());
        Record::all(&finished.expect_success().stdout)
    };
    assert_eq!(records(&["--interval", "50ms", "--count", "4"]).len(), 4);

    // On a busy machine records may be late, and then fewer.
    let timed = records(&["--interval", "200ms", "--duration", "1s"]);
    assert!(
        (1..=5).contains(&timed.len()),
        "expected about 5 records in 1 s, saw {}",
        timed.len()
    );
    let at_ns = timed.last().map_or(0, |record| record.at_ns);
    assert!(
        at_ns >= 950_000_000,
        "expected the last record after 1 s, saw {at_ns} ns"
    );

    // Shorter than the interval: one record, at the end.
    assert_eq!(records(&["--interval", "10m", "--duration", "300ms"]).len(), 1);
    // What comes first ends it.
    assert_eq!(
        records(&["--interval", "50ms", "--count", "1", "--duration", "1h"]).len(),
        1
    );
}

#[test]
fn output_goes_to_a_file() {
    let Some(_session) = Session::start("output_goes_to_a_file") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("records");
    fs::write(&path, "what was there, and longer than what comes\n".repeat(10_000)).expect("a file can be written");
    let output = path.to_str().expect("temporary names are UTF-8");
    let finished = run(&["dump", "--count", "3", "--interval", "50ms", "--output", output]);
    assert_eq!(finished.expect_success().stdout, "", "nothing goes to standard output");
    let written = fs::read_to_string(&path).expect("the file is there");
    assert!(written.ends_with("}\n"), "expected whole lines");
    assert_eq!(Record::all(&written).len(), 3);
}

#[test]
fn depth_and_pattern_select_cgroups() {
    let Some(session) = Session::start("depth_and_pattern_select_cgroups") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let middle = outer.child("middle");
    let inner = middle.child("inner");
    let paths = |arguments: &[&str]| {
        let finished = run(&[&["dump", "--count", "1", "--interval", "50ms"], arguments].concat());
        let records = Record::all(&finished.expect_success().stdout);
        records[0].paths().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(paths(&["--depth", "0"]), ["/"]);
    let two = paths(&["--depth", "2"]);
    assert!(
        two.iter().any(|path| path == middle.path()) && !two.iter().any(|path| path == inner.path()),
        "{two:?}"
    );

    assert_eq!(paths(&["--cgroup", middle.path()]), [middle.path()]);
    assert_eq!(paths(&["--cgroup", &format!("{}/*", outer.path())]), [middle.path()]);
    assert_eq!(
        paths(&["--cgroup", &format!("{}/**", outer.path())]),
        [middle.path(), inner.path()]
    );
    assert_eq!(paths(&["--cgroup", "/**/inner"]), [inner.path()]);
    // A pattern may match nothing: what it names may come later. A name may not.
    assert_eq!(paths(&["--cgroup", "/no-such-*"]), Vec::<String>::new());
}

#[test]
fn table_is_for_people() {
    let Some(session) = Session::start("table_is_for_people") else {
        return;
    };
    let cgroup = Cgroup::new(session.name());
    let finished = run(&[
        "dump",
        "--count",
        "2",
        "--interval",
        "50ms",
        "--format",
        "table",
        "--cgroup",
        cgroup.path(),
    ]);
    let table = &finished.expect_success().stdout;
    let lines: Vec<&str> = table.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 4, "expected a title and a line, twice, saw\n{table}");
    for pair in lines.chunks(2) {
        assert!(
            ["CPU", "MEM", "IO", "IRQ", "%"]
                .iter()
                .all(|title| pair[0].contains(title)),
            "{}",
            pair[0]
        );
        assert!(pair[1].ends_with(cgroup.path()), "{}", pair[1]);
        let figures: Vec<&str> = pair[1].split_whitespace().collect();
        assert_eq!(figures.len(), 8, "expected 7 figures and a path, saw {}", pair[1]);
        let is_figure = |cell: &&str| *cell == "-" || cell.parse::<f64>().is_ok_and(|n| (0.0..=100.0).contains(&n));
        assert!(figures[..7].iter().all(is_figure), "{}", pair[1]);
    }
}
