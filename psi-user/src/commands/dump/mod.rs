//! `psitrace dump`: the pressure of all cgroups, record by record.

mod choice;
mod form;
mod output;
mod replayed;

use std::{process::ExitCode, time::Duration};

use psi_user::{record::Recorder, tracer::Tracer};
use tokio::time::Instant;

pub(crate) use self::choice::{Fields, Order};
use self::{choice::select, form::Form, output::Output};
use super::{
    Failure, Waiting, Woken, block_on, give_up_capabilities, next_time, require_cgroup, require_tracked, take_requests,
};
use crate::cli::DumpArgs;

pub(crate) fn run(args: &DumpArgs) -> Result<ExitCode, Failure> {
    if let Some(recording) = &args.replay {
        return replayed::run(recording, args);
    }
    let options = args.tracing.options();
    let mut tracer = Tracer::attach(&options)?;
    if let Some(path) = args.cgroup.as_ref().and_then(exact_path) {
        require_cgroup(tracer.hierarchy(), path)?;
        require_tracked(&tracer, &options, path)?;
    }
    // Once nothing else can fail, so that no run leaves an empty file; and while it may still be opened.
    let mut output = Output::open(args.output.as_deref())?;
    let mut form = Form::of(args);
    let mut recorder = args
        .also_record
        .as_deref()
        .map(|path| Recorder::open(path, Duration::from_hours(24)))
        .transpose()?;
    take_requests(&mut tracer)?;
    give_up_capabilities()?;
    block_on(async {
        let mut waiting = Waiting::new(&tracer)?;
        let start = Instant::now();
        let end = args.duration.map(|duration| start + duration);
        let mut last = start;
        let mut written = 0;
        loop {
            let next = next_time(last, args.interval);
            let next = end.map_or(next, |end| next.min(end));
            if waiting.until(&mut tracer, next).await? == Woken::Signal {
                return Ok(ExitCode::SUCCESS);
            }
            last = next;
            let mut snapshot = tracer.snapshot()?;
            if let Some((recorder, _)) = &mut recorder {
                recorder.write(&snapshot)?;
            }
            select(&mut snapshot, args);
            if !output.write(&form.render(&snapshot))? {
                return Ok(ExitCode::SUCCESS);
            }
            written += 1;
            if args.count == Some(written) || end.is_some_and(|end| next >= end) {
                return Ok(ExitCode::SUCCESS);
            }
        }
    })
}

/// The path, if a glob names exactly one.
fn exact_path(glob: &globset::GlobMatcher) -> Option<&str> {
    Some(glob.glob().glob()).filter(|glob| !glob.contains(['*', '?', '[', '{', '\\']))
}
