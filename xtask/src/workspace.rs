//! Where the workspace and its build results are.

use std::{
    env,
    path::{Path, PathBuf},
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

    /// The object that psi-user embeds; it is committed.
    pub(crate) fn committed_object(&self) -> PathBuf {
        self.root.join("psi-user/bpf/psitrace.bpf.o")
    }

    /// What the committed object was built from.
    pub(crate) fn committed_record(&self) -> PathBuf {
        self.root.join("psi-user/bpf/psitrace.bpf.json")
    }
}
