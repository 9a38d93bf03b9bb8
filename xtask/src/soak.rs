//! `cargo xtask soak`: psitrace for an hour under loads that come and go.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use crate::{document, process, workspace::Workspace};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How long the load lasts.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    minutes: u64,
    /// Put the table into this document. [default: docs/accuracy.md, for an hour or more]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let Options { minutes, output } = options;
    if !process::is_root() {
        bail!("loading BPF programs needs root; run `cargo xtask soak` as root");
    }
    let default = (*minutes >= 60).then(|| workspace.root.join("docs/accuracy.md"));
    let document = output.clone().or(default);
    if let Some(document) = &document {
        document::check(document, "soak")?;
    }
    for arguments in [
        ["build", "--release", "--package", "psi-user"],
        ["build", "--package", "tests", "--bins"],
    ] {
        process::run(process::cargo().current_dir(&workspace.root).args(arguments))?;
    }
    // Its report comes on standard output, what happens meanwhile on standard error.
    let soaked = Command::new(workspace.target.join("debug/psi-soak"))
        .args(["--minutes", &minutes.to_string()])
        .env("PSITRACE_BIN", workspace.target.join("release/psitrace"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start psi-soak")?;
    let report = String::from_utf8_lossy(&soaked.stdout);
    print!("{report}");
    if let Some(document) = document {
        document::replace(&document, "soak", &report)?;
    }
    if !soaked.status.success() {
        bail!("the soak failed ({}): what was wrong stands above", soaked.status);
    }
    Ok(())
}
