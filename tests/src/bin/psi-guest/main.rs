//! The tests that run inside of a guest of `cargo xtask vm`: started by its init, once, as root and without anybody
//! else. Also one of their loads.

mod arithmetic;
mod comparison;
mod exit_status;
mod kernel_log;
mod memory;
mod spent;
mod suite;
mod whole;

use std::{fs, io, path::PathBuf};

use clap::{Parser, Subcommand};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Where the guest has the loads: `psi-load`, and this program.
const PSI_LOAD: &str = "/bin/psi-load";
const PSI_GUEST: &str = "/bin/psi-guest";

/// Without a command: runs the tests, and tells QEMU how many failed.
#[derive(Debug, Parser)]
struct Cli {
    /// Enter the cgroup with this directory
    #[arg(long)]
    enter: Option<PathBuf>,
    /// Stay on this CPU
    #[arg(long)]
    cpu: Option<usize>,
    #[command(subcommand)]
    load: Option<Load>,
}

#[derive(Debug, Subcommand)]
enum Load {
    /// Write to all pages of so much memory, over and over
    Touch { mib: usize },
}

fn main() -> io::Result<()> {
    let Cli { enter, cpu, load } = Cli::parse();
    let Some(Load::Touch { mib }) = load else {
        return Err(exit_status::tell(suite::run()));
    };
    if let Some(cgroup) = enter {
        fs::write(cgroup.join("cgroup.procs"), "0")?;
    }
    if let Some(cpu) = cpu {
        stay_on(cpu)?;
    }
    memory::touch(mib)
}

/// Keeps this thread, and what it starts, on one CPU.
fn stay_on(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}
