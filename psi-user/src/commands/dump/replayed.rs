//! `dump --replay`: the same from a recording, without a tracer.

use std::{path::Path, process::ExitCode};

use jiff::tz::TimeZone;
use psi_user::{
    record::{Replay, files},
    when::local,
};

use super::{Output, choice::select, exact_path, form::Form};
use crate::{
    cli::DumpArgs,
    commands::{Failure, tell_lost},
};

pub(super) fn run(path: &Path, args: &DumpArgs) -> Result<ExitCode, Failure> {
    let mut replay = Replay::open(path)?;
    tell_lost(&replay);
    let name = path.display();
    let place = |path: &Path| path.canonicalize().ok();
    if let Some(output) = args.output.as_deref().and_then(place)
        && files(path).iter().any(|file| place(file).as_ref() == Some(&output))
    {
        return Err(Failure::Usage(format!("--output would overwrite the recording {name}")));
    }
    let zone = TimeZone::system();
    let Some((first_ns, last_ns)) = replay.span_ns() else {
        return Err(Failure::Usage(format!("{name} has no frame yet")));
    };
    let span_ns = first_ns..=last_ns;
    let known = |option: &str, time_ns: Option<Option<u64>>| {
        let unknown = || Failure::Usage(format!("{option}: a time before 1970, or far in the future"));
        time_ns.map(|time_ns| time_ns.ok_or_else(unknown)).transpose()
    };
    let begin = args
        .begin
        .map(|begin| begin.resolve_near(last_ns, span_ns.clone(), &zone));
    let begin = known("--begin", begin)?;
    let end = args.end.map(|end| end.resolve(span_ns, begin, &zone));
    let end = known("--end", end)?;
    if let (Some(begin), Some(end)) = (begin, end)
        && end < begin
    {
        return Err(Failure::Usage(format!(
            "--end {} is before --begin {}",
            local(end, &zone),
            local(begin, &zone)
        )));
    }
    let is_wanted = |&frame: &usize| {
        let at = replay.time_ns(frame).unwrap_or_default();
        begin.is_none_or(|begin| at >= begin) && end.is_none_or(|end| at <= end)
    };
    let frames: Vec<usize> = (0..replay.len()).filter(is_wanted).collect();
    if frames.is_empty() {
        let bound =
            |word: &str, at: Option<u64>| at.map_or_else(String::new, |at| format!(" {word} {}", local(at, &zone)));
        return Err(Failure::Usage(format!(
            "{name} has no frame{}{}; it goes from {} to {}",
            bound("from", begin),
            bound("to", end),
            local(first_ns, &zone),
            local(last_ns, &zone)
        )));
    }
    let wanted = args.cgroup.as_ref().and_then(exact_path);
    let mut is_met = wanted.is_none();
    let mut output = None;
    let mut form = Form::of(args);
    let count = args.count.map_or(usize::MAX, |count| count as usize);
    for frame in frames.into_iter().take(count) {
        let mut snapshot = replay.frame(frame)?;
        is_met |= snapshot.cgroups.iter().any(|cgroup| wanted == Some(&cgroup.path));
        select(&mut snapshot, args);
        // Once there is something to write, so that no wrong argument leaves an empty file.
        let output = match &mut output {
            Some(output) => output,
            none => none.insert(Output::open(args.output.as_deref())?),
        };
        if !output.write(&form.render(&snapshot))? {
            return Ok(ExitCode::SUCCESS);
        }
    }
    if let Some(path) = wanted.filter(|_| !is_met) {
        return Err(Failure::Usage(format!("no cgroup {path} in that part of {name}")));
    }
    Ok(ExitCode::SUCCESS)
}
