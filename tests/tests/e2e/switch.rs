//! `disable` and `enable`: as 0 and 1 in the kernel's `cgroup.pressure`.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    path::PathBuf,
    thread::sleep,
    time::Duration,
};

use rustix::process::Signal;
use tests::{
    PATIENCE,
    cgroup::Cgroup,
    eventually, machine,
    program::{self, run},
    record::Share,
    running::Dump,
    session::Session,
    terminal::Terminal,
};

use crate::load;

const PAUSE: Duration = Duration::from_millis(1500);

fn socket(pid: u32) -> PathBuf {
    PathBuf::from(format!("/run/psitrace/{pid}.sock"))
}

/// Has it done by the command.
fn switch(command: &str, cgroup: &Cgroup, dump: &Dump) {
    let finished = run(&[command, cgroup.path(), "--pid", &dump.pid().to_string()]);
    let told = format!("psitrace {}: {command}d {}\n", dump.pid(), cgroup.path());
    assert_eq!(finished.expect_success().stdout, told);
}

#[test]
fn a_disabled_cgroup_stands_still_and_goes_on_at_once() {
    let Some(session) = Session::start("a_disabled_cgroup_stands_still_and_goes_on_at_once") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let middle = outer.child("middle");
    let inner = middle.child("inner");
    let _spinners = [&middle, &inner].map(|cgroup| load().within(cgroup).alone().start(&["spin", "--threads", "2"]));
    let mut dump = Dump::start(&["--counts", "--interval", "200ms"]);
    dump.record();

    for _ in 0..2 {
        let before = dump.fresh_after(2);
        switch("disable", &middle, &dump);
        let off = dump.fresh();
        assert_eq!(off.cgroup(middle.path()), None, "it is hidden");
        sleep(PAUSE);
        let on = dump.fresh();
        for cgroup in [&outer, &inner] {
            off.expect(&on, cgroup, "cpu some", Share::ALWAYS);
        }
        switch("enable", &middle, &dump);
        let after = dump.fresh_after(2);
        // It waits all the time, but for the pause that it is not counted; and for what lies around that.
        let elapsed_us = (after.at_ns - before.at_ns) as f64 / 1000.0;
        let pause_us = (on.at_ns - off.at_ns) as f64 / 1000.0;
        let total_us = |record: &tests::record::Record| record.total_us(middle.path(), "cpu", "some");
        let grown_us = total_us(&after) - total_us(&before);
        assert!(
            (300_000.0..elapsed_us - pause_us).contains(&grown_us),
            "expected growth in less than {elapsed_us} - {pause_us} us, saw {grown_us} us"
        );
        let later = dump.fresh_after(3);
        after.expect(&later, &middle, "cpu some", Share::ALWAYS);
        // Two tasks of its own and the child, all on one CPU.
        let counts = &later.cgroup(middle.path()).expect("it is shown again")["counts"];
        assert_eq!(counts["productive"], 3, "{counts}");
        later.expect_readings();
    }
    dump.finish();
}

/// The kernel's own figure, switched off and on at the same moments.
#[test]
fn agrees_with_the_kernels_own_switch() {
    let Some(session) = Session::start("agrees_with_the_kernels_own_switch") else {
        return;
    };
    let cgroup = Cgroup::new(session.name());
    let kernels = cgroup.dir().join("cgroup.pressure");
    if !machine::has_kernel_psi() || !kernels.exists() {
        return session.skip("the kernel has no cgroup.pressure");
    }
    let _pipes = load().within(&cgroup).alone().start(&["ping-pong", "--pairs", "10"]);
    let mut dump = Dump::start(&["--interval", "100ms", "--cgroup", cgroup.path()]);
    dump.fresh_after(5);
    let kernel_us = || {
        let file = fs::read_to_string(cgroup.dir().join("cpu.pressure")).expect("the kernel keeps it");
        let some = file
            .lines()
            .next()
            .and_then(|line| line.rsplit_once("total="))
            .expect("a total");
        some.1.parse::<f64>().expect("a number")
    };
    let mut asker = Asker::new(dump.pid());
    let mut switch = |request: &str, kernels_word: &str| {
        assert_eq!(asker.ask(request, cgroup.path()), serde_json::json!({}));
        fs::write(&kernels, kernels_word).expect("it can be written");
    };
    // Some tasks wait always: both totals grow with the clock, and are read within an interval.
    let before_us = (dump.fresh().total_us(cgroup.path(), "cpu", "some"), kernel_us());
    for _ in 0..3 {
        switch("disable", "0");
        sleep(PAUSE / 2);
        assert!(!cgroup.dir().join("cpu.pressure").exists() && dump.fresh().cgroup(cgroup.path()).is_none());
        switch("enable", "1");
        sleep(PAUSE / 2);
    }
    let after_us = (dump.fresh().total_us(cgroup.path(), "cpu", "some"), kernel_us());
    let (ours_us, kernels_us) = (after_us.0 - before_us.0, after_us.1 - before_us.1);
    assert!(
        (ours_us - kernels_us).abs() < 150_000.0 && kernels_us > 2_000_000.0,
        "expected {kernels_us} us as in the kernel, saw {ours_us} us"
    );
    dump.finish();
}

