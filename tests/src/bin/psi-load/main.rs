//! Loads for the end-to-end tests: one process that enters its cgroup, goes to its CPU, then works until it is killed,
//! or becomes another program there.

mod disk;
mod pipes;
mod processes;
mod processor;
mod ring;

use std::{
    ffi::OsString,
    fs,
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::Command,
};

use clap::{Parser, Subcommand};
use rustix::{
    process::{Signal, set_parent_process_death_signal, setpriority_process, setsid},
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

#[derive(Debug, Parser)]
struct Cli {
    /// Enter the cgroup with this directory
    #[arg(long)]
    enter: Vec<PathBuf>,
    /// Stay on this CPU
    #[arg(long)]
    cpu: Option<usize>,
    /// Stay away from this CPU
    #[arg(long)]
    not_cpu: Option<usize>,
    /// Go before others, or behind
    #[arg(long, allow_negative_numbers = true)]
    nice: Option<i32>,
    #[command(subcommand)]
    work: Work,
}

#[derive(Debug, Subcommand)]
enum Work {
    /// Become another program
    Run {
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Do nothing, and end
    Nothing,
    /// Compute
    Spin {
        #[arg(long, default_value_t = 1)]
        threads: usize,
    },
    /// Read from the disk, past the page cache
    Read {
        #[arg(long, default_value_t = 1)]
        threads: usize,
        file: PathBuf,
    },
    /// Read through the page cache, from beginning to end
    ReadCached { file: PathBuf },
    /// Wait for io that never comes
    WaitForIo {
        #[arg(long, default_value_t = 1)]
        threads: usize,
    },
    /// Pairs of processes that wake each other
    PingPong {
        #[arg(long)]
        pairs: usize,
    },
    /// Half of a pair
    Pong {
        /// Make the first move
        #[arg(long)]
        serve: bool,
    },
    /// Start processes that end at once
    Processes,
}

fn main() -> io::Result<()> {
    let Cli {
        enter,
        cpu,
        not_cpu,
        nice,
        work,
    } = Cli::parse();
    // A load must not outlive the test that wants it.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    for cgroup in enter {
        fs::write(cgroup.join("cgroup.procs"), "0")?;
    }
    if let Some(cpu) = cpu {
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set)?;
    }
    if let Some(cpu) = not_cpu {
        let mut set = sched_getaffinity(None)?;
        set.unset(cpu);
        sched_setaffinity(None, &set)?;
    }
    if let Some(nice) = nice {
        go_before(nice)?;
    }
    match work {
        Work::Run { words } => Err(Command::new(&words[0]).args(&words[1..]).exec()),
        Work::Nothing => Ok(()),
        Work::Spin { threads } => processor::spin(threads),
        Work::Read { threads, file } => disk::read(threads, &file),
        Work::ReadCached { file } => disk::read_cached(&file),
        Work::WaitForIo { threads } => ring::wait(threads),
        Work::PingPong { pairs } => pipes::ping_pong(pairs),
        Work::Pong { serve } => pipes::pong(serve),
        Work::Processes => processes::start_and_end(),
    }
}

/// With autogroups niceness counts only within a session: it takes a session of its own, and that one's niceness.
fn go_before(nice: i32) -> io::Result<()> {
    setpriority_process(None, nice)?;
    setsid()?;
    // Not all kernels have them.
    let _ = fs::write("/proc/self/autogroup", nice.to_string());
    Ok(())
}

/// Tells the test that the load is at work.
fn ready() -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(b"ready\n")?;
    stdout.flush()
}
