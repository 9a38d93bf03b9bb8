//! `cargo xtask setup`: what building and testing need beyond stable Rust.
//!
//! What is there is skipped without a word, so that `cargo xtask test` can start with it.

use std::{fs, path::Path, process::Command};

use anyhow::{Result, bail};

use crate::{
    process,
    toolchain::{self, BPF_LINKER_VERSION, Toolchain},
    vm,
    workspace::Workspace,
};

/// The distribution's compiler with core's source, for machines without a complete nightly.
/// Debian's `-web` packages follow new Rust versions; its plain ones do not.
const SYSTEM_TOOLCHAIN: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];

/// What the end-to-end tests make load with and compare against, and the package that has it.
const TEST_TOOLS: [(&str, &str); 7] = [
    ("bpftool", "bpftool"),
    ("cyclictest", "rt-tests"),
    ("fio", "fio"),
    ("hackbench", "rt-tests"),
    ("perf", "linux-perf"),
    ("stress-ng", "stress-ng"),
    ("tmux", "tmux"),
];

/// Names in mount(8)'s sense, and where the tests look.
const MOUNTS: [(&str, &str); 2] = [("tracefs", "/sys/kernel/tracing"), ("bpf", "/sys/fs/bpf")];

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut setup = Setup {
        workspace,
        apt: Apt::new(),
        missing: Vec::new(),
    };
    setup.bpf_linker();
    setup.compiler();
    setup.test_tools();
    for (kind, place) in MOUNTS {
        mount(kind, place);
    }

    let Setup { missing, .. } = setup;
    if missing.is_empty() {
        return Ok(());
    }
    bail!("still missing: {}", missing.join(", "))
}

struct Setup<'a> {
    workspace: &'a Workspace,
    apt: Apt,
    /// What the build cannot do without and is not there at the end.
    missing: Vec<&'static str>,
}

impl Setup<'_> {
    fn bpf_linker(&mut self) {
        let is_there = || {
            toolchain::bpf_linker_version().is_ok_and(|version| version.ends_with(&format!(" {BPF_LINKER_VERSION}")))
        };
        if is_there() {
            return;
        }
        say(&format!(
            "installing bpf-linker {BPF_LINKER_VERSION}, takes some minutes"
        ));
        let mut install = process::cargo();
        install.args(["install", "bpf-linker", "--version", BPF_LINKER_VERSION, "--locked"]);
        install.arg("--quiet");
        // Cargo would build in a temporary folder, which may be small, and start from nothing
        // after a failure.
        let target = self.workspace.target.join("bpf-linker");
        install.arg("--target-dir").arg(&target);
        let result = process::output(&mut install);
        if is_there() {
            // 400 MB; a folder that stays is no more than a waste of space.
            let _ = fs::remove_dir_all(target);
        } else {
            let why = result.map_or_else(|error| format!("{error:#}"), |_| "not on PATH".into());
            say(&format!(
                "no bpf-linker ({why}); run `cargo install bpf-linker --version \
                 {BPF_LINKER_VERSION} --locked`"
            ));
            self.missing.push("bpf-linker");
        }
    }

    fn compiler(&mut self) {
        if Toolchain::find().is_ok() {
            return;
        }
        if toolchain::has_nightly() {
            // Not every installation can add components: then the distribution's may do.
            let mut add = Command::new("rustup");
            add.args(["component", "add", "rust-src", "--toolchain", "nightly"]);
            if process::output(&mut add).is_ok() && Toolchain::find().is_ok() {
                return;
            }
        }
        let result = self.apt.install(&SYSTEM_TOOLCHAIN);
        if Toolchain::find().is_err() {
            let why = result.map_or_else(|error| format!("{error:#}"), |()| "too old".into());
            say(&format!(
                "no compiler with core's source ({why}); run `rustup toolchain install nightly \
                 --component rust-src` or install {}",
                SYSTEM_TOOLCHAIN.join(" ")
            ));
            self.missing.push("a compiler for the BPF target");
        }
    }

    fn test_tools(&mut self) {
        let guests = vm::TOOLS.into_iter().filter(|_| vm::is_possible());
        for (tool, package) in TEST_TOOLS.into_iter().chain(guests) {
            if process::is_installed(tool) {
                continue;
            }
            // One by one: a package that is unknown here must not keep the others out.
            let result = self.apt.install(&[package]);
            if process::is_installed(tool) {
                continue;
            }
            let why = result.map_or_else(|error| format!("{error:#}"), |()| "not on PATH".into());
            say(&format!(
                "no {tool} ({why}); tests that use it are skipped; install {package}"
            ));
            if process::is_ci() {
                self.missing.push(tool);
            }
        }
    }
}

/// Debian's package manager.
struct Apt {
    is_fresh: bool,
}

impl Apt {
    fn new() -> Self {
        Self { is_fresh: false }
    }

    fn install(&mut self, packages: &[&str]) -> Result<()> {
        if !process::is_installed("apt-get") {
            bail!("only apt-get is known here");
        }
        if !process::is_root() {
            bail!("apt-get needs root");
        }
        if !self.is_fresh {
            // Once is enough; the packages known from before may do if it fails.
            self.is_fresh = true;
            if let Err(error) = apt_get(&["update"]) {
                say(&format!("{error:#}; going on with the packages known before"));
            }
        }
        say(&format!("installing {}", packages.join(" ")));
        let mut arguments = vec!["install", "-y", "--no-install-recommends"];
        arguments.extend(packages);
        apt_get(&arguments)
    }
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .arg("-qq")
        .args(arguments);
    process::output(&mut command).map(|_| ())
}

/// Never fatal: the tests that need the file system say so themselves.
fn mount(kind: &str, place: &str) {
    let is_mounted = fs::read_to_string("/proc/self/mounts").is_ok_and(|mounts| is_mounted(&mounts, place));
    if is_mounted || !Path::new(place).is_dir() {
        return;
    }
    if !process::is_root() {
        say(&format!(
            "{place} is not mounted; run `mount -t {kind} none {place}` as root"
        ));
        return;
    }
    let mut command = Command::new("mount");
    command.args(["-t", kind, kind, place]);
    if let Err(error) = process::output(&mut command) {
        say(&format!("{place} stays unmounted: {error:#}"));
    }
}

fn is_mounted(mounts: &str, place: &str) -> bool {
    mounts.lines().any(|line| line.split(' ').nth(1) == Some(place))
}

fn say(line: &str) {
    println!("setup: {line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_matched_by_place() {
        let mounts = "sysfs /sys sysfs rw 0 0\nbpf /sys/fs/bpf bpf rw 0 0\n";
        assert!(is_mounted(mounts, "/sys/fs/bpf"));
        assert!(!is_mounted(mounts, "/sys/fs"));
    }
}
