//! What the kernel says about a program or a map beyond what aya reads.

use std::{
    fs,
    os::fd::{AsRawFd as _, BorrowedFd},
};

/// How often a program ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRuns {
    /// Its name in the object.
    pub name: String,
    /// Runs while kernel.bpf_stats_enabled was on.
    pub count: u64,
    /// Time of these, ns.
    pub time_ns: u64,
}

/// Whether the kernel counts and times the runs of BPF programs; none when it does not say.
pub fn counts_runs() -> Option<bool> {
    let value = fs::read_to_string("/proc/sys/kernel/bpf_stats_enabled").ok()?;
    Some(value.trim() != "0")
}

/// How often the kernel skipped the program because it was running on that CPU already; none where the kernel does
/// not count it (before 5.12).
pub(crate) fn recursion_misses(program: BorrowedFd<'_>) -> Option<u64> {
    field(&read(program)?, "recursion_misses")
}

/// How often a program ran.
pub(crate) fn runs(name: &str, program: BorrowedFd<'_>) -> Option<ProgramRuns> {
    let info = read(program)?;
    Some(ProgramRuns {
        name: name.to_owned(),
        count: field(&info, "run_cnt")?,
        time_ns: field(&info, "run_time_ns")?,
    })
}

/// What a map takes of the kernel's memory, bytes.
pub(crate) fn map_bytes(map: BorrowedFd<'_>) -> Option<u64> {
    field(&read(map)?, "memlock")
}

fn read(fd: BorrowedFd<'_>) -> Option<String> {
    fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd())).ok()
}

fn field(info: &str, name: &str) -> Option<u64> {
    info.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    #[test]
    fn reads_a_field() {
        let info = "pos:\t0\nflags:\t02000002\nprog_type:\t26\nrun_cnt:\t9\nrecursion_misses:\t7\n";
        assert_eq!(super::field(info, "recursion_misses"), Some(7));
        assert_eq!(super::field(info, "run"), None);
        assert_eq!(super::field("pos:\t0\n", "recursion_misses"), None);
    }
}
