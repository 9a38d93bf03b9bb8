//! `psitrace rstat`: how long the kernel's own rstat lock is held and waited for.

use std::{process::ExitCode, time::Duration};

use psi_user::{
    flush::HoldTimes,
    rstat::{LockTimes, Rstat},
};
use serde::Serialize;
use tokio::time::{Instant, sleep_until};

use super::{
    Failure, Signals, block_on, give_up_capabilities,
    holds::{Column, table, thousands},
    next_time, print_report,
};
use crate::cli::RstatArgs;

#[derive(Debug, Serialize)]
struct Record {
    schema: &'static str,
    /// Since the programs were attached; all counts are since then.
    duration_ns: u64,
    locks: Vec<Lock>,
}

#[derive(Debug, Serialize)]
struct Lock {
    name: &'static str,
    hold_us: HoldTimes,
    longest_hold_ns: u64,
    wait_us: HoldTimes,
    longest_wait_ns: u64,
    lost_waits: u64,
}

pub(crate) fn run(args: &RstatArgs) -> Result<ExitCode, Failure> {
    let rstat = Rstat::attach()?;
    give_up_capabilities()?;
    block_on(async {
        let mut signals = Signals::new().map_err(|error| Failure::Cannot(format!("waiting for signals: {error}")))?;
        let start = Instant::now();
        let end = args.duration.map(|duration| start + duration);
        let mut last = start;
        loop {
            last = next_time(last, args.interval);
            last = end.map_or(last, |end| last.min(end));
            let signalled = tokio::select! {
                biased;
                () = signals.received() => true,
                () = sleep_until(last) => false,
            };
            let has_reader = print_report(&record(&rstat.times(), start.elapsed()), args.json, lines)?;
            if !has_reader || signalled || end == Some(last) {
                return Ok(ExitCode::SUCCESS);
            }
        }
    })
}

fn record(times: &[LockTimes], duration: Duration) -> Record {
    let lock = |times: &LockTimes| Lock {
        name: times.name,
        hold_us: times.holds,
        longest_hold_ns: times.holds.longest_ns,
        wait_us: times.waits,
        longest_wait_ns: times.waits.longest_ns,
        lost_waits: times.lost_waits,
    };
    Record {
        schema: "psitrace-rstat/1",
        duration_ns: duration.as_nanos() as u64,
        locks: times.iter().map(lock).collect(),
    }
}

fn lines(record: &Record) -> String {
    use std::fmt::Write as _;
    let Record { locks, duration_ns, .. } = record;
    let names: Vec<[String; 2]> = locks
        .iter()
        .map(|lock| [format!("{} held", lock.name), format!("{} waited", lock.name)])
        .collect();
    let columns: Vec<Column<'_>> = locks
        .iter()
        .zip(&names)
        .flat_map(|(lock, [held, waited])| [Column::new(held, &lock.hold_us), Column::new(waited, &lock.wait_us)])
        .collect();
    let mut text = table("rstat", &columns);
    for lock in locks {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{}: longest hold {} ns, longest wait {} ns, {} waits not timed; {:.1} s",
            lock.name,
            thousands(lock.longest_hold_ns),
            thousands(lock.longest_wait_ns),
            thousands(lock.lost_waits),
            *duration_ns as f64 / 1e9
        );
    }
    text.push('\n');
    text
}
