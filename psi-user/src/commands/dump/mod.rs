//! `psitrace dump`: the pressure of all cgroups, record by record.

mod choice;
mod form;

use std::{
    fs::{File, Metadata},
    io::{self, ErrorKind, Write as _},
    os::fd::AsFd as _,
    path::Path,
    process::ExitCode,
};

use psi_user::tracer::Tracer;
use tokio::time::Instant;

pub(crate) use self::choice::{Fields, Order};
use self::{choice::select, form::Form};
use super::{Failure, Waiting, Woken, block_on, give_up_capabilities, next_time, require_cgroup};
use crate::cli::{DumpArgs, Tracing};

pub(crate) fn run(tracing: &Tracing, args: &DumpArgs) -> Result<ExitCode, Failure> {
    let mut tracer = Tracer::attach(&tracing.options())?;
    if let Some(path) = args
        .cgroup
        .as_ref()
        .map(|glob| glob.glob().glob())
        .filter(|glob| is_literal(glob))
    {
        require_cgroup(tracer.hierarchy(), path)?;
    }
    // Once nothing else can fail, so that no run leaves an empty file; and while it may still be opened.
    let mut output = Output::open(args.output.as_deref())?;
    let mut form = Form::new(args.format, args.fields.clone().map(|Fields(fields)| fields));
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

/// Whether a glob names exactly one path.
fn is_literal(glob: &str) -> bool {
    !glob.contains(['*', '?', '[', '{', '\\'])
}

/// Where records go.
struct Output {
    name: String,
    file: File,
    /// Bytes of whole records, for a regular file.
    whole: Option<u64>,
}

impl Output {
    /// A file, emptied, or standard output.
    fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let name = path.map_or_else(|| "standard output".to_owned(), |path| path.display().to_string());
        let open = || match path {
            Some(path) => File::create(path),
            None => io::stdout().as_fd().try_clone_to_owned().map(File::from),
        };
        let file = open().map_err(|error| Failure::Usage(format!("cannot write {name}: {error}")))?;
        let whole = path
            .and_then(|_| file.metadata().ok())
            .filter(Metadata::is_file)
            .map(|_| 0);
        Ok(Self { name, file, whole })
    }

    /// Writes one whole record, or nothing of it where that can be helped. Says whether there is still a reader.
    fn write(&mut self, record: &str) -> Result<bool, Failure> {
        match self.file.write_all(record.as_bytes()) {
            Ok(()) => {
                self.whole = self.whole.map(|whole| whole + record.len() as u64);
                Ok(true)
            }
            // The reader has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            Err(error) => {
                if let Some(whole) = self.whole {
                    // The disk is full, say: without the half record. If this fails too, the first error is told.
                    let _ = self.file.set_len(whole);
                }
                Err(Failure::Usage(format!("cannot write {}: {error}", self.name)))
            }
        }
    }
}
