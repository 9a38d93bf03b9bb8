//! What the kernel says about a program beyond what aya reads.

use std::{
    fs,
    os::fd::{AsRawFd as _, BorrowedFd},
};

/// How often the kernel skipped the program because it was running on that CPU already; none where the kernel does
/// not count it (before 5.12).
pub(crate) fn recursion_misses(program: BorrowedFd<'_>) -> Option<u64> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", program.as_raw_fd())).ok()?;
    parse(&info)
}

fn parse(info: &str) -> Option<u64> {
    info.lines()
        .find_map(|line| line.strip_prefix("recursion_misses:")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    #[test]
    fn reads_the_count_of_misses() {
        let info = "pos:\t0\nflags:\t02000002\nprog_type:\t26\nrun_cnt:\t9\nrecursion_misses:\t7\n";
        assert_eq!(super::parse(info), Some(7));
        assert_eq!(super::parse("pos:\t0\n"), None);
    }
}
