//! Running other programs with a clean environment.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

/// Settings of the user that also hold for the inner BPF build: where crates come from and how
/// cargo talks, not how it compiles.
const USER_SETTINGS: &[&str] = &[
    "CARGO_BUILD_JOBS",
    "CARGO_CACHE_",
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_LOG",
    "CARGO_NET_",
    "CARGO_REGISTRIES_",
    "CARGO_REGISTRY_",
    "CARGO_SOURCE_",
    "CARGO_TERM_",
];

/// What `cargo run` sets for the program it starts. Build scripts watch some of these, so that an
/// inner cargo that saw them would rebuild what the user's own cargo has built, and back again.
const SET_BY_CARGO_RUN: &[&str] = &[
    "CARGO",
    "CARGO_BIN_",
    "CARGO_CRATE_NAME",
    "CARGO_MANIFEST_",
    "CARGO_PKG_",
    "CARGO_PRIMARY_PACKAGE",
    "OUT_DIR",
    "RUST_RECURSION_COUNT",
];

/// The cargo that started this program, with the user's environment.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    remove_env(&mut command, |name| matches(SET_BY_CARGO_RUN, name));
    command
}

/// Takes out of the environment of `command` all that changes what a cargo or rustc of another
/// toolchain builds.
pub(crate) fn without_build_settings(command: &mut Command) {
    remove_env(command, |name| {
        let of_cargo = name.starts_with("CARGO") && !matches(USER_SETTINGS, name);
        of_cargo
            || matches(SET_BY_CARGO_RUN, name)
            || name.starts_with("RUSTC")
            || matches!(name, "RUSTFLAGS" | "RUSTDOC" | "RUSTDOCFLAGS" | "RUSTUP_TOOLCHAIN")
    });
}

fn remove_env(command: &mut Command, unwanted: impl Fn(&str) -> bool) {
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(&unwanted) {
            command.env_remove(name);
        }
    }
}

/// Entries that end in `_` are prefixes.
fn matches(entries: &[&str], name: &str) -> bool {
    entries.iter().any(|entry| {
        if entry.ends_with('_') {
            name.starts_with(entry)
        } else {
            name == *entry
        }
    })
}

/// Runs `command` with its output on the terminal.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", name_of(command)))?;
    if !status.success() {
        bail!("{} failed ({status})", name_of(command));
    }
    Ok(())
}

/// Runs `command` and returns its standard output; the error holds the last line it complained
/// with.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {}", name_of(command)))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let complaint = stderr.lines().rev().find(|line| !line.trim().is_empty());
        let complaint = complaint.map_or_else(|| output.status.to_string(), ToOwned::to_owned);
        bail!("{} failed: {}", name_of(command), complaint.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The command line for a message: where the program lies is the machine's business.
fn name_of(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str());
    let words = [program].into_iter().chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    format!("`{}`", words.join(" "))
}

/// Cargo's home, where `cargo install` puts programs and the registry's sources are.
pub(crate) fn cargo_home() -> Option<PathBuf> {
    env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(env::home_dir()?.join(".cargo")))
}

/// `PATH`, with the folders that hold freshly installed programs though a user's shell may not
/// know them: cargo's, and the one where Debian has bpftool.
pub(crate) fn search_path() -> OsString {
    let path = env::var_os("PATH").unwrap_or_default();
    let more = cargo_home().map(|home| home.join("bin")).into_iter();
    let more = more.chain(["/usr/sbin".into(), "/sbin".into()]);
    // Joining fails on a folder with a colon in its name only: then it cannot be in PATH anyway.
    env::join_paths(env::split_paths(&path).chain(more)).unwrap_or(path)
}

pub(crate) fn is_installed(program: &str) -> bool {
    env::split_paths(&search_path()).any(|folder| folder.join(program).is_file())
}

/// Fails unless run by root, as `cargo xtask` and this command.
pub(crate) fn require_root(command: &str) -> Result<()> {
    if !is_root() {
        bail!("loading BPF programs needs root; run `cargo xtask {command}` as root");
    }
    Ok(())
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// In continuous integration nothing may be left out quietly.
pub(crate) fn is_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registry_settings_reach_the_bpf_build() {
        assert!(matches(USER_SETTINGS, "CARGO_HOME"));
        assert!(matches(USER_SETTINGS, "CARGO_REGISTRIES_MIRROR_INDEX"));
        assert!(!matches(USER_SETTINGS, "CARGO_ENCODED_RUSTFLAGS"));
        assert!(!matches(USER_SETTINGS, "CARGO_TARGET_DIR"));
    }

    #[test]
    fn only_entries_with_underscore_are_prefixes() {
        assert!(matches(SET_BY_CARGO_RUN, "CARGO"));
        assert!(matches(SET_BY_CARGO_RUN, "CARGO_PKG_NAME"));
        assert!(!matches(SET_BY_CARGO_RUN, "CARGO_TARGET_DIR"));
    }
}
