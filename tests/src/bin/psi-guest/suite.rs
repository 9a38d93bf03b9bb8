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
use serde_json::Value;
use tests::bpf_ids::Ids;

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
}

impl Guest {
    /// Prints what was missed or repaired in one run, and keeps it for [`whole::quality`].
    pub(crate) fn note_quality(&mut self, quality: &Value) {
        println!("quality {quality}");
        self.quality.push(quality.clone());
    }
}

type Test = (&'static str, fn(&mut Guest));

/// Where the kernel has PSI: it is right.
const WITH_PSI: &[Test] = &[
    ("check", whole::check),
    ("spinners", arithmetic::spinners),
    ("mixed-cgroup", comparison::mixed_cgroup),
    ("mixed-root", comparison::mixed_root),
    ("memory-throttled", comparison::throttled),
    ("memory-swapping", comparison::swapping),
    ("io", comparison::io),
];

/// Where it has none: arithmetic is right.
const WITHOUT_PSI: &[Test] = &[
    ("check", whole::check),
    ("no-psi-files", whole::no_psi_files),
    ("spinners", arithmetic::spinners),
    ("memory-throttled", arithmetic::throttled),
    ("memory-swapping", arithmetic::swapping),
    ("io", arithmetic::io),
];

/// What many CPUs could change.
const SHORT: &[Test] = &[
    ("check", whole::check),
    ("spinners", arithmetic::spinners),
    ("mixed-root", comparison::mixed_root),
];

/// What the tests before leave behind: last.
const ALWAYS: &[Test] = &[
    ("quality", whole::quality),
    ("nothing-left", whole::nothing_left),
    ("kernel-log", whole::kernel_log),
];

static WHY: Mutex<String> = Mutex::new(String::new());

/// Returns how many tests failed.
pub(crate) fn run() -> usize {
    panic::set_hook(Box::new(remember));
    let command_line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let has = |word| command_line.split_whitespace().any(|other| other == word);
    let mut guest = Guest {
        has_psi: !has("psi=0"),
        disk: "/dev/nvme0n1",
        log: KernelLog::from_now_on(),
        ids: Ids::of_kernel(),
        quality: Vec::new(),
    };
    let tests = match guest.has_psi {
        true if has("psi_guest.short") => SHORT,
        true => WITH_PSI,
        false => WITHOUT_PSI,
    };
    let (mut passed, mut failed) = (0, 0);
    for (name, test) in tests.iter().chain(ALWAYS) {
        let start = Instant::now();
        if panic::catch_unwind(AssertUnwindSafe(|| test(&mut guest))).is_ok() {
            println!("ok {name} ({:.0} s)", start.elapsed().as_secs_f64());
            passed += 1;
        } else {
            println!("FAIL {name}: {}", WHY.lock().unwrap_or_else(PoisonError::into_inner));
            failed += 1;
        }
    }
    println!("psi-guest: {passed} ok, {failed} failed");
    failed
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

/// A line of the results that `cargo xtask vm` collects.
pub(crate) fn row(workload: &str, figure: &str, reference: &str, ours: &str, difference: &str) {
    println!("row {workload} | {figure} | {reference} | {ours} | {difference}");
}

/// The CPU that loads of one task are pinned to.
pub(crate) fn load_cpu() -> usize {
    tests::machine::load_cpu()
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
