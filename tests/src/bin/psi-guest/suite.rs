//! Runs the tests one after the other and prints what became of each.

use std::{
    fs,
    panic::{self, AssertUnwindSafe, PanicHookInfo},
    sync::{Mutex, PoisonError},
    time::Instant,
};

use rustix::{
    process::setpriority_process,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};
use serde_json::{Value, json};
use tests::{bpf_ids::Ids, machine};

use crate::{arithmetic, comparison, kernel_log::KernelLog, stay_on, whole};

/// A guest, and what is known of it so far.
#[derive(Debug)]
pub(crate) struct Guest {
    /// Whether the kernel keeps PSI, as the command line has it.
    pub(crate) has_psi: bool,
    /// The disk, whose contents do not matter.
    pub(crate) disk: &'static str,
    pub(crate) log: KernelLog,
    /// What the kernel had loaded at the beginning.
    pub(crate) ids: Ids,
    /// The quality that each run of psitrace gave itself.
    pub(crate) quality: Vec<Value>,
    /// What the test at work has measured.
    rows: Vec<String>,
}

impl Guest {
    /// A line of the results that `cargo xtask vm` collects.
    pub(crate) fn row(&mut self, workload: &str, figure: &str, reference: &str, ours: &str, difference: &str) {
        self.rows.push(format!(
            "row {workload} | {figure} | {reference} | {ours} | {difference}"
        ));
    }

    /// A figure of psitrace and the kernel's own, as `cargo xtask vm --table` collects them.
    pub(crate) fn accuracy(&mut self, workload: &str, comparison: &Value, row: &Value) {
        let uname = rustix::system::uname();
        let figures = json!({
            "kernel": uname.release().to_string_lossy(),
            "cpus": machine::cpus().len(),
            "workload": workload,
            "cgroup": if row["cgroup"] == "/" { "root" } else { "own" },
            "resource": row["resource"],
            "kind": row["kind"],
            "kernel_us": row["kernel_us"],
            "psitrace_us": row["psitrace_us"],
            "seconds": (comparison["interval_ns"].as_f64().unwrap_or_default() / 1e9).round(),
        });
        self.rows.push(format!("ACCURACY {figures}"));
    }

    /// Prints what was missed or repaired in one run, and keeps it for [`whole::quality`].
    pub(crate) fn note_quality(&mut self, quality: &Value) {
        println!("quality {quality}");
        self.quality.push(quality.clone());
    }
}

/// The guest's clock stands still while the emulator does, so a busy host is no excuse: a test has one attempt.
struct Test {
    name: &'static str,
    run: fn(&mut Guest),
}

const fn test(name: &'static str, run: fn(&mut Guest)) -> Test {
    Test { name, run }
}

/// Where the kernel has PSI: it is right.
const WITH_PSI: &[Test] = &[
    test("check", whole::check),
    test("spinners", arithmetic::spinners),
    test("mixed-cgroup", comparison::mixed_cgroup),
    test("mixed-root", comparison::mixed_root),
    test("memory-throttled", comparison::throttled),
    test("memory-swapping", comparison::swapping),
    test("io", comparison::io),
];

/// Where it has none: arithmetic is right.
const WITHOUT_PSI: &[Test] = &[
    test("check", whole::check),
    test("no-psi-files", whole::no_psi_files),
    test("spinners", arithmetic::spinners),
    test("memory-throttled", arithmetic::throttled),
    test("memory-swapping", arithmetic::swapping),
    test("io", arithmetic::io),
];

/// From here on all is slow.
pub(crate) const MANY_CPUS: usize = 16;
/// What many CPUs could change.
const SHORT: &[Test] = &[
    test("check", whole::check),
    test("spinners", arithmetic::spinners),
    test("mixed-root", comparison::mixed_root),
    test("memory-throttled", comparison::throttled),
];

/// What the tests before leave behind: last.
const ALWAYS: &[Test] = &[
    test("quality", whole::quality),
    test("nothing-left", whole::nothing_left),
    test("kernel-log", whole::kernel_log),
];

static WHY: Mutex<String> = Mutex::new(String::new());

/// Returns how many tests failed.
pub(crate) fn run() -> usize {
    panic::set_hook(Box::new(remember));
    let command_line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let mut guest = Guest {
        has_psi: !command_line.split_whitespace().any(|word| word == "psi=0"),
        disk: "/dev/vda",
        log: KernelLog::from_now_on(),
        ids: Ids::of_kernel(),
        quality: Vec::new(),
        rows: Vec::new(),
    };
    let tests = match guest.has_psi {
        true if machine::cpus().len() >= MANY_CPUS => SHORT,
        true => WITH_PSI,
        false => WITHOUT_PSI,
    };
    let mut failed = 0;
    for test in tests.iter().chain(ALWAYS) {
        failed += usize::from(!test.passes(&mut guest));
    }
    failed
}

impl Test {
    /// Runs it and prints the result.
    fn passes(&self, guest: &mut Guest) -> bool {
        let Self { name, run } = self;
        let start = Instant::now();
        guest.rows.clear();
        let has_passed = panic::catch_unwind(AssertUnwindSafe(|| run(guest))).is_ok();
        guest.rows.iter().for_each(|row| println!("{row}"));
        if has_passed {
            println!("ok {name} ({:.0} s)", start.elapsed().as_secs_f64());
        } else {
            println!("FAIL {name}: {}", WHY.lock().unwrap_or_else(PoisonError::into_inner));
        }
        has_passed
    }
}

/// Keeps a panic's message for the line that says that a test failed.
fn remember(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("panic");
    let place = panic
        .location()
        .map(|place| format!(" ({}:{})", place.file(), place.line()))
        .unwrap_or_default();
    *WHY.lock().unwrap_or_else(PoisonError::into_inner) = message.replace('\n', "; ") + &place;
}

/// The CPU that loads of one task are pinned to.
pub(crate) fn load_cpu() -> usize {
    machine::load_cpu()
}

/// Runs `measure`, and what it starts, on one CPU and before all others there.
pub(crate) fn ahead_on<T>(cpu: usize, measure: impl FnOnce() -> T) -> T {
    let before: CpuSet = sched_getaffinity(None).expect("own CPUs");
    stay_on(cpu).expect("the CPU exists");
    setpriority_process(None, -20).expect("root may go first");
    let result = measure();
    setpriority_process(None, 0).expect("everybody may go behind");
    sched_setaffinity(None, &before).expect("these CPUs worked before");
    result
}
