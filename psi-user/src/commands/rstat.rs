//! `psitrace rstat`: how long the kernel's own rstat lock is held and waited for.

use std::{io, process::ExitCode, time::Duration};

use psi_user::{
    flush::HoldTimes,
    rstat::{LockTimes, Rstat},
};
use serde::Serialize;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::{Instant, sleep_until},
};

use super::{
    Failure, block_on, give_up_capabilities,
    holds::{Column, table, thousands},
    next_time,
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
        let listen = |kind| signal(kind).map_err(|error| Failure::Cannot(format!("waiting for signals: {error}")));
        let mut interrupt = listen(SignalKind::interrupt())?;
        let mut terminate = listen(SignalKind::terminate())?;
        let mut hangup = listen(SignalKind::hangup())?;
        let start = Instant::now();
        let end = args.duration.map(|duration| start + duration);
        let mut last = start;
        loop {
            last = next_time(last, args.interval);
            last = end.map_or(last, |end| last.min(end));
            let signalled = tokio::select! {
                biased;
                _ = interrupt.recv() => true,
                _ = terminate.recv() => true,
                _ = hangup.recv() => true,
                () = sleep_until(last) => false,
            };
            if !write(&render(&rstat.times(), start.elapsed(), args.json))? || signalled || end == Some(last) {
                return Ok(ExitCode::SUCCESS);
            }
        }
    })
}

/// Says whether there is still a reader.
fn write(text: &str) -> Result<bool, Failure> {
    use io::Write as _;
    let mut output = io::stdout();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::Usage(format!("cannot write standard output: {error}"))),
    }
}

fn render(times: &[LockTimes], duration: Duration, json: bool) -> String {
    use std::fmt::Write as _;
    if json {
        let lock = |times: &LockTimes| Lock {
            name: times.name,
            hold_us: times.holds,
            longest_hold_ns: times.holds.longest_ns,
            wait_us: times.waits,
            longest_wait_ns: times.waits.longest_ns,
            lost_waits: times.lost_waits,
        };
        let record = Record {
            schema: "psitrace-rstat/1",
            duration_ns: duration.as_nanos() as u64,
            locks: times.iter().map(lock).collect(),
        };
        return serde_json::to_string(&record).unwrap_or_default() + "\n";
    }
    let names: Vec<[String; 2]> = times
        .iter()
        .map(|lock| [format!("{} held", lock.name), format!("{} waited", lock.name)])
        .collect();
    let columns: Vec<Column<'_>> = times
        .iter()
        .zip(&names)
        .flat_map(|(lock, [held, waited])| [Column::new(held, &lock.holds), Column::new(waited, &lock.waits)])
        .collect();
    let mut text = table("rstat", &columns);
    for lock in times {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{}: longest hold {} ns, longest wait {} ns, {} waits not timed; {:.1} s",
            lock.name,
            thousands(lock.holds.longest_ns),
            thousands(lock.waits.longest_ns),
            thousands(lock.lost_waits),
            duration.as_secs_f64()
        );
    }
    text.push('\n');
    text
}
