//! `cargo xtask vm`: the release program on other kernels, in QEMU.
//!
//! Software emulation, so that it works within virtual machines too. One virtual CPU runs at a time: this checks
//! kernels and semantics, not races.

mod guest;
mod initramfs;
mod kernel;
mod report;

use std::{env::consts::ARCH, fmt::Write as _, fs, path::PathBuf, time::Instant};

use anyhow::{Context as _, Result, bail};

use crate::{process, staleness, summary::Counts, workspace::Workspace};

use self::{
    guest::{Guest, Machine},
    kernel::{Kernel, Wanted},
    report::Report,
};

/// What this needs, and the package that has it.
pub(crate) const TOOLS: [(&str, &str); 4] = [
    ("busybox", "busybox-static"),
    ("modinfo", "kmod"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("xz", "xz-utils"),
];

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Boot Debian's newest kernel of this series, with its cloud flavour or another: 6.1, 6.12-rt. [default: all that
    /// `cargo xtask test` boots]
    #[arg(long, value_name = "SERIES[-FLAVOUR]")]
    kernel: Vec<Wanted>,
    /// CPUs of each guest.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=64))]
    cpus: Option<u32>,
    /// Whether the guests' kernels keep PSI themselves.
    #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(u8).range(0..=1))]
    psi: Option<u8>,
    /// Keep what the guests boot from, and print the commands that boot them.
    #[arg(long)]
    keep: bool,
}

/// Why no guest can be booted here.
pub(crate) fn obstacle() -> Option<String> {
    if !is_possible() {
        return Some(format!("the guests are x86_64 machines, this is {ARCH}"));
    }
    let (tool, package) = TOOLS.iter().find(|(tool, _)| !process::is_installed(tool))?;
    Some(format!("no {tool}; install {package}, or run `cargo xtask setup`"))
}

/// Whether this machine's programs run in the guests.
pub(crate) const fn is_possible() -> bool {
    cfg!(target_arch = "x86_64")
}

/// Boots the guests and prints what each found; the counts are those of their tests.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<Counts> {
    if let Some(obstacle) = obstacle() {
        bail!(obstacle);
    }
    let start = Instant::now();
    // psitrace and an object of another layout run together, and count nonsense.
    staleness::check(workspace)?;
    build(workspace)?;
    let folder = workspace.target.join("vm");
    let programs = ["psitrace", "psi-guest", "psi-load"].map(|name| workspace.target.join("release").join(name));

    let mut total = Counts::default();
    let mut lines = Vec::new();
    let mut table = Table::default();
    for (wanted, machine) in matrix(options) {
        let kernel = match Kernel::find(&wanted, &folder.join("kernels")) {
            Ok(kernel) => kernel,
            Err(error) => {
                println!("SKIP guest {wanted}, {machine}: {error:#}");
                total.skipped += 1;
                continue;
            }
        };
        println!("{}, {machine}", kernel.release);
        let guest = Guest::new(&folder, &kernel, machine);
        let (report, seconds) = boot(&guest, &kernel, &programs, options.keep)?;
        let Report { counts, rows, .. } = report;
        let line = format!(
            "{}, {machine}: {} ok, {} failed, {seconds:.0} s",
            kernel.release, counts.passed, counts.failed
        );
        println!("{line}");
        lines.push(line);
        table.add(&kernel, machine, &rows);
        total += counts;
    }

    let results = folder.join("results.md");
    fs::write(&results, &table.text).with_context(|| format!("cannot write {}", results.display()))?;
    print!("\n{}\n", table.text);
    for line in &lines {
        println!("{line}");
    }
    println!(
        "guests: {}; their tests: {total}; {:.0} s",
        lines.len(),
        start.elapsed().as_secs_f64()
    );
    Ok(total)
}

/// What is booted: each kernel with PSI; one without; one with many CPUs.
fn matrix(options: &Options) -> Vec<(Wanted, Machine)> {
    let Options { kernel, cpus, psi, .. } = options;
    if kernel.is_empty() && cpus.is_none() && psi.is_none() {
        return [
            ("6.1", "cloud", 2, true),
            ("6.12", "cloud", 2, true),
            ("6.12", "cloud", 2, false),
            ("6.12", "rt", 2, true),
            ("6.12", "cloud", 32, true),
        ]
        .map(|(series, flavour, cpus, has_psi)| (Wanted::new(series, flavour), Machine { cpus, has_psi }))
        .to_vec();
    }
    let kernels = if kernel.is_empty() {
        vec![
            Wanted::new("6.1", "cloud"),
            Wanted::new("6.12", "cloud"),
            Wanted::new("6.12", "rt"),
        ]
    } else {
        kernel.clone()
    };
    let machine = Machine {
        cpus: cpus.unwrap_or(2),
        has_psi: psi.is_none_or(|psi| psi == 1),
    };
    kernels.into_iter().map(|kernel| (kernel, machine)).collect()
}

fn build(workspace: &Workspace) -> Result<()> {
    for arguments in [
        &["--package", "psi-user", "--bin", "psitrace"][..],
        &["--package", "tests", "--bin", "psi-guest", "--bin", "psi-load"],
    ] {
        let mut cargo = process::cargo();
        cargo
            .current_dir(&workspace.root)
            .args(["build", "--quiet", "--release"]);
        process::run(cargo.args(arguments))?;
    }
    Ok(())
}

/// Boots one guest; the seconds are those that it ran.
fn boot(guest: &Guest, kernel: &Kernel, programs: &[PathBuf], keep: bool) -> Result<(Report, f64)> {
    guest.prepare(&initramfs::build(kernel, programs)?)?;
    let start = Instant::now();
    let report = guest.run()?;
    let seconds = start.elapsed().as_secs_f64();
    if report.counts.failed > 0 {
        println!("  the last lines of {}:", guest.log.display());
        for line in report.last_lines() {
            println!("  | {line}");
        }
    }
    if keep {
        println!("  boot it again with: {}", guest.command_line());
    } else {
        guest.clean_up();
    }
    Ok((report, seconds))
}

/// All figures of all guests, in Markdown.
#[derive(Debug)]
struct Table {
    text: String,
}

impl Default for Table {
    fn default() -> Self {
        let text = "| kernel | CPUs | psi | workload | figure | kernel, or expected | psitrace | difference |\n\
                    |---|---|---|---|---|---|---|---|\n";
        Self { text: text.to_owned() }
    }
}

impl Table {
    fn add(&mut self, kernel: &Kernel, machine: Machine, rows: &[String]) {
        let Machine { cpus, has_psi } = machine;
        for row in rows {
            // Writing to a string cannot fail.
            let _ = writeln!(
                self.text,
                "| {} | {cpus} | {} | {row} |",
                kernel.release,
                u8::from(has_psi)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_choose_guests() {
        assert_eq!(matrix(&Options::default()).len(), 5);
        let options = Options {
            kernel: vec![Wanted::new("6.1", "rt")],
            cpus: Some(4),
            psi: Some(0),
            keep: false,
        };
        let machine = Machine {
            cpus: 4,
            has_psi: false,
        };
        assert_eq!(matrix(&options), [(Wanted::new("6.1", "rt"), machine)]);
    }
}
