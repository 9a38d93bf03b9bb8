//! `psitrace top`: the live view.

use std::{
    io::{IsTerminal as _, stdin, stdout},
    os::fd::BorrowedFd,
    process::ExitCode,
};

use psi_user::{model::Snapshot, tracer::Tracer};

use super::{Failure, block_on, give_up_capabilities, take_requests};
use crate::{
    cli::{TopArgs, Tracing},
    top,
};

impl top::Source for Tracer {
    fn snapshot(&mut self) -> anyhow::Result<Snapshot> {
        Ok(Self::snapshot(self)?)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(Self::wake_fd(self))
    }

    fn housekeeping(&mut self) -> anyhow::Result<()> {
        Ok(Self::housekeeping(self)?)
    }
}

pub(crate) fn run(tracing: &Tracing, args: &TopArgs) -> Result<ExitCode, Failure> {
    if !(stdin().is_terminal() && stdout().is_terminal()) {
        let line = "top needs a terminal on standard input and output; `psitrace dump` writes to files and pipes";
        return Err(Failure::Usage(line.to_owned()));
    }
    let mut tracer = Tracer::attach(&tracing.options())?;
    take_requests(&mut tracer)?;
    give_up_capabilities()?;
    let options = top::Options {
        interval: args.interval,
        tree: !args.flat,
        ..top::Options::default()
    };
    block_on(async {
        top::run(&mut tracer, options).await?;
        Ok(ExitCode::SUCCESS)
    })
}
