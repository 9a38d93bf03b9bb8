//! psitrace beside the guest kernel's own PSI.

use std::{
    fs,
    process::{Command, Stdio},
};

use tests::{
    cgroup::Cgroup,
    load::{Load, Working},
    machine,
    program::{self, Finished},
};

use crate::{
    PSI_GUEST, PSI_LOAD,
    spent::Clocks,
    suite::{Guest, MANY_CPUS, ahead_on, load_cpu},
};

/// What may differ: us, or % of the kernel's growth, whichever is more.
const US: f64 = 10_000.0;
const CPU_PERCENT: f64 = 2.0;
const MEMORY_PERCENT: f64 = 1.0;
const IO_PERCENT: f64 = 2.0;

/// Or us for each time that the load began to run, for cpu and io: the hook of a wakeup comes after PSI's own look at the clock.
/// That is 1,000 instructions of the guest, see `-icount` in xtask; measured are 250 to 450. The hooks of memory stalls come
/// before it.
const US_A_RUN: f64 = 2.0;

/// What the figures that a load is made for must grow by in 8 s, to have something to compare. What a read takes, beside what
/// it costs, is the host's business: seconds as a rule, half a second where the emulator hardly ran.
const LEAST_US: f64 = 1_000_000.0;
const LEAST_IO_US: f64 = 40_000.0;

/// Memory that a cgroup may have, and what its load wants. All pages are charged, none is all zeros.
const MEMORY_HIGH: &str = "64M";
const WANTED_MIB: &str = "200";

/// Computing and waking each other all over the CPUs; of many CPUs on two only, for the emulator runs one at a time, and
/// each that is busy takes its time from all others.
fn mixed(cgroup: &Cgroup) -> Vec<Working> {
    let load = || Load::new(PSI_LOAD).within(cgroup);
    let spin = |load: Load| load.start(&["spin"]);
    let ping_pong = |load: Load| load.start(&["ping-pong", "--pairs", "2"]);
    let cpu = load_cpu();
    if machine::cpus().len() < MANY_CPUS {
        vec![spin(load()), spin(load()), spin(load()), ping_pong(load())]
    } else {
        vec![
            spin(load().on_cpu(cpu)),
            spin(load().on_cpu(cpu)),
            ping_pong(load().on_cpu(cpu - 1)),
        ]
    }
}

pub(crate) fn mixed_cgroup(guest: &mut Guest) {
    let cgroup = Cgroup::new("mixed");
    let _loads = mixed(&cgroup);
    compare(guest, "mixed", cgroup.path(), None, &[("cpu", "some")]);
}

pub(crate) fn mixed_root(guest: &mut Guest) {
    let cgroup = Cgroup::new("mixed");
    let _loads = mixed(&cgroup);
    compare(guest, "mixed, root", "/", None, &[("cpu", "some")]);
}

/// A cgroup with too little memory, and its load.
pub(crate) fn too_little_memory(name: &str, swap: &str) -> (Working, Cgroup) {
    // So that cgroups have the files.
    let root = machine::v2_mount().expect("cgroups are mounted");
    fs::write(root.join("cgroup.subtree_control"), "+memory").expect("the memory controller is here");
    let cgroup = Cgroup::new(name);
    for (file, value) in [("memory.high", MEMORY_HIGH), ("memory.swap.max", swap)] {
        fs::write(cgroup.dir().join(file), value).unwrap_or_else(|error| panic!("setting {file}: {error}"));
    }
    let load = Load::new(PSI_GUEST)
        .within(&cgroup)
        .on_cpu(load_cpu())
        .start(&["touch", WANTED_MIB]);
    (load, cgroup)
}

/// A load that reads from the disk.
pub(crate) fn reading(guest: &Guest, name: &str) -> (Working, Cgroup) {
    let cgroup = Cgroup::new(name);
    let load = Load::new(PSI_LOAD).within(&cgroup).on_cpu(load_cpu());
    (load.start_on(&["read"], guest.disk.as_ref()), cgroup)
}

/// Without swap nothing can be reclaimed: the kernel makes the load wait.
pub(crate) fn throttled(guest: &mut Guest) {
    let (load, cgroup) = too_little_memory("throttled", "0");
    compare(
        guest,
        "memory.high, no swap",
        cgroup.path(),
        Some(&load),
        &[("memory", "some"), ("memory", "full")],
    );
}

/// With swap the kernel reclaims, writes and reads.
pub(crate) fn swapping(guest: &mut Guest) {
    let (load, cgroup) = too_little_memory("swapping", "max");
    compare(
        guest,
        "memory.high, swap",
        cgroup.path(),
        Some(&load),
        &[("memory", "some"), ("memory", "full")],
    );
}

