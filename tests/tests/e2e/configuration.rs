//! The configuration file, completions and manual pages of the real program.

use std::{fs, os::unix::fs::symlink, path::Path, process::Stdio};

use tests::{
    cgroup::Cgroup,
    program::{Finished, command, run},
    record::Record,
    session::Session,
};

/// Runs psitrace with this folder's configuration.
fn run_with(folder: &Path, arguments: &[&str]) -> Finished {
    let mut command = command(arguments);
    command.env("XDG_CONFIG_HOME", folder).stdin(Stdio::null());
    command.output().expect("psitrace starts").into()
}

#[test]
fn defaults_come_from_the_file() {
    let Some(session) = Session::start("defaults_come_from_the_file") else {
        return;
    };
    // There may be none but the root.
    let cgroup = Cgroup::new(session.name());
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("psitrace/config.toml");
    fs::create_dir(folder.path().join("psitrace")).expect("a folder");
    let write = |text: &str| fs::write(&file, text).expect("a file");

    write("no-irq = true\n[dump]\ninterval = \"50ms\"\ndepth = 0\n");
    let records = |arguments| Record::all(&run_with(folder.path(), arguments).expect_success().stdout);
    let three = records(&["dump", "--count", "3"]);
    assert_eq!(three.len(), 3);
    assert_eq!(three[0].paths(), ["/"]);
    assert_eq!(three[0].json["source"]["irq"].as_array().map(Vec::len), Some(0));
    let deeper = records(&["dump", "--count", "1", "--depth", "1"]);
    assert!(
        deeper[0].cgroup(cgroup.path()).is_some(),
        "the command line wins: expected {}, saw {:?}",
        cgroup.path(),
        deeper[0].paths()
    );
    // What to trace is no business of theirs.
    let recording = folder.path().join("recording");
    let recording = recording.to_str().expect("temporary names are UTF-8");
    run_with(folder.path(), &["record", "-o", recording, "--duration", "100ms"]).expect_success();
    assert!(!records(&["dump", "--replay", recording]).is_empty());
    let finished = run_with(folder.path(), &["disable", "no-path"]);
    assert!(finished.expect_failure(2).contains("no-path"));

    write("[dump]\ncount = 3\n");
    let finished = run_with(folder.path(), &["dump"]);
    assert!(finished.expect_failure(2).contains("line 2: count is not a default"));

    write("[dump]\n\ninterval = \"soon\"\n");
    let finished = run_with(folder.path(), &["dump"]);
    let line = finished.expect_failure(2);
    let at = format!("{} line 3: interval: ", file.display());
    assert!(line.contains(&at) && line.contains("soon"), "expected {at}, saw {line}");
    // Help can be had all the same.
    run_with(folder.path(), &["dump", "--help"]).expect_success();

    fs::remove_file(&file).expect("it is there");
    symlink("/dev/zero", &file).expect("a link");
    let finished = run_with(folder.path(), &["check"]);
    assert!(finished.expect_failure(2).contains("not a regular file"));

    fs::remove_file(&file).expect("it is there");
    fs::create_dir(&file).expect("a folder");
    let finished = run_with(folder.path(), &["check"]);
    assert!(finished.expect_failure(2).contains(&file.display().to_string()));
}

#[test]
fn completions_and_manual_pages_are_printed() {
    let Some(_session) = Session::start("completions_and_manual_pages_are_printed") else {
        return;
    };
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let finished = run(&["completions", shell]);
        let script = &finished.expect_success().stdout;
        assert!(
            script.contains("replay") && script.contains("record"),
            "{shell}: {script}"
        );
    }
    assert!(run(&["completions", "cmd"]).expect_failure(2).contains("cmd"));
    for (arguments, words) in [
        (&["man"][..], [".TH psitrace", "Exit codes", "psitrace\\-record"]),
        (&["man", "dump"], ["psitrace\\-dump", "\\-\\-fields", "csv"]),
        (
            &["man", "bench", "flush"],
            ["psitrace\\-bench\\-flush", "\\-\\-updates", "rstat"],
        ),
    ] {
        let finished = run(arguments);
        for word in words {
            assert!(
                finished.expect_success().stdout.contains(word),
                "{arguments:?}: expected {word}, saw {}",
                finished.stdout
            );
        }
    }
    assert!(run(&["man", "no-such"]).expect_failure(2).contains("no-such"));
}
