//! `cargo xtask vm`: the release program on other kernels, in QEMU.
//!
//! Software emulation, so that it works within virtual machines too. One virtual CPU runs at a time: this checks
//! kernels and semantics, not races.

mod guest;
mod initramfs;
mod kernel;
mod report;

use std::{
    env::consts::ARCH,
    fmt::Write as _,
    fs::{self, File},
    io::{self, Write as _},
    panic::resume_unwind,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, bail};

use crate::{
    process, staleness,
    summary::{Counts, Suite},
    workspace::Workspace,
};

use self::{
    guest::{Guest, Machine},
    kernel::{Kernel, Wanted},
    report::Report,
};

/// The name of the guests' tests, all together.
pub(crate) const SUITE: &str = "guests";

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
    /// Append psitrace's figures beside the kernels' own to this file, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
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
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<Suite> {
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
    let mut complaints = Vec::new();
    let mut jobs = Vec::new();
    for (wanted, machine) in matrix(options) {
        match Kernel::find(&wanted, &folder.join("kernels")) {
            Ok(kernel) => jobs.push((kernel, machine)),
            Err(error) => {
                println!("SKIP guest {wanted}, {machine}: {error:#}");
                complaints.push(format!("{wanted}, {machine} skipped: {error:#}"));
                total.skipped += 1;
            }
        }
    }
    let ended = in_parallel(&jobs, |(kernel, machine)| {
        let guest = Guest::new(&folder, kernel, *machine);
        boot(&guest, kernel, &programs, options.keep)
    });

    let mut lines = Vec::new();
    let mut table = Table::default();
    let mut accuracy = String::new();
    for ((kernel, machine), ended) in jobs.iter().zip(ended) {
        let (report, seconds) = ended?;
        let Counts { passed, failed, .. } = report.counts;
        lines.push(format!(
            "{}, {machine}: {passed} ok, {failed} failed, {seconds:.0} s",
            kernel.release
        ));
        table.add(kernel, *machine, &report.rows);
        let failures = report.failures.into_iter().chain(report.complaint);
        complaints.extend(failures.map(|why| format!("{}, {machine} failed: {why}", kernel.release)));
        accuracy.extend(report.accuracy.into_iter().map(|line| line + "\n"));
        total += report.counts;
    }
    if let Some(file) = &options.table {
        append(file, &accuracy).with_context(|| format!("cannot write {}", file.display()))?;
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
    Ok(Suite {
        name: SUITE.to_owned(),
        counts: total,
        complaints,
    })
}

/// Does `work` for each item, for as many at a time as there are CPUs, but not more than two.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let at_once = thread::available_parallelism().map_or(1, |cpus| cpus.get().min(2));
    let (work, next) = (&work, &AtomicUsize::new(0));
    let worker = move || {
        let mut done = Vec::new();
        while let Some((n, item)) = items.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((n, work(item)));
        }
        done
    };
    let mut done: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(worker)).collect();
        let join = |worker: thread::ScopedJoinHandle<'_, _>| worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        workers.into_iter().flat_map(join).collect()
    });
    done.sort_by_key(|(n, _)| *n);
    done.into_iter().map(|(_, result)| result).collect()
}

fn append(file: &Path, text: &str) -> io::Result<()> {
    let mut file = File::options().create(true).append(true).open(file)?;
    file.write_all(text.as_bytes())
}

/// What is booted: each kernel with PSI; one without; one with many CPUs. What takes longest comes first.
fn matrix(options: &Options) -> Vec<(Wanted, Machine)> {
    let Options { kernel, cpus, psi, .. } = options;
    if kernel.is_empty() && cpus.is_none() && psi.is_none() {
        return [
            ("6.12", "rt", 2, true),
            ("6.12", "cloud", 32, true),
            ("6.12", "cloud", 2, false),
            ("6.12", "cloud", 2, true),
            ("6.1", "cloud", 2, true),
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
        let mut cargo = workspace.cargo();
        cargo.args(["build", "--quiet", "--release"]);
        process::run(cargo.args(arguments))?;
    }
    Ok(())
}

/// Boots one guest; the seconds are those that it ran.
fn boot(guest: &Guest, kernel: &Kernel, programs: &[PathBuf], keep: bool) -> Result<(Report, f64)> {
    // Two guests talk at the same time.
    let show = |line: &str| println!("{guest} | {line}");
    guest.prepare(&initramfs::build(kernel, programs)?)?;
    show("boots");
    let start = Instant::now();
    let report = guest.run(show)?;
    let seconds = start.elapsed().as_secs_f64();
    if let Some(complaint) = &report.complaint {
        show(&format!("FAIL {complaint}"));
    }
    if report.counts.failed > 0 {
        show(&format!("its last lines, from {}:", guest.log.display()));
        report.last_lines().for_each(|line| show(&format!("    {line}")));
    }
    show(&format!("ended after {seconds:.0} s"));
    if keep {
        show(&format!("boot it again with: {}", guest.command_line()));
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
    use std::time::Duration;

    use super::*;

    #[test]
    fn options_choose_guests() {
        assert_eq!(matrix(&Options::default()).len(), 5);
        let options = Options {
            kernel: vec![Wanted::new("6.1", "rt")],
            cpus: Some(4),
            psi: Some(0),
            ..Options::default()
        };
        let machine = Machine {
            cpus: 4,
            has_psi: false,
        };
        assert_eq!(matrix(&options), [(Wanted::new("6.1", "rt"), machine)]);
    }

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..20).collect();
        let doubled = in_parallel(&items, |item| {
            // The first ones are the last to be done.
            thread::sleep(Duration::from_millis(20_u64.saturating_sub(*item)));
            item * 2
        });
        assert_eq!(doubled, items.iter().map(|item| item * 2).collect::<Vec<_>>());
    }

    #[test]
    fn the_table_grows() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("table");
        append(&file, "{}\n").expect("a file can be made");
        append(&file, "{\"cpus\":2}\n").expect("a file can grow");
        assert_eq!(fs::read_to_string(&file).expect("a file"), "{}\n{\"cpus\":2}\n");
    }
}