pub(crate) fn io(guest: &mut Guest) {
    let (load, cgroup) = reading(guest, "io");
    let made_for = [("io", "some"), ("io", "full")];
    compare(guest, "direct reads", cgroup.path(), Some(&load), &made_for);
}

/// Runs `psitrace compare` and takes a look at each figure; those that the load is made for must have grown. A single
/// load's runs are taken into account.
fn compare(guest: &mut Guest, workload: &str, cgroup: &str, load: Option<&Working>, made_for: &[(&str, &str)]) {
    let clocks = || load.map(|load| Clocks::of(load.pid()));
    let before = clocks();
    let finished = beside_load(&["compare", "--json", "--duration", "8s", "--cgroup", cgroup]);
    // A little more than in the interval.
    let runs = before
        .zip(clocks())
        .map_or(0, |(before, after)| before.until(after).runs);
    println!("{workload}: the load began to run {runs} times");
    let comparison = finished.expect_success().json();
    guest.note_quality(&comparison["quality"]);

    let mut wrong = Vec::new();
    for figures in comparison["rows"].as_array().expect("rows") {
        let name = |key| figures[key].as_str().expect("a name");
        let number = |key| {
            figures[key]
                .as_f64()
                .unwrap_or_else(|| panic!("expected {key}, saw {figures}"))
        };
        let (resource, kind) = (name("resource"), name("kind"));
        let (kernel, ours, difference) = (number("kernel_us"), number("psitrace_us"), number("difference_us"));
        let allowed = allowed_us(resource, kernel, runs);
        let ms = |us: f64| format!("{:.1} ms", us / 1000.0);
        let difference_percent = if kernel > 0.0 { difference * 100.0 / kernel } else { 0.0 };
        let figure = format!("{resource} {kind}");
        if kernel > 0.0 || ours > 0.0 {
            guest.accuracy(workload, &comparison, figures);
            guest.row(
                workload,
                &figure,
                &ms(kernel),
                &ms(ours),
                &format!("{} {difference_percent:+.2} %", ms(difference)),
            );
        }
        if difference.abs() > allowed {
            let (kernel, ours, allowed) = (ms(kernel), ms(ours), ms(allowed));
            wrong.push(format!(
                "{figure}: expected {kernel} +- {allowed} as the kernel, saw {ours}"
            ));
        }
        let least = if resource == "io" { LEAST_IO_US } else { LEAST_US };
        if made_for.contains(&(resource, kind)) && kernel < least {
            wrong.push(format!(
                "{figure}: expected pressure from this load, saw {}",
                ms(kernel)
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("; "));
}

/// What psitrace may differ by from `kernel_us`, us, beside a load that began to run so often.
fn allowed_us(resource: &str, kernel_us: f64, runs: u64) -> f64 {
    let for_runs = runs as f64 * US_A_RUN;
    let (percent, for_runs) = match resource {
        "cpu" => (CPU_PERCENT, for_runs),
        "memory" => (MEMORY_PERCENT, 0.0),
        _ => (IO_PERCENT, for_runs),
    };
    (kernel_us * percent / 100.0).max(US).max(for_runs)
}

/// Runs psitrace on the load's CPU. The emulator runs one CPU at a time: on another one psitrace could be stopped between
/// its readings, which then are of different times.
fn beside_load(arguments: &[&str]) -> Finished {
    let words = program::words(arguments);
    let (program, arguments) = words.split_first().expect("at least the program");
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    let output = ahead_on(load_cpu(), || command.output());
    output.map(Finished::from).expect("psitrace starts")
}

// Not `tests`: that is the library.
#[cfg(test)]
mod bounds {
    use super::*;

    #[test]
    fn memory_may_differ_by_a_percent_or_10_ms() {
        for (kernel_us, expected) in [(0.0, 10_000.0), (500_000.0, 10_000.0), (8_000_000.0, 80_000.0)] {
            let allowed = allowed_us("memory", kernel_us, 1_000_000);
            assert!((allowed - expected).abs() < 1.0, "{kernel_us}: saw {allowed}");
        }
    }

    #[test]
    fn short_waits_may_differ_by_the_lateness_of_each() {
        let allowed = allowed_us("cpu", 200_000.0, 20_000);
        assert!((allowed - 40_000.0).abs() < 1.0, "saw {allowed}");
        let allowed = allowed_us("io", 4_000_000.0, 20_000);
        assert!((allowed - 80_000.0).abs() < 1.0, "saw {allowed}");
    }
}
