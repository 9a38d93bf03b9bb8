//! What is attached while a load runs.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
};

use aya::programs::loaded_programs;
use psi_user::{nothing::Nothing, privilege};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use serde::Serialize;

use crate::commands::Failure;

/// What a load's time is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Subject {
    /// Nothing: what the harness itself takes for a difference.
    Detached,
    /// Programs that do nothing at the tracer's busiest hooks: what the kernel's way to a program costs.
    Empty,
    /// A psitrace that flushes once a second, with these options.
    Tracer(&'static [&'static str]),
}

/// What is attached until dropped.
#[expect(dead_code, reason = "held")]
pub(super) enum Attached {
    Detached,
    Empty(Nothing),
    Tracer(Tracer),
}

/// A `psitrace dump` of its own.
pub(super) struct Tracer(Child);

impl Subject {
    pub(super) fn title(self) -> String {
        match self {
            Self::Detached => "detached".to_owned(),
            Self::Empty => "empty programs".to_owned(),
            Self::Tracer([]) => "attached".to_owned(),
            Self::Tracer(options) => options.join(" "),
        }
    }

    pub(super) fn attach(self) -> Result<Attached, Failure> {
        Ok(match self {
            Self::Detached => Attached::Detached,
            Self::Empty => Attached::Empty(Nothing::attach()?),
            Self::Tracer(options) => Attached::Tracer(Tracer::start(options)?),
        })
    }
}

impl Tracer {
    fn start(options: &[&str]) -> Result<Self, Failure> {
        let failed = |reason: String| Failure::Cannot(format!("psitrace dump {}: {reason}", options.join(" ")));
        let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
        let mut command = Command::new(program);
        command
            .args(["dump", "--depth", "0"])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        // SAFETY: one system call, no memory, between fork and exec. The thread that starts it is the process's only one.
        unsafe { command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::TERM))?)) };
        let child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let mut this = Self(child);
        // Its first record: it is attached. The pipe has room for those of many minutes.
        let mut line = String::new();
        if let Some(stdout) = &mut this.0.stdout {
            BufReader::with_capacity(1, stdout)
                .read_line(&mut line)
                .map_err(|error| failed(error.to_string()))?;
        }
        super::go_on()?;
        if line.is_empty() {
            return Err(failed("did not start".to_owned()));
        }
        Ok(this)
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            // Gone already if this fails.
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

/// Programs at the scheduler's switches that are loaded now, whoever they belong to.
pub(super) fn loaded_at_switches() -> usize {
    loaded_programs()
        .flatten()
        .filter(|program| program.name_as_str().is_some_and(|name| name.ends_with("sched_switch")))
        .count()
}

/// Fails while something else is attached: what it costs would be in every figure.
pub(super) fn require_detached() -> Result<(), Failure> {
    privilege::check()?;
    if loaded_at_switches() == 0 {
        return Ok(());
    }
    Err(Failure::Cannot(
        "another tracer is attached to sched_switch, and what it costs would be in all figures: end it first (bpftool prog \
         show)"
            .to_owned(),
    ))
}
