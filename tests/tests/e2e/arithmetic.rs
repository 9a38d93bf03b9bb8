//! Pressure as arithmetic says it must be.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use tests::{cgroup::Cgroup, load::Working, machine, record::Share, running::Dump, session::Session};

use crate::load;

/// Three processes share one CPU: two of them in the cgroup `two`, one in `one`, both cgroups in `outer`. No other CPU
/// counts, for the groups are idle there and the kernel weighs CPUs by the time that a group is not idle.
///
/// The processes take turns, so at any time one runs and two wait:
/// - `outer`: somebody always waits, some = 100 %; somebody always runs, full = 0.
/// - `two`: only one can run, so at least one always waits, some = 100 %; while `one`'s runs both wait, full = 1/3.
/// - `one`: some = full = the time when its only process waits, 2/3.
///
/// Whatever else runs on that CPU, however little, makes all three wait. So the exact expectation is made of the CPU time
/// that the processes had, t1 and t2 in `two` and t3 in `one`, as shares of the time that passed:
/// full of `two` = 1 - t1 - t2, some and full of `one` = 1 - t3, full of `outer` = 1 - t1 - t2 - t3.
#[test]
fn three_processes_on_one_cpu() {
    let Some(session) = Session::start("three_processes_on_one_cpu") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let (two, one) = (outer.child("two"), outer.child("one"));
    let processes = [&two, &two, &one].map(|cgroup| load().within(cgroup).alone().start(&["spin"]));

    let mut dump = Dump::start(&["--interval", "500ms", "--cgroup", &outer.glob()]);
    let before = dump.record();
    let (start, had_before) = (Instant::now(), cpu_times(&processes));
    assert_eq!(
        before.paths(),
        [outer.path(), one.path(), two.path()],
        "what the pattern names"
    );
    let mut after = before.clone();
    while after.at_ns - before.at_ns < 6_000_000_000 {
        after = dump.record();
    }
    let (elapsed, had) = (start.elapsed(), cpu_times(&processes));
    let [t1, t2, t3] = [0, 1, 2].map(|n| (had[n] - had_before[n]) * 100.0 / elapsed.as_secs_f64());

    let alone = t1 + t2 + t3 > 95.0;
    if !alone {
        println!("others took much of the CPU: thirds are not to be expected");
    }
    for (cgroup, figure, by_time, thirds) in [
        (&outer, "cpu some", 100.0, 100.0),
        (&outer, "cpu full", 100.0 - t1 - t2 - t3, 0.0),
        (&two, "cpu some", 100.0, 100.0),
        (&two, "cpu full", 100.0 - t1 - t2, 33.3),
        (&one, "cpu some", 100.0 - t3, 66.7),
        (&one, "cpu full", 100.0 - t3, 66.7),
    ] {
        before.expect(&after, cgroup, figure, Share::about(by_time, 4.0));
        if alone {
            before.expect(&after, cgroup, figure, Share::about(thirds, 10.0));
        }
    }
}

/// The weights of CPUs are not linear: over all of the 6 s each CPU has half of the weight and pressure for half of the
/// time, which makes 50 %. The kernel sums up every 2 s, and only what falls into the time of the move counts half: at
/// least 5 s remain. A long interval must not change that, and its averages are those of its end.
#[test]
fn long_intervals_are_summed_up_in_parts() {
    let Some(session) = Session::start("long_intervals_are_summed_up_in_parts") else {
        return;
    };
    let cpus = machine::cpus();
    let [other, .., cpu] = cpus[..] else {
        return session.skip("there is only one CPU");
    };
    assert_eq!(cpu, machine::load_cpu());
    let cgroup = Cgroup::new(session.name());
    let processes = [0; 2].map(|_| load().within(&cgroup).alone().start(&["spin"]));
    let mut dump = Dump::start(&["--interval", "6s", "--cgroup", cgroup.path()]);
    dump.wait_until_ready();
    sleep(Duration::from_secs(3));
    for process in &processes {
        machine::pin(process.pid(), other);
    }
    let record = dump.record();
    let share = record.total_us(cgroup.path(), "cpu", "some") * 100_000.0 / record.at_ns as f64;
    assert!(
        (75.0..=100.1).contains(&share),
        "expected 83 to 100 % cpu some, saw {share:.1} %"
    );
    let pressure = &record.json["cgroups"][0]["cpu"]["some"];
    let avg10 = pressure["avg10"].as_f64().expect("averages are numbers");
    // 1 - exp(-6 / 10) = 45 % of it; 4 s of the 6 may be what has been averaged.
    assert!(
        (25.0..=60.0).contains(&avg10),
        "expected an avg10 of about 40 %, saw {pressure}"
    );
}

/// CPU time that each has had, s.
fn cpu_times(processes: &[Working]) -> Vec<f64> {
    processes
        .iter()
        .map(|process| machine::cpu_time(process.pid()).as_secs_f64())
        .collect()
}
