//! Where the workspace and its build results are.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::process;

/// The part of `cargo metadata` that is used here.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    /// Follows `CARGO_TARGET_DIR` and the user's cargo configuration.
    #[serde(rename = "target_directory")]
    pub(crate) target: PathBuf,
}

impl Workspace {
    pub(crate) fn find() -> Result<Self> {
        let mut metadata = process::cargo();
        metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
        // Set by `cargo run`; without it the current directory decides.
        if let Some(manifest) = env::var_os("CARGO_MANIFEST_DIR") {
            metadata
                .arg("--manifest-path")
                .arg(Path::new(&manifest).join("Cargo.toml"));
        }
        let json = process::output(&mut metadata)
            .context("cannot ask cargo for the workspace; run from inside the repository")?;
        serde_json::from_str(&json).context("cannot read cargo's metadata")
    }

    /// Cargo, to be run on this workspace.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = process::cargo();
        command.current_dir(&self.root);
        command
    }

    /// Where [`Self::build_psitrace`] puts it.
    pub(crate) fn psitrace(&self) -> PathBuf {
        self.target.join("release/psitrace")
    }

    /// Builds psitrace as it is released.
    pub(crate) fn build_psitrace(&self) -> Result<()> {
        process::run(self.cargo().args(["build", "--release", "--package", "psi-user"]))
    }

    /// Runs a program of the tests, which runs psitrace; both are built before. Its messages go to the terminal.
    pub(crate) fn run_test_program(&self, name: &str, arguments: &[&str]) -> Result<Output> {
        self.build_psitrace()?;
        process::run(self.cargo().args(["build", "--package", "tests", "--bins"]))?;
        Command::new(self.target.join("debug").join(name))
            .args(arguments)
            .env("PSITRACE_BIN", self.psitrace())
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot start {name}"))
    }

    /// The object that psi-user embeds; it is committed.
    pub(crate) fn committed_object(&self) -> PathBuf {
        self.root.join("psi-user/bpf/psitrace.bpf.o")
    }

    /// What the committed object was built from.
    pub(crate) fn committed_record(&self) -> PathBuf {
        self.root.join("psi-user/bpf/psitrace.bpf.json")
    }
}