/// Switched over and over under load: nothing is counted twice or for good.
#[test]
fn a_thousand_switches_leave_nothing_behind() {
    let Some(session) = Session::start("a_thousand_switches_leave_nothing_behind") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let inner = outer.child("inner");
    let pipes = load().within(&inner).behind().start(&["ping-pong", "--pairs", "8"]);
    let mut dump = Dump::start(&["--counts", "--interval", "200ms", "--cgroup", &outer.glob()]);
    dump.record();
    let mut asker = Asker::new(dump.pid());
    for _ in 0..500 {
        for request in ["disable", "enable"] {
            assert_eq!(asker.ask(request, inner.path()), serde_json::json!({}));
        }
    }
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(4);
    let some = before.growth(&after, inner.path(), "cpu", "some");
    assert!(
        (20.0..=100.1).contains(&some),
        "expected much cpu pressure under this load, saw {some:.1} %"
    );
    drop(pipes);
    inner.wait_until_empty();
    let before = dump.fresh_after(15);
    let after = dump.fresh_after(5);
    let figures = ["cpu some", "cpu full", "io some", "io full"];
    for (cgroup, figure) in [&outer, &inner]
        .iter()
        .flat_map(|cgroup| figures.map(|figure| (*cgroup, figure)))
    {
        before.expect(&after, cgroup, figure, Share::about(0.0, 0.0));
    }
    let counts = &after.cgroup(inner.path()).expect("it exists")["counts"];
    assert_eq!(
        (&counts["waiting"], &counts["productive"]),
        (&0.into(), &0.into()),
        "{counts}"
    );
    after.expect_readings();
    dump.finish();
}

/// A disabled cgroup's slot is the next one's, which is not disabled.
#[test]
fn a_slot_does_not_stay_disabled() {
    let Some(session) = Session::start("a_slot_does_not_stay_disabled") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let existing = machine::cgroup_paths(&machine::v2_mount().expect("there is one")).len();
    let mut dump = Dump::start(&["--interval", "200ms", "--max-cgroups", &(existing + 1).to_string()]);
    dump.record();
    let first = outer.child("first");
    dump.find("the first cgroup", 20, |record| record.cgroup(first.path()).is_some());
    switch("disable", &first, &dump);
    first.remove();
    // The only slot has to be free again.
    sleep(Duration::from_millis(500));
    let second = outer.child("second");
    let _spinners = [0; 2].map(|_| load().within(&second).alone().start(&["spin"]));
    let before = dump.fresh_after(3);
    let after = dump.fresh_after(4);
    before.expect(&after, &second, "cpu some", Share::ALWAYS);
    dump.finish();
}

