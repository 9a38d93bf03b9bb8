//! What the machine has: CPUs, cgroup mounts, the kernel's own PSI.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    process::Pid,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
    time::{ClockId, clock_getres},
};

/// The CPUs that this process may use.
pub fn cpus() -> Vec<usize> {
    let set = sched_getaffinity(None).expect("own CPUs");
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// The CPU that loads are pinned to: the last one, as interrupts like the first.
pub fn load_cpu() -> usize {
    *cpus().last().expect("at least one CPU")
}

/// Sends the first thread of a process to a CPU.
pub fn pin(pid: u32, cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(Pid::from_raw(pid.cast_signed()), &set).expect("the process can be pinned");
}

/// Niceness of loads that are to have their CPU for themselves; with one CPU everything else would starve.
pub fn load_nice() -> i32 {
    if cpus().len() > 1 { -20 } else { 0 }
}

/// Where the unified hierarchy is mounted.
pub fn v2_mount() -> Option<PathBuf> {
    mounts()
        .into_iter()
        .find(|mount| mount.kind == "cgroup2")
        .map(|mount| mount.point)
}

/// Where a v1 controller's hierarchy is mounted.
pub fn v1_mount(controller: &str) -> Option<PathBuf> {
    let has = |options: &str| options.split(',').any(|option| option == controller);
    mounts()
        .into_iter()
        .find(|mount| mount.kind == "cgroup" && has(&mount.options))
        .map(|mount| mount.point)
}

/// The kernel's release.
pub fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease")
        .expect("/proc is mounted")
        .trim()
        .to_owned()
}

/// Time between two of the scheduler's ticks.
pub fn tick() -> Duration {
    let tick = clock_getres(ClockId::MonotonicCoarse);
    Duration::from_nanos(tick.tv_nsec.unsigned_abs())
}

/// Context switches of all CPUs since boot.
pub fn context_switches() -> u64 {
    let stat = fs::read_to_string("/proc/stat").expect("/proc is mounted");
    stat.lines()
        .find_map(|line| line.strip_prefix("ctxt ")?.parse().ok())
        .expect("a count of context switches")
}

/// Requests that all disks have finished since boot: reads, writes and flushes.
pub fn disk_requests() -> u64 {
    let disks = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    disks
        .filter_map(|disk| fs::read_to_string(disk.path().join("stat")).ok())
        .map(|stat| {
            let fields: Vec<u64> = stat.split_whitespace().flat_map(str::parse).collect();
            // Older kernels do not count flushes.
            [0, 4, 15].into_iter().filter_map(|n| fields.get(n)).sum::<u64>()
        })
        .sum()
}

/// Whether the kernel keeps PSI for cgroups itself.
pub fn has_kernel_psi() -> bool {
    v2_mount().is_some_and(|mount| fs::read(mount.join("cpu.pressure")).is_ok())
}

/// All cgroups below a mount, as paths from its root; the root is `/`.
pub fn cgroup_paths(mount: &Path) -> Vec<String> {
    let mut paths = vec!["/".to_owned()];
    let mut next = 0;
    while let Some(parent) = paths.get(next).cloned() {
        next += 1;
        // What vanishes meanwhile has no children.
        let entries = fs::read_dir(mount.join(parent.trim_start_matches('/')))
            .into_iter()
            .flatten()
            .flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            paths.push(format!(
                "{}/{}",
                parent.trim_end_matches('/'),
                entry.file_name().to_string_lossy()
            ));
        }
    }
    paths
}

/// Threads of a process.
pub fn threads(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("the process runs");
    threads
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// CPU time that a process has had, all its threads together.
pub fn cpu_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process runs");
    // The name, in parentheses, may hold anything; utime and stime are the 12th and 13th field after it.
    let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
    let ticks: u64 = fields
        .split(' ')
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u64>().expect("ticks"))
        .sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
}

struct Mount {
    point: PathBuf,
    kind: String,
    options: String,
}

fn mounts() -> Vec<Mount> {
    let text = fs::read_to_string("/proc/self/mountinfo").expect("/proc is mounted");
    text.lines().filter_map(mount).collect()
}

fn mount(line: &str) -> Option<Mount> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let mount: Vec<&str> = mount.split(' ').collect();
    let filesystem: Vec<&str> = filesystem.split(' ').collect();
    // A mount of a part of the hierarchy does not show the rest.
    (*mount.get(3)? == "/").then_some(())?;
    Some(Mount {
        point: mount.get(4)?.into(),
        kind: (*filesystem.first()?).to_owned(),
        options: (*filesystem.get(2)?).to_owned(),
    })
}
