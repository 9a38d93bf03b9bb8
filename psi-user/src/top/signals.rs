//! Signals that end the program, stop it, and have it go on.

use std::{io, mem, ptr};

use rustix::{
    process::{Signal, getpgrp, kill_current_process_group},
    termios::tcgetpgrp,
};
use tokio::{
    select,
    signal::unix::{self, SignalKind, signal},
};

/// The signals that the view takes.
pub(super) struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    hangup: unix::Signal,
    quit: unix::Signal,
    stop: unix::Signal,
    go_on: unix::Signal,
}

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caught {
    /// SIGINT, SIGTERM, SIGHUP or SIGQUIT.
    End,
    /// SIGTSTP: the process is still running.
    Stop,
    /// SIGCONT: the process had been stopped.
    Continue,
}

impl Signals {
    /// From here on, these signals do nothing by themselves.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
            stop: signal(SignalKind::from_raw(libc::SIGTSTP))?,
            go_on: signal(SignalKind::from_raw(libc::SIGCONT))?,
        })
    }

    pub(super) async fn received(&mut self) -> Caught {
        let Self {
            interrupt,
            terminate,
            hangup,
            quit,
            stop,
            go_on,
        } = self;
        select! {
            biased;
            _ = interrupt.recv() => Caught::End,
            _ = terminate.recv() => Caught::End,
            _ = hangup.recv() => Caught::End,
            _ = quit.recv() => Caught::End,
            _ = stop.recv() => Caught::Stop,
            _ = go_on.recv() => Caught::Continue,
        }
    }
}

/// Whether the terminal on standard input is this process group's.
pub(super) fn is_foreground() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

/// Does what the terminal does at Ctrl-Z in its usual mode: SIGTSTP to all of the job.
pub(super) fn stop_group() -> io::Result<()> {
    Ok(kill_current_process_group(Signal::TSTP)?)
}

/// Stops this process as SIGTSTP does by default, and returns once it goes on. Not by SIGSTOP: where there is no shell
/// that could continue it (an orphaned process group) the kernel then does nothing.
pub(super) fn stop() -> io::Result<()> {
    // SAFETY: all zeroes is a valid sigaction: no flags, nothing blocked.
    let mut default: libc::sigaction = unsafe { mem::zeroed() };
    default.sa_sigaction = libc::SIG_DFL;
    let mut ours = default;
    // SAFETY: both point to sigactions that outlive the call; SIG_DFL runs no code of ours.
    if unsafe { libc::sigaction(libc::SIGTSTP, &raw const default, &raw mut ours) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a signal to this thread, which stops the process.
    let raised = unsafe { libc::raise(libc::SIGTSTP) };
    let error = io::Error::last_os_error();
    // SAFETY: `ours` is what the first call has told.
    if unsafe { libc::sigaction(libc::SIGTSTP, &raw const ours, ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if raised == 0 { Ok(()) } else { Err(error) }
}