#[test]
fn what_cannot_be_switched_is_told_in_a_line() {
    let Some(session) = Session::start("what_cannot_be_switched_is_told_in_a_line") else {
        return;
    };
    let cgroup = Cgroup::new(session.name());
    for command in ["disable", "enable"] {
        if !others_run() {
            let finished = run(&[command, cgroup.path()]);
            let line = finished.expect_failure(1);
            assert!(line.contains("no psitrace is running"), "{line}");
        }
        let with_pid = run(&[command, cgroup.path(), "--pid", "1"]);
        assert!(with_pid.expect_failure(1).contains("pid 1"), "{}", with_pid.stderr);
        assert!(run(&[command, "/"]).expect_failure(2).contains("root"));
        assert!(run(&[command, "no/slash"]).expect_failure(2).contains("/no/slash"));
        for path in ["//a", "/a//b", "/./a", "/a/../b"] {
            assert!(
                run(&[command, path]).expect_failure(2).contains("no plain path"),
                "{path}"
            );
        }
        run(&[command]).expect_failure(2);
    }
    let dump = Dump::start(&["--interval", "200ms", "--track", "/no-such"]);
    dump.wait_until_ready();
    let pid = dump.pid().to_string();
    let finished = run(&["disable", cgroup.path(), "--pid", &pid]);
    assert!(finished.expect_failure(2).contains("--track"), "{}", finished.stderr);
    let finished = run(&["disable", "/no/such/cgroup", "--pid", &pid]);
    assert!(
        finished.expect_failure(2).contains("no such cgroup"),
        "{}",
        finished.stderr
    );
    // Whatever comes in, the tracer goes on.
    let mut stream = UnixStream::connect(socket(dump.pid())).expect("it listens");
    stream
        .write_all(b"{\"request\":\"no-such\"}\nnonsense\n")
        .expect("it reads");
    let mut answers = BufReader::new(stream).lines();
    for _ in 0..2 {
        let answer = answers.next().expect("an answer").expect("a line");
        assert_eq!(answer, r#"{"refused":"unknown"}"#);
    }
    let mut stream = UnixStream::connect(socket(dump.pid())).expect("it listens");
    // It hangs up on a request without an end.
    let _ = (0..1000).try_for_each(|_| stream.write_all(&[b'x'; 4096]));
    dump.finish();
}

#[test]
fn all_that_run_are_asked_and_leave_no_socket() {
    let Some(session) = Session::start("all_that_run_are_asked_and_leave_no_socket") else {
        return;
    };
    let cgroup = Cgroup::new(session.name());
    let start = || {
        let mut dump = Dump::start(&["--interval", "200ms", "--cgroup", cgroup.path()]);
        dump.record();
        dump
    };
    let (mut one, mut other, killed) = (start(), start(), start());
    for dump in [&one, &other, &killed] {
        let socket = fs::metadata(socket(dump.pid())).expect("each has one");
        assert_eq!(socket.permissions().mode() & 0o777, 0o700);
    }
    let folder = fs::metadata("/run/psitrace").expect("it is there");
    assert_eq!(folder.permissions().mode() & 0o777, 0o700);

    let stale = socket(killed.pid());
    killed.signal(Signal::KILL);
    assert_eq!(killed.wait().code, None);
    assert!(stale.exists(), "who is killed cannot clean up");
    let finished = run(&["disable", cgroup.path()]);
    // Others on this machine may refuse.
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for dump in [&one, &other] {
        let told = format!("psitrace {}: disabled {}", dump.pid(), cgroup.path());
        let times = finished.stdout.lines().filter(|line| *line == told).count();
        assert_eq!(times, 1, "expected {told}, saw {finished:?}");
    }
    for dump in [&mut one, &mut other] {
        assert_eq!(dump.fresh().cgroup(cgroup.path()), None);
    }
    // One alone.
    run(&["enable", cgroup.path(), "--pid", &one.pid().to_string()]).expect_success();
    assert!(one.fresh().cgroup(cgroup.path()).is_some());
    assert_eq!(other.fresh().cgroup(cgroup.path()), None);

    let last = start();
    assert!(!stale.exists(), "the next one cleans up");
    for dump in [one, other, last] {
        let socket = socket(dump.pid());
        dump.finish();
        assert!(!socket.exists());
    }
    // Unless another psitrace runs.
    let is_gone = || (!PathBuf::from("/run/psitrace").exists()).then_some(());
    if fs::read_dir("/run/psitrace").map_or(0, Iterator::count) == 0 {
        eventually("the folder has gone", PATIENCE, is_gone);
    }
}

/// Whether someone else on this machine has a psitrace that takes requests.
fn others_run() -> bool {
    let mut sockets = fs::read_dir("/run/psitrace").into_iter().flatten().flatten();
    sockets.any(|socket| UnixStream::connect(socket.path()).is_ok())
}

/// A connection to a running psitrace.
struct Asker {
    stream: UnixStream,
    answers: BufReader<UnixStream>,
}

impl Asker {
    fn new(pid: u32) -> Self {
        let stream = UnixStream::connect(socket(pid)).expect("it listens");
        let answers = BufReader::new(stream.try_clone().expect("a descriptor"));
        Self { stream, answers }
    }

    fn ask(&mut self, request: &str, cgroup: &str) -> serde_json::Value {
        let request = serde_json::json!({ "request": request, "cgroup": cgroup });
        writeln!(self.stream, "{request}").expect("it reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }
}

#[test]
fn top_takes_requests_too() {
    let Some(session) = Session::start("top_takes_requests_too") else {
        return;
    };
    let Some(terminal) = Terminal::new() else {
        return session.skip("tmux is not installed");
    };
    let cgroup = Cgroup::new(session.name());
    let name = &cgroup.path()[1..20];
    let words = program::words(&["top"]);
    let words: Vec<&str> = words.iter().map(|word| word.to_str().expect("UTF-8")).collect();
    terminal.type_line(&words.join(" "));
    terminal.wait_for("the cgroup", |screen| {
        screen.contains("memory:") && screen.contains(name)
    });
    run(&["disable", cgroup.path()]).expect_success();
    terminal.wait_for("no cgroup", |screen| {
        screen.contains("memory:") && !screen.contains(name)
    });
    run(&["enable", cgroup.path()]).expect_success();
    terminal.wait_for("the cgroup again", |screen| screen.contains(name));
    terminal.press(&["q"]);
}
