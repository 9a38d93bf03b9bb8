//! Wrong arguments: exit code 2, one line that says what is wrong, and nothing written.

use std::fs::{self, File};

use tests::{
    program::{self, run},
    session::Session,
};

#[test]
fn wrong_arguments_are_named_in_a_line() {
    let Some(_session) = Session::start("wrong_arguments_are_named_in_a_line") else {
        return;
    };
    // The arguments, and a word of the line.
    let cases: [(&[&str], &str); 24] = [
        (&["dump", "--interval", "1x"], "1x"),
        (&["dump", "--interval", "5"], "--interval"),
        (&["dump", "--interval", "0s"], "--interval"),
        (&["dump", "--interval", "-1s"], "-1"),
        (&["dump", "--duration", "soon"], "soon"),
        (&["dump", "--duration", "1mo"], "1h30m"),
        (&["record", "-o", "/no/such", "--keep", "367d"], "at most a year"),
        (&["dump", "--count", "0"], "--count"),
        (&["dump", "--count", "some"], "some"),
        (&["dump", "--cgroup", "/["], "--cgroup"),
        (&["dump", "--cgroup", "/{a"], "--cgroup"),
        (&["dump", "--cgroup", "/no/such/cgroup"], "/no/such/cgroup"),
        (&["dump", "--depth", "-1"], "-1"),
        (&["dump", "--format", "xml"], "xml"),
        (&["dump", "--hierarchy", "no-such", "--count", "1"], "no-such"),
        (&["dump", "--max-cgroups", "0"], "--max-cgroups"),
        (&["dump", "--no-such-option"], "--no-such-option"),
        (&["compare", "--cgroup", "/no/such/cgroup"], "/no/such/cgroup"),
        (&["compare", "--cgroup", "/../.."], "/../.."),
        (&["compare", "--hierarchy", "cpu"], "v2"),
        (&["disable", "--hierarchy", "memory", "/a"], "--hierarchy"),
        (&["bench", "overhead", "--track", "/a"], "--track"),
        (&["dump", "--replay", "/no/such/file", "--no-irq"], "--no-irq"),
        (&["no-such-command"], "no-such-command"),
    ];
    for (arguments, word) in cases {
        let finished = run(arguments);
        let line = finished.expect_failure(2);
        assert!(
            line.starts_with("psitrace: ") && line.contains(word),
            "{arguments:?}: expected {word}, saw {line}"
        );
    }
}

#[test]
fn output_that_cannot_be_written_is_named() {
    let Some(_session) = Session::start("output_that_cannot_be_written_is_named") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing/file");
    for output in [folder.path(), &missing] {
        let output = output.to_str().expect("temporary names are UTF-8");
        let finished = run(&["dump", "--count", "1", "--interval", "50ms", "--output", output]);
        let line = finished.expect_failure(2);
        assert!(line.contains(output), "expected {output}, saw {line}");
    }
    let finished = run(&["dump", "--count", "1", "--interval", "50ms", "--output", "/dev/full"]);
    assert!(finished.expect_failure(2).contains("/dev/full"));
    let finished = run(&["record", "--output", "-"]);
    assert!(finished.expect_failure(2).contains("standard output"));
    for text in ["--help", "--version"] {
        let full = File::options().write(true).open("/dev/full").expect("/dev/full");
        let output = program::command(&[text])
            .stdout(full)
            .output()
            .expect("psitrace starts");
        assert_eq!(output.status.code(), Some(2), "{text}");
    }
}

/// A wrong argument is found before the file is touched.
#[test]
fn a_failed_run_leaves_the_output_alone() {
    let Some(_session) = Session::start("a_failed_run_leaves_the_output_alone") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    fs::write(&old, "as it was").expect("a file can be written");
    let wrong: [&[&str]; 4] = [
        &["--cgroup", "/no/such/cgroup"],
        &["--hierarchy", "no-such"],
        &["--interval", "never"],
        &["--bpf-object", "/no/such/object"],
    ];
    for wrong in wrong {
        for output in [&old, &new] {
            let output = output.to_str().expect("temporary names are UTF-8");
            let finished = run(&[&["dump", "--count", "1", "--output", output], wrong].concat());
            assert_ne!(finished.code, Some(0), "{wrong:?}");
        }
        assert_eq!(fs::read_to_string(&old).ok().as_deref(), Some("as it was"), "{wrong:?}");
        assert!(!new.exists(), "expected no file after {wrong:?}");
    }
}

#[test]
fn help_and_version_succeed() {
    let Some(_session) = Session::start("help_and_version_succeed") else {
        return;
    };
    let cases: [(&[&str], &str); 5] = [
        (&["--help"], "Exit codes"),
        (&["--version"], "psitrace "),
        (&["dump", "--help"], "--interval"),
        (&["top", "--help"], "--interval"),
        (&["compare", "--help"], "--duration"),
    ];
    for (arguments, words) in cases {
        let finished = run(arguments);
        finished.expect_success();
        assert!(
            finished.stdout.contains(words),
            "{arguments:?}: expected {words}, saw {}",
            finished.stdout
        );
    }
}

#[test]
fn top_without_a_terminal_is_told_in_a_line() {
    let Some(_session) = Session::start("top_without_a_terminal_is_told_in_a_line") else {
        return;
    };
    assert!(run(&["top"]).expect_failure(2).contains("terminal"));
}
