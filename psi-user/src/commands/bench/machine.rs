//! The machine that a table was made on.

use std::{fs, thread};

use psi_user::kernel::release;
use serde::Serialize;

/// What the figures depend on.
#[derive(Debug, Serialize)]
pub(super) struct Machine {
    /// CPUs that this process may use.
    pub(super) cpus: usize,
    /// Their name in /proc/cpuinfo; absent where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    /// Release.
    pub(super) kernel: String,
    /// Over the minute before.
    pub(super) load_average: f64,
}

impl Machine {
    pub(super) fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let model = read("/proc/cpuinfo").lines().find_map(|line| {
            line.strip_prefix("model name")?
                .split_once(':')
                .map(|(_, name)| name.trim().to_owned())
        });
        let load = read("/proc/loadavg");
        Self {
            cpus: thread::available_parallelism().map_or(1, usize::from),
            model,
            kernel: release(),
            load_average: load
                .split(' ')
                .next()
                .and_then(|load| load.parse().ok())
                .unwrap_or_default(),
        }
    }

    pub(super) fn line(&self) -> String {
        let Self {
            cpus,
            model,
            kernel,
            load_average,
        } = self;
        let model = model.as_deref().unwrap_or("unknown model");
        format!("{cpus} CPUs ({model}), Linux {kernel}, load average {load_average}")
    }
}

/// What kept threads of this process from running so far, as far as the kernel tells.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Interruptions {
    /// Times that the thread lost its CPU to another task.
    pub(super) preemptions: u64,
    /// Time that the hypervisor took from the machine, in ticks of USER_HZ.
    pub(super) steal_ticks: u64,
    /// Interrupts and softirqs, of the whole machine.
    pub(super) interrupts: u64,
}

impl Interruptions {
    /// Of the calling thread, and of the machine.
    pub(super) fn so_far() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let number = |line: &str, place: usize| {
            stat.lines()
                .find_map(|found| {
                    found
                        .strip_prefix(line)?
                        .split_whitespace()
                        .nth(place)?
                        .parse::<u64>()
                        .ok()
                })
                .unwrap_or_default()
        };
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let preemptions = status
            .lines()
            .find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:")?.trim().parse().ok());
        Self {
            preemptions: preemptions.unwrap_or_default(),
            steal_ticks: number("cpu ", 7),
            interrupts: number("intr ", 0) + number("softirq ", 0),
        }
    }

    pub(super) const fn since(self, before: Self) -> Self {
        Self {
            preemptions: self.preemptions.saturating_sub(before.preemptions),
            steal_ticks: self.steal_ticks.saturating_sub(before.steal_ticks),
            interrupts: self.interrupts.saturating_sub(before.interrupts),
        }
    }
}
