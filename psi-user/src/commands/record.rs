//! `psitrace record`: the pressure of all cgroups, into a recording.

use std::process::ExitCode;

use psi_user::{
    record::{Error, Recorder},
    tracer::Tracer,
};
use tokio::time::Instant;

use super::{Failure, Waiting, Woken, block_on, complain, give_up_capabilities, next_time, printable, take_requests};
use crate::cli::RecordArgs;

pub(crate) fn run(args: &RecordArgs) -> Result<ExitCode, Failure> {
    if args.output.as_os_str() == "-" {
        return Err(Failure::Usage(
            "a recording is two files and cannot go to standard output: name a file, or use `psitrace dump`".to_owned(),
        ));
    }
    let mut tracer = Tracer::attach(&args.tracing.options())?;
    // Once nothing else can fail, so that no run leaves an empty file; and while it may still be opened.
    let (recorder, damage) = Recorder::open(&args.output, args.keep)?;
    for damage in damage {
        complain(&printable(&damage.to_string()));
    }
    let mut log = Log {
        recorder,
        is_full: false,
    };
    take_requests(&mut tracer)?;
    give_up_capabilities()?;
    block_on(async {
        let mut waiting = Waiting::new(&tracer)?;
        let start = Instant::now();
        let end = args.duration.map(|duration| start + duration);
        let mut last = start;
        loop {
            let next = next_time(last, args.interval);
            let next = end.map_or(next, |end| next.min(end));
            let woken = waiting.until(&mut tracer, next).await?;
            last = next;
            log.write(&tracer.snapshot()?)?;
            if woken == Woken::Signal || end.is_some_and(|end| next >= end) {
                return log.finish();
            }
        }
    })
}

/// A recording that outlives a full disk.
struct Log {
    recorder: Recorder,
    /// Whether the last snapshot found no room.
    is_full: bool,
}

impl Log {
    /// Writes a snapshot. A full disk is told once, and tried again with each snapshot: what is recorded after an
    /// incident is worth more than the order of things.
    fn write(&mut self, snapshot: &psi_user::model::Snapshot) -> Result<(), Failure> {
        let was_full = self.is_full;
        match self.recorder.write(snapshot) {
            Ok(()) => {
                self.is_full = false;
                if was_full {
                    complain("there is room again: recording goes on");
                }
            }
            Err(error) if error.is_full_disk() => {
                self.is_full = true;
                if !was_full {
                    complain(&printable(&format!(
                        "{error}; recording goes on as soon as there is room"
                    )));
                }
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// What was recorded last is on the disk, or this is a failure.
    fn finish(self) -> Result<ExitCode, Failure> {
        if self.is_full {
            return Err(Failure::Usage(
                "the recording lacks its last snapshots: the disk is full".to_owned(),
            ));
        }
        self.recorder.sync()?;
        Ok(ExitCode::SUCCESS)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Usage(error.to_string())
    }
}
