//! The bins of the kernel's rstat series ("cgroup/rstat: Reduce cpu_lock hold time in cgroup_rstat_flush_locked()",
//! 2023), for how long something was held or waited for.

/// Number of bins.
pub const BINS: usize = 14;

/// What the bins are called, in us.
pub const NAMES: [&str; BINS] = [
    "0-1", "1-5", "5-10", "10-15", "15-20", "20-25", "25-30", "30-40", "40-50", "50-60", "60-70", "70-80", "80-90",
    ">90",
];

/// The bin of a time in ns. Without a table: the BPF programs would have to look that up.
#[inline(always)]
pub const fn bin(ns: u64) -> usize {
    let us = ns / 1000;
    match us {
        0 => 0,
        1..5 => 1,
        5..30 => (us / 5 + 1) as usize,
        30..90 => (us / 10 + 4) as usize,
        _ => BINS - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_where_the_names_say() {
        for (n, name) in NAMES.iter().enumerate() {
            let Some((from, to)) = name.split_once('-') else {
                assert_eq!((*name, n), (">90", BINS - 1));
                continue;
            };
            let us = |text: &str| text.parse::<u64>().expect("a number");
            assert_eq!(bin(us(from) * 1000), n, "the start of {name}");
            assert_eq!(bin(us(to) * 1000 - 1), n, "the end of {name}");
        }
        assert_eq!(bin(90_000), BINS - 1);
        assert_eq!(bin(u64::MAX), BINS - 1);
    }
}
