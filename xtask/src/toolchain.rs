//! The compilers that can build for the BPF target, and the linker they need.
//!
//! The target has no ready-made `core`, so a compiler is of use only with core's source.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use crate::process;

/// 0.11 and later need a system LLVM 23; this one takes the LLVM of the Rust toolchain.
pub(crate) const BPF_LINKER_VERSION: &str = "0.10.4";

const SYSTEM_RUSTC: &str = "/usr/bin/rustc";
const SYSTEM_CARGO: &str = "/usr/bin/cargo";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A rustup nightly with its rust-src component.
    Nightly,
    /// The distribution's own compiler and source package.
    System,
}

/// A compiler that can build the BPF object.
#[derive(Debug)]
pub(crate) struct Toolchain {
    kind: Kind,
    /// `rustc -V`.
    pub(crate) version: String,
    /// The folder that holds `library/core`.
    pub(crate) source: PathBuf,
}

impl Toolchain {
    /// The first toolchain that works.
    pub(crate) fn find() -> Result<Self> {
        let nightly = match Self::probe(Kind::Nightly) {
            Ok(toolchain) => return Ok(toolchain),
            Err(error) => error,
        };
        Self::probe(Kind::System).map_err(|system| {
            anyhow::anyhow!(
                "no compiler with core's source for the BPF target (nightly: {nightly:#}; system: \
                 {system:#}); run `cargo xtask setup`"
            )
        })
    }

    fn probe(kind: Kind) -> Result<Self> {
        let version = process::output(rustc(kind).arg("-V"))?;
        // A distribution may well have an old compiler beside the source of it.
        let wanted = env!("CARGO_PKG_RUST_VERSION");
        if !is_at_least(&version, wanted) {
            bail!("{version} is older than {wanted}");
        }
        let sysroot = process::output(rustc(kind).args(["--print", "sysroot"]))?;
        let source = Path::new(&sysroot).join("lib/rustlib/src/rust");
        if !source.join("library/core/src/lib.rs").is_file() {
            bail!("no core source in {}", source.display());
        }
        Ok(Self { kind, version, source })
    }

    /// This toolchain's cargo, untouched by the settings of the cargo that runs xtask.
    pub(crate) fn cargo(&self) -> Result<Command> {
        let mut command = match self.kind {
            Kind::Nightly => rustup_run("cargo"),
            Kind::System => system(SYSTEM_CARGO),
        };
        if self.kind == Kind::System {
            // A stable compiler takes `-Z build-std` only when told that it is building Rust.
            command.env("RUSTC", SYSTEM_RUSTC).env("RUSTC_BOOTSTRAP", "1");
        }
        command.env("PATH", process::search_path());
        command.env("LD_LIBRARY_PATH", linker_library_path()?);
        Ok(command)
    }
}

/// Whether rustup has a nightly, with or without core's source.
pub(crate) fn has_nightly() -> bool {
    process::output(rustc(Kind::Nightly).arg("-V")).is_ok()
}

/// `bpf-linker --version`.
pub(crate) fn bpf_linker_version() -> Result<String> {
    let mut command = Command::new("bpf-linker");
    command.arg("--version").env("PATH", process::search_path());
    command.env("LD_LIBRARY_PATH", linker_library_path()?);
    process::output(&mut command).context("bpf-linker does not run; install it with `cargo xtask setup`")
}

fn rustc(kind: Kind) -> Command {
    match kind {
        Kind::Nightly => rustup_run("rustc"),
        Kind::System => system(SYSTEM_RUSTC),
    }
}

fn rustup_run(program: &str) -> Command {
    let mut command = system("rustup");
    // Probing must not download a toolchain.
    command
        .env("RUSTUP_AUTO_INSTALL", "0")
        .args(["run", "nightly", program]);
    command
}

fn system(program: &str) -> Command {
    let mut command = Command::new(program);
    process::without_build_settings(&mut command);
    command
}

/// bpf-linker loads the LLVM of the toolchain it was built with, the one that runs xtask.
fn linker_library_path() -> Result<OsString> {
    // The user's environment on purpose: it names that toolchain.
    let sysroot = process::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let mut path = Path::new(&sysroot).join("lib").into_os_string();
    // `cargo run` puts its own target folder and toolchain there; neither matters, but what the
    // user had set before does.
    if let Some(inherited) = std::env::var_os("LD_LIBRARY_PATH").filter(|value| !value.is_empty()) {
        path.push(OsStr::new(":"));
        path.push(inherited);
    }
    Ok(path)
}

/// Compares the `1.95` in `rustc 1.95.0-nightly (...)` with `wanted`.
fn is_at_least(rustc_version: &str, wanted: &str) -> bool {
    let number = rustc_version.split_whitespace().nth(1).unwrap_or_default();
    match (minor(number), minor(wanted)) {
        (Some(have), Some(wanted)) => have >= wanted,
        _ => false,
    }
}

fn minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        assert!(is_at_least("rustc 1.97.0-nightly (e50aa6fba 2026-05-19)", "1.95"));
        assert!(is_at_least("rustc 1.100.0 (0 2026-01-01)", "1.95"));
        assert!(!is_at_least("rustc 1.63.0 (0 2022-01-01)", "1.95"));
        assert!(!is_at_least("", "1.95"));
    }
}
