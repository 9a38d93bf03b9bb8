//! What may differ, and why. docs/accuracy.md explains each part and where its number comes from.

use tests::machine;

/// The goal for cpu and io: this share of the kernel's growth, %, or this much, whichever is more.
const PERCENT: f64 = 0.5;
const US: f64 = 5_000.0;
/// Memory, %: stalls of running tasks are seen in reclaim and compaction only where the kernel lets no fentry program in.
const MEMORY_PERCENT: f64 = 1.0;
const PARTIAL_MEMORY_PERCENT: f64 = 5.0;
/// A hidden switch leaves a CPU's counts wrong until its next event, a tick at most, and half of one as a mean.
const MISSED_TICKS: f64 = 0.5;
/// The wakeup at the end of a disk's request is seen this much later than by the kernel, us, and most on a CPU that other
/// tasks want: the sleep reads longer, the wait for the CPU after it shorter.
const REQUEST_US: f64 = 1.0;
/// Any context switch may shift the ends of a wait by this much, us.
const SWITCH_US: f64 = 0.04;

/// What happened on the whole machine during a comparison, as far as it makes figures differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    /// Context switches that the kernel hid from psitrace.
    pub(crate) missed_switches: u64,
    /// All context switches.
    pub(crate) switches: u64,
    /// Requests that all disks finished.
    pub(crate) disk_requests: u64,
    /// Whether psitrace sees all memory stalls.
    pub(crate) has_all_memory_stalls: bool,
}

/// The goal alone, us.
pub(crate) fn goal_us(kernel_us: f64) -> f64 {
    (kernel_us * PERCENT / 100.0).max(US)
}

/// The goal, and what the circumstances excuse, us.
pub(crate) fn allowed_us(resource: &str, kernel_us: f64, skew_us: f64, circumstances: Circumstances) -> f64 {
    let Circumstances {
        missed_switches,
        switches,
        disk_requests,
        has_all_memory_stalls,
    } = circumstances;
    let memory_percent = match (resource, has_all_memory_stalls) {
        ("memory", true) => MEMORY_PERCENT,
        ("memory", false) => PARTIAL_MEMORY_PERCENT,
        _ => 0.0,
    };
    let tick_us = machine::tick().as_micros() as f64;
    goal_us(kernel_us).max(kernel_us * memory_percent / 100.0)
        + skew_us.abs()
        + missed_switches as f64 * tick_us * MISSED_TICKS
        + disk_requests as f64 * REQUEST_US
        + switches as f64 * SWITCH_US
}

/// On a quiet machine hardly anything is excused.
#[test]
fn a_wrong_figure_stays_wrong() {
    let quiet = Circumstances {
        missed_switches: 5,
        switches: 200_000,
        disk_requests: 1_000,
        has_all_memory_stalls: false,
    };
    assert!(allowed_us("cpu", 10e6, 20.0, quiet) < 0.01 * 10e6);
    assert!(allowed_us("io", 0.0, 20.0, quiet) < 25_000.0);
    assert!(allowed_us("memory", 10e6, 20.0, quiet) > 0.04 * 10e6);
}
