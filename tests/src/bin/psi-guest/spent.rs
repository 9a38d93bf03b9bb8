//! How a task spends its time, by the scheduler's own account and not PSI's.

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::param::clock_ticks_per_second;

/// A task's times up to one moment, or between two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    /// All of it.
    pub(crate) elapsed: Duration,
    /// Runnable, but not running.
    pub(crate) waiting: Duration,
    /// Neither running nor runnable.
    pub(crate) asleep: Duration,
    /// Running its own code.
    pub(crate) in_user_space: Duration,
    /// How often it began to run.
    pub(crate) runs: u64,
}

/// A task's clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    at: Instant,
    running: Duration,
    waiting: Duration,
    in_user_space: Duration,
    runs: u64,
}

impl Clocks {
    /// Of a process's newest thread: the one that works, where the first only waits for it.
    pub(crate) fn of(pid: u32) -> Self {
        let tasks = format!("/proc/{pid}/task");
        let ids = fs::read_dir(&tasks).expect("the process runs").flatten();
        let newest = ids
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
            .max()
            .expect("a thread");

        let schedstat = fs::read_to_string(format!("{tasks}/{newest}/schedstat")).expect("the thread runs");
        let mut numbers = schedstat
            .split_whitespace()
            .map(|number| number.parse::<u64>().expect("a number"));
        let mut next = || numbers.next().expect("running and waiting time, and how often it ran");
        let (running, waiting) = (Duration::from_nanos(next()), Duration::from_nanos(next()));
        let runs = next();

        let stat = fs::read_to_string(format!("{tasks}/{newest}/stat")).expect("the thread runs");
        // The name, in parentheses, may hold anything; utime is the 12th field after it.
        let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
        let ticks: u64 = fields
            .split(' ')
            .nth(11)
            .and_then(|ticks| ticks.parse().ok())
            .expect("ticks");
        let in_user_space = Duration::from_millis(ticks * 1000 / clock_ticks_per_second());
        Self {
            at: Instant::now(),
            running,
            waiting,
            in_user_space,
            runs,
        }
    }

    /// What passed until `later`.
    pub(crate) fn until(self, later: Self) -> Spent {
        let elapsed = later.at - self.at;
        let waiting = later.waiting.saturating_sub(self.waiting);
        let running = later.running.saturating_sub(self.running);
        Spent {
            elapsed,
            waiting,
            asleep: elapsed.saturating_sub(running).saturating_sub(waiting),
            in_user_space: later.in_user_space.saturating_sub(self.in_user_space),
            runs: later.runs.saturating_sub(self.runs),
        }
    }
}
