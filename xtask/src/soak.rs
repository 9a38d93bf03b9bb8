//! `cargo xtask soak`: psitrace for an hour under loads that come and go.

use std::path::PathBuf;

use anyhow::{Result, bail};

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
    process::require_root("soak")?;
    let default = (*minutes >= 60).then(|| workspace.root.join("docs/accuracy.md"));
    let document = output.clone().or(default);
    if let Some(document) = &document {
        document::check(document, "soak")?;
    }
    // Its report comes on standard output, what happens meanwhile on standard error.
    let soaked = workspace.run_test_program("psi-soak", &["--minutes", &minutes.to_string()])?;
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
