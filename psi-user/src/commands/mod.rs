//! One module a command, and what they share.

pub(crate) mod about;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod dump;
mod holds;
pub(crate) mod record;
pub(crate) mod rstat;
pub(crate) mod stats;
pub(crate) mod switch;
pub(crate) mod top;

use std::{fmt, io, process::ExitCode, time::Duration};

use psi_user::{error::Error, hierarchy::Hierarchy, load::Options, privilege, record::Replay, tracer::Tracer};
use tokio::{
    io::unix::AsyncFd,
    signal::unix::{Signal, SignalKind, signal},
    time::Instant,
};

use crate::cli::exit;

/// Why a command ends with an error: one line, and an exit code.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The tracer cannot run here.
    Cannot(String),
    /// A wrong argument or an output that cannot be written.
    Usage(String),
}

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Cannot(_) => exit::CANNOT,
            Self::Usage(_) => exit::USAGE,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Cannot(line) | Self::Usage(line)) = self;
        f.write_str(line)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Hierarchy { .. } | Error::MaxCgroups(_) => Self::Usage(error.to_string()),
            _ => Self::Cannot(error.to_string()),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Cannot(format!("{error:#}"))
    }
}

/// After the tracer is attached this process needs no capability: what it reads from here on is mapped or open.
pub(crate) fn give_up_capabilities() -> Result<(), Failure> {
    privilege::drop_all().map_err(|error| Failure::Cannot(format!("giving up capabilities: {error}")))
}

/// Lets others ask the tracer for something from now on. Before capabilities are given up: they may have to help here.
pub(crate) fn take_requests(tracer: &mut Tracer) -> Result<(), Failure> {
    tracer
        .take_requests()
        .map_err(|error| Failure::Cannot(format!("waiting for requests: {error}")))
}

/// Fails unless the cgroup exists.
pub(crate) fn require_cgroup(hierarchy: &Hierarchy, path: &str) -> Result<(), Failure> {
    if path.starts_with('/') && !path.split('/').any(|part| part == "..") && hierarchy.directory(path).is_dir() {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "no cgroup {path} below {}; a path starts with / and is relative to that",
        hierarchy.mount.display()
    )))
}

/// Fails unless the cgroup, which exists, is among those that are tracked.
pub(crate) fn require_tracked(tracer: &Tracer, options: &Options, path: &str) -> Result<(), Failure> {
    if !options.track.is_on() || tracer.is_tracked(path) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "the cgroup {path} is not tracked: neither it nor one below it matches --track"
    )))
}

/// A text as it may go to a terminal: control characters escaped.
pub(crate) fn printable(text: &str) -> String {
    let escape = |c: char| {
        if c.is_control() {
            c.escape_default().collect()
        } else {
            String::from(c)
        }
    };
    text.chars().map(escape).collect()
}

/// Prints one line of complaint to standard error; if that cannot be written, the exit code has to tell.
pub(crate) fn complain(line: &str) {
    use io::Write as _;
    let _ = writeln!(io::stderr(), "psitrace: {line}");
}

/// Tells what of a recording cannot be shown.
pub(crate) fn tell_lost(recording: &Replay) {
    if let Some(error) = recording.left_out() {
        complain(&printable(&format!("half of the recording is left out: {error}")));
    }
    for damage in recording.damage() {
        complain(&printable(&damage.to_string()));
    }
}

/// Prints to standard output. Says whether there is still a reader; that there is none is no error.
pub(crate) fn print(text: &str) -> Result<bool, Failure> {
    use io::Write as _;
    let mut output = io::stdout();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::Usage(format!("cannot write standard output: {error}"))),
    }
}

/// Prints a report: one JSON object, or as text. Says whether there is still a reader.
pub(crate) fn print_report<T: serde::Serialize>(
    report: &T,
    json: bool,
    text: impl FnOnce(&T) -> String,
) -> Result<bool, Failure> {
    print(&if json {
        // Plain data with strings for keys: this cannot fail.
        serde_json::to_string(report).unwrap_or_default() + "\n"
    } else {
        text(report)
    })
}

/// Runs a command's future on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Cannot(format!("starting the event loop: {error}")))?
        .block_on(future)
}

/// Why [`Waiting::until`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The time has come.
    Time,
    /// SIGINT, SIGTERM or SIGHUP.
    Signal,
}

/// SIGINT, SIGTERM and SIGHUP, which end a command.
pub(crate) struct Signals([Signal; 3]);

impl Signals {
    /// Must be called within [`block_on`].
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ]))
    }

    /// Waits for the first of them.
    pub(crate) async fn received(&mut self) {
        let Self([interrupt, terminate, hangup]) = self;
        tokio::select! {
            _ = interrupt.recv() => (),
            _ = terminate.recv() => (),
            _ = hangup.recv() => (),
        }
    }
}

/// Waits for the next record while the tracer's housekeeping goes on.
pub(crate) struct Waiting {
    signals: Signals,
    wakeups: AsyncFd<std::os::fd::OwnedFd>,
}

impl Waiting {
    /// Must be called within [`block_on`].
    pub(crate) fn new(tracer: &Tracer) -> Result<Self, Failure> {
        let set_up = || -> io::Result<Self> {
            Ok(Self {
                signals: Signals::new()?,
                // SAFETY: an owned descriptor stays open, and the same one, until the AsyncFd drops it.
                wakeups: unsafe { AsyncFd::register(tracer.wake_fd().try_clone_to_owned()?) }?,
            })
        };
        set_up().map_err(|error| Failure::Cannot(format!("waiting for events: {error}")))
    }

    /// Waits until `deadline`, or a signal.
    pub(crate) async fn until(&mut self, tracer: &mut Tracer, deadline: Instant) -> Result<Woken, Failure> {
        loop {
            tokio::select! {
                biased;
                () = self.signals.received() => return Ok(Woken::Signal),
                () = tokio::time::sleep_until(deadline) => return Ok(Woken::Time),
                ready = self.wakeups.readable() => {
                    ready.map_err(|error| Failure::Cannot(format!("waiting for events: {error}")))?.clear_ready();
                    tracer.housekeeping()?;
                }
            }
        }
    }
}

/// The next of the times `start`, `start + interval`, ... that is not past: a late round is not made up for.
pub(crate) fn next_time(last: Instant, interval: Duration) -> Instant {
    let now = Instant::now();
    let mut next = last + interval;
    if next < now {
        let behind = (now - next).as_nanos() / interval.as_nanos().max(1) + 1;
        next += interval * u32::try_from(behind).unwrap_or(u32::MAX);
    }
    next
}
