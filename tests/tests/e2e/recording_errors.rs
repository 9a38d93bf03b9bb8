//! Files that cannot be recorded to or replayed, and times that are not in them.

use std::{fs, process::Command};

use tests::{program::run, session::Session};

#[test]
fn files_that_are_no_recording_are_named_and_left_alone() {
    let Some(_session) = Session::start("files_that_are_no_recording_are_named_and_left_alone") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| {
        let path = folder.path().join(name);
        path.to_str().expect("temporary names are UTF-8").to_owned()
    };
    let (foreign, short, newer) = (path("foreign"), path("short"), path("newer"));
    let good = path("good");
    run(&["record", "-o", &good, "--interval", "20ms", "--duration", "100ms"]).expect_success();
    let mut bytes = fs::read(&good).expect("a recording");
    // The version's place.
    bytes[8] = 9;
    fs::write(&newer, bytes).expect("a file");
    fs::write(&foreign, "something else, and longer than a beginning\n").expect("a file");
    fs::write(&short, "else").expect("a file");
    let directory = folder.path().to_str().expect("temporary names are UTF-8").to_owned();
    for (path, word) in [
        (&foreign, "no recording"),
        (&short, "no recording"),
        (&newer, "version 9"),
        (&directory, "directory"),
    ] {
        let before = fs::read(path).ok();
        let record = ["record", "-o", path, "--interval", "20ms", "--duration", "100ms"];
        for arguments in [&["dump", "--replay", path][..], &record] {
            let finished = run(arguments);
            let line = finished.expect_failure(2);
            assert!(
                line.contains(word) && line.contains(path),
                "{arguments:?}: expected {word}, saw {line}"
            );
        }
        assert_eq!(fs::read(path).ok(), before, "{path} was changed");
    }
    let fifo = path("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().expect("mkfifo is installed");
    assert!(made.success());
    for arguments in [&["dump", "--replay", &fifo][..], &["record", "-o", &fifo]] {
        assert!(run(arguments).expect_failure(2).contains("no recording"));
    }
    // One of the two files does not hide the other.
    let second = path("good.2");
    let whole = fs::read(&good).expect("a recording");
    let expected = run(&["dump", "--replay", &good]).expect_success().stdout.clone();
    for (foreign, recorded) in [(&second, &good), (&good, &second)] {
        fs::write(recorded, &whole).expect("a file");
        fs::write(foreign, "something else").expect("a file");
        let finished = run(&["dump", "--replay", &good]);
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        assert!(
            finished.stdout == expected,
            "expected the frames, saw {}",
            finished.stdout
        );
        let line = format!("half of the recording is left out: {foreign} is no recording");
        assert!(
            finished.stderr.contains(&line) && finished.stderr.lines().count() == 1,
            "expected {line}, saw {}",
            finished.stderr
        );
        // It is not recorded over, though.
        let finished = run(&["record", "-o", &good]);
        let line = format!("{foreign} is no recording");
        assert!(finished.expect_failure(2).contains(&line), "{}", finished.stderr);
        assert_eq!(fs::read(foreign).expect("a file"), b"something else");
    }
    // Nor is one file both of them.
    fs::write(&good, &whole).expect("a file");
    fs::remove_file(&second).expect("it is there");
    fs::hard_link(&good, &second).expect("a link");
    let line = format!("{second} is the same file");
    let finished = run(&["dump", "--replay", &good]);
    assert_eq!((finished.code, &finished.stdout), (Some(0), &expected));
    assert!(
        finished.stderr.contains(&line),
        "expected {line}, saw {}",
        finished.stderr
    );
    let finished = run(&["record", "-o", &good]);
    assert!(finished.expect_failure(2).contains(&line), "{}", finished.stderr);
    assert_eq!(fs::read(&good).expect("a file"), whole);
}

#[test]
fn what_cannot_be_replayed_is_told_in_a_line() {
    let Some(_session) = Session::start("what_cannot_be_replayed_is_told_in_a_line") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let good = folder.path().join("good");
    let good = good.to_str().expect("temporary names are UTF-8");
    let empty = folder.path().join("empty");
    fs::write(&empty, "").expect("a file");
    let empty = empty.to_str().expect("temporary names are UTF-8");
    run(&["record", "-o", good, "--interval", "20ms", "--duration", "100ms"]).expect_success();
    let output = folder.path().join("output");
    let output = output.to_str().expect("temporary names are UTF-8");
    let replay = ["dump", "--output", output, "--replay"];
    // What follows `--replay`, and a word of the line.
    let cases: [(&[&str], &str); 11] = [
        (&["/no/such/file"], "/no/such/file"),
        (&[empty], "no frame yet"),
        (&[good, "--begin", "soon"], "soon"),
        (&[good, "--begin", "2100-01-01T00:00:00Z"], "it goes from"),
        (&[good, "--end", "1980-01-01T00:00:00Z"], "it goes from"),
        (&[good, "--begin", "-10m", "--end", "-1h"], "is before --begin"),
        (&[good, "--interval", "1s"], "--interval"),
        (&[good, "--duration", "1s"], "--duration"),
        (&[good, "--fields", "cpu.sum.avg10"], "cpu.some.avg10"),
        (&[good, "--sort", "quality.drift"], "quality.drift"),
        (&[good, "--sort", "cpu"], "no field `cpu`"),
    ];
    for (arguments, word) in cases {
        let finished = run(&[&replay, arguments].concat());
        let line = finished.expect_failure(2);
        assert!(line.contains(word), "{arguments:?}: expected {word}, saw {line}");
        assert!(!std::path::Path::new(output).exists(), "{arguments:?} left a file");
    }
    let finished = run(&[
        "dump",
        "--replay",
        good,
        "--cgroup",
        "/no/such/cgroup",
        "--format",
        "csv",
    ]);
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.contains("/no/such/cgroup"), "{}", finished.stderr);
    let before = fs::read(good).expect("the recording");
    let finished = run(&["dump", "--replay", good, "--output", good]);
    assert!(finished.expect_failure(2).contains("overwrite"));
    assert_eq!(fs::read(good).expect("the recording"), before);
    assert!(run(&["dump", "--begin", "-1m"]).expect_failure(2).contains("--replay"));
    assert!(run(&["record"]).expect_failure(2).contains("--output"));
    assert!(
        run(&["record", "-o", "/dev/full", "--duration", "100ms"])
            .expect_failure(2)
            .contains("/dev/full")
    );
    assert!(
        run(&["record", "-o", "/no/such/folder/file", "--duration", "100ms"])
            .expect_failure(2)
            .contains("/no/such/folder/file")
    );
}
