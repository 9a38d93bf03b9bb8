//! `psitrace top`: the live view.

use std::{
    io::{IsTerminal as _, stdin, stdout},
    os::fd::BorrowedFd,
    path::Path,
    process::ExitCode,
};

use jiff::tz::TimeZone;
use psi_user::{
    model::Snapshot,
    record::Replay,
    top::{self, Feed, Inspection},
    tracer::Tracer,
};

use super::{Failure, block_on, give_up_capabilities, take_requests, tell_lost};
use crate::cli::TopArgs;

/// What happens now, by the tracer.
struct Live {
    tracer: Tracer,
    /// For tests.
    until_panic: Option<u64>,
}

impl top::Source for Live {
    fn snapshot(&mut self) -> anyhow::Result<Snapshot> {
        if let Some(left) = &mut self.until_panic {
            assert!(*left > 0, "asked for by --panic-after");
            *left -= 1;
        }
        Ok(self.tracer.snapshot()?)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.tracer.wake_fd())
    }

    fn housekeeping(&mut self) -> anyhow::Result<()> {
        Ok(self.tracer.housekeeping()?)
    }

    fn inspect(&mut self, path: &str) -> Option<Inspection> {
        let directory = self.tracer.hierarchy().directory(path);
        Some(top::inspect(&directory, path == "/"))
    }
}

pub(crate) fn run(args: &TopArgs) -> Result<ExitCode, Failure> {
    if !(stdin().is_terminal() && stdout().is_terminal()) {
        let line = "top needs a terminal on standard input and output; `psitrace dump` writes to files and pipes";
        return Err(Failure::Usage(line.to_owned()));
    }
    let options = top::Options {
        interval: args.interval,
        tree: !args.flat,
        sort: args.sort,
        window: args.average,
        zone: TimeZone::system(),
    };
    if let Some(recording) = &args.replay {
        return replay(recording, options);
    }
    let mut tracer = Tracer::attach(&args.tracing.options())?;
    take_requests(&mut tracer)?;
    let mut live = Live {
        tracer,
        until_panic: args.panic_after,
    };
    give_up_capabilities()?;
    block_on(async {
        top::run(Feed::Live(&mut live), options).await?;
        Ok(ExitCode::SUCCESS)
    })
}

/// The same from a recording, without a tracer.
fn replay(path: &Path, options: top::Options) -> Result<ExitCode, Failure> {
    let mut recording = Replay::open(path)?;
    if recording.is_empty() {
        return Err(Failure::Usage(format!("{} has no frame yet", path.display())));
    }
    tell_lost(&recording);
    block_on(async {
        top::run(Feed::Replay(&mut recording), options).await?;
        Ok(ExitCode::SUCCESS)
    })
}
