//! The program as a whole: that it can run, what it says of itself, and what it leaves behind.

use std::{fs, path::Path};

use rustix::process::Signal;
use serde_json::Value;
use tests::{PATIENCE, bpf_ids::Ids, eventually, program, record::MOST_REJECTED_READINGS, running::Dump};

use crate::suite::Guest;

/// Programs whose size, as the verifier sees it, is watched: its limit is a million instructions.
const WATCHED: [&str; 5] = [
    "sched_switch",
    "sched_wakeup",
    "sched_migrate_task",
    "walk_tasks",
    "psi_memstall_enter",
];

/// All required programs load, and memory stalls come from the best source.
pub(crate) fn check(guest: &mut Guest) {
    let finished = program::run(&["check", "--json"]);
    let report: Value = serde_json::from_str(&finished.stdout).unwrap_or_else(|error| {
        panic!(
            "expected JSON, saw {error}: {:?}; messages: {}",
            finished.stdout, finished.stderr
        );
    });
    let programs = report["programs"].as_array().expect("programs");
    for name in WATCHED {
        let program = programs.iter().find(|program| program["name"] == name);
        let instructions = program.map_or(&Value::Null, |program| &program["verified_instructions"]);
        guest.row(
            "check",
            name,
            "1000000",
            &instructions.to_string(),
            "instructions verified",
        );
    }
    let left_out = programs.iter().filter(|program| program["loadable"] != true);
    let (required, optional): (Vec<_>, Vec<_>) = left_out.partition(|program| program["required"] == true);
    for program in optional {
        println!("left out: {}: {}", program["name"], program["reason"]);
    }
    finished.expect_success();
    assert!(
        required.is_empty() && report["ok"] == true,
        "expected that all load, saw {}: {required:?}",
        report["problems"]
    );
    assert_eq!(report["memstall"], "fentry", "source of memory stalls");
    let psi = if guest.has_psi { "on" } else { "off" };
    assert_eq!(report["psi"], psi, "the kernel's PSI");
}

/// With psi=0 the kernel has no pressure files, and psitrace says that there is nothing to compare with.
pub(crate) fn no_psi_files(_: &mut Guest) {
    assert!(!Path::new("/proc/pressure").exists(), "expected no /proc/pressure");
    let cgroup = fs::read_dir("/sys/fs/cgroup").expect("cgroups are mounted").flatten();
    let pressure: Vec<_> = cgroup
        .map(|entry| entry.file_name())
        .filter(|name| name.to_str().is_some_and(|name| name.ends_with(".pressure")))
        .collect();
    assert!(pressure.is_empty(), "expected no pressure files, saw {pressure:?}");
    let message = program::run(&["compare", "--duration", "1s"])
        .expect_failure(1)
        .to_owned();
    assert!(
        message.contains("the kernel keeps no PSI"),
        "expected the reason, saw {message:?}"
    );
}

/// Nothing was missed, guessed or repaired in any run.
pub(crate) fn quality(guest: &mut Guest) {
    assert!(!guest.quality.is_empty(), "expected that psitrace ran");
    let mut worst: Vec<(&String, u64)> = Vec::new();
    for (name, value) in guest.quality.iter().filter_map(Value::as_object).flatten() {
        let value = value
            .as_u64()
            .unwrap_or_else(|| panic!("expected a number, saw {name}: {value}"));
        match worst.iter_mut().find(|(other, _)| *other == name) {
            Some((_, most)) => *most = value.max(*most),
            None => worst.push((name, value)),
        }
    }
    let summary: Vec<_> = worst.iter().map(|(name, value)| format!("{name} {value}")).collect();
    println!(
        "quality, the worst of {} runs: {}",
        guest.quality.len(),
        summary.join(", ")
    );
    let most = |name: &str| match name {
        "rejected_readings" => MOST_REJECTED_READINGS,
        _ => 0,
    };
    let bad: Vec<_> = worst.into_iter().filter(|(name, value)| *value > most(name)).collect();
    assert!(
        bad.is_empty(),
        "expected zeros, and at most {MOST_REJECTED_READINGS} rejected readings, saw {bad:?}"
    );
}

/// However psitrace ends, the kernel keeps nothing of it.
pub(crate) fn nothing_left(guest: &mut Guest) {
    for signal in [Signal::INT, Signal::KILL] {
        let mut dump = Dump::start(&["--interval", "100ms"]);
        dump.record();
        let ids = Ids::of_process(dump.pid());
        assert!(
            !ids.programs.is_empty() && !ids.links.is_empty(),
            "expected programs and links, saw {ids:?}"
        );
        if signal == Signal::INT {
            dump.finish();
        } else {
            dump.signal(signal);
            dump.wait();
        }
        // The kernel frees them some time after the last file is closed.
        let left = || guest.ids == Ids::of_kernel();
        eventually("the kernel has what it had before", PATIENCE, || left().then_some(()));
    }
}

/// The kernel did not mind.
pub(crate) fn kernel_log(guest: &mut Guest) {
    let complaints = guest.log.complaints();
    assert!(
        complaints.is_empty(),
        "expected no errors and no warnings, saw {complaints:?}"
    );
}
