//! `dump`'s forms beside JSON, and its choice of fields, order and number.

use serde_json::Value;
use tests::{cgroup::Cgroup, program::run, session::Session};

use crate::load;

/// The same records in each form, through a recording.
#[test]
fn all_forms_say_the_same() {
    let Some(session) = Session::start("all_forms_say_the_same") else {
        return;
    };
    let cgroup = Cgroup::new(session.name());
    let strange = cgroup.child("a \"b\", c=d\t");
    let _load = load().within(&strange).behind().start(&["ping-pong", "--pairs", "2"]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording");
    let name = path.to_str().expect("temporary names are UTF-8");
    let json = run(&["dump", "--interval", "500ms", "--count", "2", "--also-record", name]);
    let json = &json.expect_success().stdout;
    let records: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    // In the order of their lines.
    let cgroups: Vec<(&Value, &Value)> = records
        .iter()
        .flat_map(|record| {
            let cgroups = record["cgroups"].as_array().expect("cgroups");
            cgroups.iter().map(move |cgroup| (record, cgroup))
        })
        .collect();
    let replay = |format| {
        let finished = run(&["dump", "--replay", name, "--format", format]);
        finished.expect_success().stdout.clone()
    };
    let expect = |names: &[String], row: &[String], (record, cgroup): (&Value, &Value)| {
        for (name, cell) in names.iter().zip(row) {
            let pointer = format!("/{}", name.replace('.', "/"));
            let expected = cgroup.pointer(&pointer).or_else(|| record.pointer(&pointer));
            match expected.unwrap_or(&Value::Null) {
                Value::Null => assert_eq!(cell, "", "{name}"),
                Value::String(text) => assert_eq!(cell, text, "{name}"),
                Value::Number(number) => assert_eq!(cell.parse().ok(), number.as_f64(), "{name}"),
                // The interrupt kinds.
                _ => assert_eq!(name, "source.irq"),
            }
        }
    };
    for (format, delimiter) in [("csv", b','), ("tsv", b'\t')] {
        let text = replay(format);
        let mut rows = rows(&text, delimiter).into_iter();
        let names = rows.next().expect("a header");
        let rows: Vec<Vec<String>> = rows.collect();
        assert_eq!(rows.len(), cgroups.len(), "{format}");
        for (row, cgroup) in rows.iter().zip(&cgroups) {
            assert_eq!(row.len(), names.len(), "{format}: {row:?}");
            expect(&names, row, *cgroup);
        }
        assert!(rows.iter().any(|row| row.iter().any(|cell| cell == strange.path())));
    }
    let pairs = replay("kv");
    assert_eq!(pairs.lines().count(), cgroups.len());
    let quoted = serde_json::to_string(strange.path()).expect("JSON");
    assert!(
        pairs.contains(&format!(" path={quoted} id={} ", strange.id())),
        "{pairs}"
    );
}

/// As RFC 4180 has it.
fn rows(text: &str, delimiter: u8) -> Vec<Vec<String>> {
    let delimiter = char::from(delimiter);
    let mut rows = vec![vec![String::new()]];
    let mut is_quoted = false;
    let mut text = text.chars().peekable();
    while let Some(c) = text.next() {
        let row = rows.last_mut().expect("a row");
        let cell = row.last_mut().expect("a cell");
        match c {
            '"' if is_quoted && text.peek() == Some(&'"') => {
                text.next();
                cell.push('"');
            }
            '"' => is_quoted = !is_quoted,
            '\n' if !is_quoted => rows.push(vec![String::new()]),
            _ if c == delimiter && !is_quoted => row.push(String::new()),
            _ => cell.push(c),
        }
    }
    rows.pop();
    rows
}

#[test]
fn fields_order_and_number_are_chosen() {
    let Some(session) = Session::start("fields_order_and_number_are_chosen") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let (idle, busy) = (outer.child("idle"), outer.child("busy"));
    let _load = load().within(&busy).behind().start(&["ping-pong", "--pairs", "4"]);
    let dump = |arguments: &[&str]| {
        let glob = format!("{}/*", outer.path());
        let finished = run(&[
            &["dump", "--count", "1", "--interval", "1s", "--cgroup", &glob],
            arguments,
        ]
        .concat());
        finished.expect_success().stdout.clone()
    };
    let sorted = |order: &str| dump(&["--format", "csv", "--fields", "path", "--sort", order]);
    let (first, second) = (format!("path\n{}\n", busy.path()), format!("{}\n", idle.path()));
    assert_eq!(sorted("cpu.some.total_us"), format!("{first}{second}"));
    assert_eq!(sorted("-cpu.some.last"), format!("{first}{second}"));
    assert_eq!(sorted("path"), format!("{first}{second}"));
    assert_eq!(sorted("+cpu.some.total_us"), format!("path\n{second}{}\n", busy.path()));

    let json = dump(&[
        "--fields",
        "cpu.some.total_us,path,interval_ns",
        "--sort",
        "cpu.some.total_us",
        "--top",
        "1",
    ]);
    let record: Value = serde_json::from_str(&json).expect("JSON");
    let keys = |value: &Value| {
        value
            .as_object()
            .map(|object| object.keys().cloned().collect::<Vec<_>>())
    };
    assert_eq!(keys(&record).expect("an object"), ["cgroups", "interval_ns"]);
    let cgroups = record["cgroups"].as_array().expect("cgroups");
    assert_eq!(cgroups.len(), 1);
    assert_eq!(cgroups[0]["path"], busy.path());
    assert_eq!(keys(&cgroups[0]["cpu"]["some"]).expect("an object"), ["total_us"]);
}
