//! `cargo xtask`: everything psitrace needs beyond plain `cargo build` and `cargo test`.

mod accuracy;
mod document;
mod ebpf;
mod object_file;
mod process;
mod screens;
mod setup;
mod soak;
mod staleness;
mod summary;
mod svg;
mod test;
mod toolchain;
mod vm;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

use crate::workspace::Workspace;

/// Set-up, the BPF build, guests and the test run of psitrace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// Install what building and testing need beyond stable Rust.
    Setup,
    /// Build the BPF object that psi-user embeds, or check that it is fresh.
    Ebpf(ebpf::Options),
    /// Boot other kernels in QEMU and test psitrace there.
    Vm(vm::Options),
    /// Measure psitrace beside the kernel's own PSI, and write the table in docs/accuracy.md.
    Accuracy(accuracy::Options),
    /// Run psitrace for an hour under loads that come and go, and write the table in docs/accuracy.md.
    Soak(soak::Options),
    /// Take pictures of `psitrace top` for docs/top.md and the README.
    Screens(screens::Options),
    /// Run every check and test: lints, unit tests, kernel tests, guests.
    Test(test::Options),
}

fn main() -> ExitCode {
    match run(&Command::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    match command {
        Command::Setup => setup::run(&workspace).map(|()| ExitCode::SUCCESS),
        Command::Ebpf(options) => ebpf::run(&workspace, options).map(|()| ExitCode::SUCCESS),
        Command::Vm(options) => vm::run(&workspace, options).map(|guests| guests.counts.exit_code()),
        Command::Accuracy(options) => accuracy::run(&workspace, options).map(|()| ExitCode::SUCCESS),
        Command::Soak(options) => soak::run(&workspace, options).map(|()| ExitCode::SUCCESS),
        Command::Screens(options) => screens::run(&workspace, options).map(|()| ExitCode::SUCCESS),
        Command::Test(options) => Ok(test::run(&workspace, options)),
    }
}
