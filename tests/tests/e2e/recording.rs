//! `record`, and what `dump --replay` makes of it.

mod full_disk;

use std::{fs, os::unix::fs::symlink, path::PathBuf, time::Duration};

use rustix::process::Signal;
use tempfile::TempDir;
use tests::{
    PATIENCE,
    cgroup::Cgroup,
    eventually,
    program::{Finished, run},
    record::Record,
    recording::frames,
    running::Dump,
    session::Session,
};

use crate::load;

/// A place for a recording.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("recording")
    }

    fn name(&self) -> String {
        self.path().to_str().expect("temporary names are UTF-8").to_owned()
    }

    /// Records, with these arguments too.
    fn record(&self, arguments: &[&str]) -> Finished {
        run(&[&["record", "--output", &self.name()], arguments].concat())
    }

    fn start(&self, arguments: &[&str]) -> Dump {
        Dump::start_command(&[&["record", "--output", &self.name()], arguments].concat())
    }

    /// Replays, with these arguments too.
    fn replay(&self, arguments: &[&str]) -> Finished {
        run(&[&["dump", "--replay", &self.name()], arguments].concat())
    }

    /// Waits until it has so many frames.
    fn wait_for(&self, count: usize) {
        eventually("frames", PATIENCE, || {
            let is_there = self.path().exists() && frames(&self.path()).len() >= count;
            is_there.then_some(())
        });
    }
}

#[test]
fn a_replay_prints_what_was_printed_live() {
    let Some(session) = Session::start("a_replay_prints_what_was_printed_live") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let busy = outer.child("busy");
    let _load = load().within(&busy).behind().start(&["ping-pong", "--pairs", "2"]);
    let choices: [&[&str]; 2] = [
        &[],
        // What JSON leaves out, too.
        &[
            "--format",
            "csv",
            "--fields",
            "time_ns,path,id,cpu.some,cpu.some.last,irq.full.last,quality",
        ],
    ];
    for choice in choices {
        let place = Place::new();
        let name = place.name();
        let mut live = Dump::start(&[choice, &["--interval", "100ms", "--also-record", &name]].concat());
        let mut printed = live.line();
        // Cgroups come and go meanwhile.
        place.wait_for(3);
        let short = outer.child("a short one");
        place.wait_for(6);
        short.remove();
        place.wait_for(9);
        live.signal(Signal::TERM);
        printed.push_str(&live.wait().expect_success().stdout);
        let replayed = place.replay(choice);
        assert!(
            replayed.expect_success().stdout == printed,
            "live:\n{printed}\nreplayed:\n{}",
            replayed.stdout
        );
        assert!(printed.contains("a short one") && printed.contains(busy.path()));
    }
}

#[test]
fn a_time_span_is_replayed() {
    let Some(_session) = Session::start("a_time_span_is_replayed") else {
        return;
    };
    let place = Place::new();
    place
        .record(&["--interval", "100ms", "--duration", "2s"])
        .expect_success();
    let recorded = frames(&place.path());
    assert!(recorded.len() > 5, "expected about 20 frames, saw {recorded:?}");
    let times = |arguments: &[&str]| -> Vec<u64> {
        let finished = place.replay(arguments);
        let records = Record::all(&finished.expect_success().stdout);
        records
            .iter()
            .map(|record| record.json["time_ns"].as_u64().expect("a time"))
            .collect()
    };
    let all: Vec<u64> = recorded.iter().map(|frame| frame.time_ns).collect();
    assert_eq!(times(&[]), all);
    assert_eq!(times(&["--count", "2"]), all[..2]);
    let (begin, end) = (utc(all[2]), utc(all[4]));
    assert_eq!(times(&["--begin", &begin, "--end", &end]), all[2..=4]);
    assert_eq!(times(&["--end", &begin]), all[..=2]);
    // All of that second, and of that day.
    let second = date(all[2], &["--utc", "+%Y-%m-%dT%H:%M:%SZ"]);
    let until = all.partition_point(|time| time / 1_000_000_000 <= all[2] / 1_000_000_000);
    assert_eq!(times(&["--end", &second]), all[..until]);
    let day = |time| date(time, &["+%Y-%m-%d"]);
    let (first, last) = (day(all[0]), day(all[all.len() - 1]));
    assert_eq!(times(&["--begin", &first, "--end", &last]), all);
    let before = day(all[0] - 24 * 3600 * 1_000_000_000);
    assert!(
        place
            .replay(&["--end", &before])
            .expect_failure(2)
            .contains("it goes from")
    );
    let last_second: Vec<u64> = all
        .iter()
        .copied()
        .filter(|time| time + 1_000_000_000 >= all[all.len() - 1])
        .collect();
    assert_eq!(times(&["--begin", "-1s"]), last_second);

    // Fields, order and number of cgroups as of live ones.
    let finished = place.replay(&[
        "--count",
        "1",
        "--format",
        "tsv",
        "--fields",
        "level,path",
        "--sort",
        "+level",
        "--top",
        "1",
    ]);
    assert_eq!(finished.expect_success().stdout, "level\tpath\n0\t/\n");
}

/// As RFC 3339 has it.
fn utc(time_ns: u64) -> String {
    date(time_ns, &["--utc", "+%Y-%m-%dT%H:%M:%S.%NZ"])
}

fn date(time_ns: u64, arguments: &[&str]) -> String {
    let seconds = format!("@{}.{:09}", time_ns / 1_000_000_000, time_ns % 1_000_000_000);
    let output = std::process::Command::new("date")
        .args(["--date", &seconds])
        .args(arguments)
        .output()
        .expect("date runs");
    String::from_utf8(output.stdout).expect("ASCII").trim().to_owned()
}

