//! How large the maps are: by what exists, and what was asked for.

use std::fs;

use psi_common::layout::{EXTRA_IDS, MAX_CPUS, MAX_SLOTS};

use super::Options;
use crate::{error::Error, hierarchy::Directory};

/// Slots that a machine gets at least.
const MIN_SLOTS: u32 = 512;
/// Bounds of the table of tasks: 1 MiB to 64 MiB.
const MIN_TASKS: u32 = 1 << 14;
const MAX_TASKS: u32 = 1 << 20;
/// Bounds of the ids that are remembered of cgroups that are not tracked.
const MIN_UNTRACKED: u32 = 4096;
const MAX_UNTRACKED: u32 = 1 << 20;

/// How large the maps are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Possible CPUs.
    pub cpus: u32,
    /// Cgroups with a record of their own.
    pub slots: u32,
    /// Places in the table of tasks, a power of two. A task whose place is taken is kept in task storage, which is
    /// slower: so there are many more than tasks.
    pub tasks: u32,
    /// Cgroups without a record that are remembered by id, where only some are tracked; else 0.
    pub untracked: u32,
}

/// CPUs that the machine may have while it runs.
pub(crate) fn possible_cpus() -> Result<u32, Error> {
    match aya::util::nr_cpus() {
        Ok(cpus) => Ok(cpus as u32),
        Err((path, source)) => Err(Error::File {
            path: path.into(),
            source,
        }),
    }
}

impl Sizes {
    /// For this machine, with these cgroups.
    ///
    /// # Errors
    /// When `options.max_cgroups` is 0 or too large for this many CPUs, or the CPUs cannot be counted.
    pub fn for_machine(existing: &[Directory], options: &Options) -> Result<Self, Error> {
        let cpus = possible_cpus()?.min(MAX_CPUS);
        let twice = |cgroups: usize| (cgroups as u32).saturating_mul(2);
        let (tracked, untracked) = if options.track.is_on() {
            let tracked = options.track.tracked(existing).len();
            (
                tracked,
                twice(existing.len() - tracked).clamp(MIN_UNTRACKED, MAX_UNTRACKED),
            )
        } else {
            (existing.len(), 0)
        };
        let slots = match options.max_cgroups {
            Some(n) if n == 0 || n > MAX_SLOTS || cpus.checked_mul(n).is_none() => return Err(Error::MaxCgroups(n)),
            Some(n) => n,
            None => twice(tracked).clamp(MIN_SLOTS, MAX_SLOTS),
        };
        let tasks = existing_tasks()
            .saturating_mul(8)
            .clamp(MIN_TASKS, MAX_TASKS)
            .min(pid_max());
        Ok(Self {
            cpus,
            slots,
            tasks: tasks.next_power_of_two(),
            untracked,
        })
    }

    /// Bytes that the maps take, by the kernel's own reckoning (`memlock` in a map's fdinfo, since 6.4): a record of 128
    /// bytes for each CPU and slot, 128 for each CPU, 32 a slot and 64 for each place of a task, each of these arrays in
    /// whole pages and with one more; 4 a slot for the stack of free ones; the hash map of ids with 64 an entry, one
    /// entry more for each CPU, and 16 a bucket; and 35 KiB for what is always there.
    pub const fn bytes(self) -> u64 {
        const PAGE: u64 = 4096;
        const FIXED: u64 = 35 << 10;
        const fn array(bytes: u64) -> u64 {
            bytes.next_multiple_of(PAGE) + PAGE
        }
        let (cpus, slots, tasks) = (self.cpus as u64, self.slots as u64, self.tasks as u64);
        let ids = slots + EXTRA_IDS as u64 + self.untracked as u64;
        let hash = (ids + cpus) * 64 + ids.next_power_of_two() * 16;
        let fixed = FIXED + self.ring() as u64 - 4096;
        array(cpus * slots * 128) + array(cpus * 128) + array(slots * 32) + array(tasks * 64) + slots * 4 + hash + fixed
    }

    /// Bytes of the ring that tells of new cgroups.
    pub(super) const fn ring(self) -> u32 {
        if self.untracked == 0 { 4096 } else { 256 << 10 }
    }
}

/// Number of tasks that exist: in the fourth field of /proc/loadavg, after the slash.
fn existing_tasks() -> u32 {
    let loadavg = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let tasks = loadavg
        .split_whitespace()
        .nth(3)
        .and_then(|field| field.split_once('/')?.1.parse().ok());
    tasks.unwrap_or(MIN_TASKS)
}

/// Pids are below this.
fn pid_max() -> u32 {
    let limit = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    limit.trim().parse().unwrap_or(MAX_TASKS)
}
