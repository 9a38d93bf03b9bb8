//! The loads that are timed, each a command of its own that prints the seconds it took.

use std::{
    fs,
    io::{self, ErrorKind},
    net::UdpSocket,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

use clap::ValueEnum;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;

use super::pairs::median;
use crate::{
    cli::BenchLoadArgs,
    commands::{Failure, print},
};

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Load {
    /// `perf bench sched pipe` on one CPU: nothing but wakeups and switches
    Pipe,
    /// `perf bench sched messaging -p` on all CPUs: many tasks through pipes
    Messaging,
    /// Fork, exec and exit of a program that does nothing, on one CPU
    Fork,
    /// Datagrams over loopback, a softirq each, on one CPU
    Udp,
}

/// So many steps take a quarter or half of a second.
const PIPE_STEPS: u32 = 60_000;
const MESSAGING_STEPS: u32 = 400;
const FORK_STEPS: u32 = 500;
const UDP_STEPS: u32 = 100_000;
/// Runs whose median is a time.
const RUNS: usize = 3;

impl Load {
    pub(super) const ALL: [Self; 4] = [Self::Pipe, Self::Messaging, Self::Fork, Self::Udp];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Pipe => "perf bench sched pipe",
            Self::Messaging => "perf bench sched messaging -p",
            Self::Fork => "fork, exec, exit",
            Self::Udp => "UDP over loopback",
        }
    }

    /// The project's own bar, attached over detached.
    pub(super) const fn bar(self) -> f64 {
        match self {
            Self::Pipe => 1.06,
            Self::Messaging => 1.02,
            Self::Fork | Self::Udp => 1.03,
        }
    }

    fn command(self) -> io::Result<Command> {
        let own = |name| -> io::Result<Command> {
            let mut this = Command::new(std::env::current_exe()?);
            this.args(["bench", "load", name]);
            Ok(this)
        };
        let perf = |arguments: &[&str], steps: u32| {
            let mut perf = Command::new("perf");
            perf.args(["bench", "-f", "simple", "sched"])
                .args(arguments)
                .args(["-l", &steps.to_string()]);
            perf
        };
        Ok(match self {
            Self::Pipe => perf(&["pipe"], PIPE_STEPS),
            Self::Messaging => perf(&["messaging", "-p", "-g", "8"], MESSAGING_STEPS),
            Self::Fork => own("fork")?,
            Self::Udp => own("udp")?,
        })
    }

    /// Runs it a few times, in a cgroup; returns the seconds it took.
    pub(super) fn time(self, cgroup: &Path) -> Result<f64, Failure> {
        super::go_on()?;
        let runs: Vec<f64> = (0..RUNS).map(|_| self.time_once(cgroup)).collect::<Result<_, _>>()?;
        Ok(median(&runs))
    }

    fn time_once(self, cgroup: &Path) -> Result<f64, Failure> {
        let failed = |reason: String| Failure::Cannot(format!("{}: {reason}", self.title()));
        let _pinned = (self != Self::Messaging)
            .then(Pinned::to_last)
            .transpose()
            .map_err(|error| failed(format!("pinning to a CPU: {error}")))?;
        let command = self.command().map_err(|error| failed(error.to_string()))?;
        let mut command = within(&cgroup.join("cgroup.procs"), &command);
        let output = command
            .stdin(Stdio::null())
            .output()
            .map_err(|error| failed(format!("starting sh: {error}")))?;
        // The load may have had the same signal.
        super::go_on()?;
        match String::from_utf8_lossy(&output.stdout).trim().parse() {
            Ok(seconds) if output.status.success() && seconds > 0.0 => Ok(seconds),
            // What a shell says when there is no such command.
            _ if output.status.code() == Some(127) => Err(failed(
                "no perf on this machine; install it (Debian: linux-perf) or choose other loads with --load".to_owned(),
            )),
            _ => {
                let said = String::from_utf8_lossy(&output.stderr);
                let said = said.lines().next().unwrap_or("no time printed");
                Err(failed(format!("{}: {said}", output.status)))
            }
        }
    }
}

/// The same command, begun in the cgroup with this cgroup.procs.
fn within(procs: &Path, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", r#"echo 0 > "$0" && exec "$@""#])
        .arg(procs)
        .arg(command.get_program())
        .args(command.get_args());
    shell
}

/// Keeps this thread, and what it starts, on the last CPU it may use, until dropped.
struct Pinned(CpuSet);

impl Pinned {
    fn to_last() -> io::Result<Self> {
        let before = sched_getaffinity(None)?;
        let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| before.is_set(cpu));
        let mut one = CpuSet::new();
        one.set(last.unwrap_or(0));
        sched_setaffinity(None, &one)?;
        Ok(Self(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Fails only if all of these CPUs went offline meanwhile.
        let _ = sched_setaffinity(None, &self.0);
    }
}

/// `psitrace bench load`: the loads that no other program has.
pub(super) fn run(args: &BenchLoadArgs) -> Result<ExitCode, Failure> {
    let start = Instant::now();
    let done = match args.load {
        Load::Fork => fork(),
        Load::Udp => udp(),
        Load::Pipe | Load::Messaging => {
            return Err(Failure::Usage(format!(
                "`{}` is a command of perf: run that",
                args.load.title()
            )));
        }
    };
    done.map_err(|error| Failure::Cannot(format!("{}: {error}", args.load.title())))?;
    print(&format!("{:.6}\n", start.elapsed().as_secs_f64()))?;
    Ok(ExitCode::SUCCESS)
}

fn fork() -> io::Result<()> {
    let nothing = ["/bin/true", "/usr/bin/true"]
        .map(PathBuf::from)
        .into_iter()
        .find(|path| fs::exists(path).unwrap_or(false))
        .ok_or_else(|| io::Error::other("no /bin/true"))?;
    for _ in 0..FORK_STEPS {
        Command::new(&nothing).status()?;
    }
    Ok(())
}

fn udp() -> io::Result<()> {
    let receiver = UdpSocket::bind("127.0.0.1:0")?;
    receiver.set_nonblocking(true)?;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    sender.connect(receiver.local_addr()?)?;
    let mut datagram = [0; 64];
    for _ in 0..UDP_STEPS {
        sender.send(&datagram)?;
        // Over loopback it is there, or dropped, once `send` returns.
        match receiver.recv(&mut datagram) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