#[test]
fn a_killed_recorder_loses_at_most_its_last_frame() {
    let Some(_session) = Session::start("a_killed_recorder_loses_at_most_its_last_frame") else {
        return;
    };
    let place = Place::new();
    let recorder = place.start(&["--interval", "20ms"]);
    place.wait_for(10);
    recorder.signal(Signal::KILL);
    assert_eq!(recorder.wait().code, None, "killed");
    let whole = frames(&place.path());
    let finished = place.replay(&[]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(finished.stdout.lines().count(), whole.len());

    // As if it had been in the middle of a frame.
    let last = whole[whole.len() - 1];
    let torn = fs::OpenOptions::new()
        .write(true)
        .open(place.path())
        .expect("the recording opens");
    torn.set_len((last.offset + last.length - 3) as u64)
        .expect("it can be cut");
    let finished = place.replay(&[]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(finished.stdout.lines().count(), whole.len() - 1);
    let message = format!("1 frame lost at byte {}", last.offset);
    assert!(
        finished.stderr.contains(&message) && finished.stderr.lines().count() == 1,
        "expected {message}, saw {}",
        finished.stderr
    );

    // The next recorder goes on behind the last whole frame.
    let finished = place.record(&["--interval", "50ms", "--duration", "200ms"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(finished.stderr.contains(&message), "{}", finished.stderr);
    let after = frames(&place.path());
    assert!(after.len() > whole.len() && after[whole.len() - 1].is_key, "{after:?}");
    let finished = place.replay(&[]);
    assert_eq!(finished.expect_success().stdout.lines().count(), after.len());
}

/// A few bytes of the disk turn bad.
#[test]
fn a_damaged_frame_is_left_out() {
    let Some(_session) = Session::start("a_damaged_frame_is_left_out") else {
        return;
    };
    let place = Place::new();
    for _ in 0..2 {
        // Each run begins with a key frame.
        place
            .record(&["--interval", "50ms", "--duration", "300ms"])
            .expect_success();
    }
    let all = frames(&place.path());
    let second_key = (1..all.len()).find(|&n| all[n].is_key).expect("two runs");
    let bad = all[1];
    let mut bytes = fs::read(place.path()).expect("the recording can be read");
    bytes[bad.offset + bad.length - 1] ^= 1;
    fs::write(place.path(), bytes).expect("the recording can be written");
    let finished = place.replay(&[]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let lost = second_key - 1;
    assert_eq!(finished.stdout.lines().count(), all.len() - lost);
    let message = format!("lost at byte {}", bad.offset);
    assert!(
        finished.stderr.contains(&format!("{lost} frame")) && finished.stderr.contains(&message),
        "expected {lost} frames {message}, saw {}",
        finished.stderr
    );
}

#[test]
fn a_recording_is_bounded() {
    let Some(_session) = Session::start("a_recording_is_bounded") else {
        return;
    };
    let place = Place::new();
    place
        .record(&["--interval", "50ms", "--keep", "1s", "--duration", "5s"])
        .expect_success();
    let finished = place.replay(&[]);
    let records = Record::all(&finished.expect_success().stdout);
    let time = |record: &Record| record.json["time_ns"].as_u64().expect("a time");
    assert!(
        records.windows(2).all(|pair| time(&pair[0]) < time(&pair[1])),
        "in their order"
    );
    let covered_ns: u64 = records
        .iter()
        .map(|record| record.json["interval_ns"].as_u64().expect("a time"))
        .sum();
    let covered = Duration::from_nanos(covered_ns);
    // A busy machine may make intervals longer.
    let slack = Duration::from_millis(500);
    assert!(
        covered >= Duration::from_secs(1) && covered <= Duration::from_secs(2) + slack,
        "expected 1 to 2 s, saw {covered:?}"
    );
}

#[test]
fn a_link_leads_to_both_files() {
    let Some(_session) = Session::start("a_link_leads_to_both_files") else {
        return;
    };
    let (place, elsewhere) = (Place::new(), Place::new());
    symlink(elsewhere.path(), place.path()).expect("a link");
    // Long enough for both.
    place
        .record(&["--interval", "50ms", "--keep", "300ms", "--duration", "1s"])
        .expect_success();
    let names = |place: &Place| {
        let names = fs::read_dir(place.0.path()).expect("a folder");
        let mut names: Vec<_> = names.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&place), ["recording"]);
    assert_eq!(names(&elsewhere), ["recording", "recording.2"]);
    let linked = place.replay(&[]);
    assert!(linked.expect_success().stdout == elsewhere.replay(&[]).expect_success().stdout);
    let name = format!("{}.2", elsewhere.name());
    assert!(
        place
            .replay(&["--output", &name])
            .expect_failure(2)
            .contains("overwrite")
    );
}

#[test]
fn one_recorder_a_file() {
    let Some(_session) = Session::start("one_recorder_a_file") else {
        return;
    };
    let place = Place::new();
    let recorder = place.start(&["--interval", "100ms"]);
    place.wait_for(2);
    let finished = place.record(&["--interval", "50ms", "--duration", "200ms"]);
    let line = finished.expect_failure(2);
    assert!(
        line.contains("another process") && line.contains(&place.name()),
        "{line}"
    );
    recorder.signal(Signal::INT);
    recorder.wait().expect_success();
    place.replay(&[]).expect_success();
}
