//! A long run: psitrace under loads and cgroups that come and go. At the end nothing may be counted any more, nothing
//! may have drifted, and its memory may not have grown.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{self, Write as _},
    process::ExitCode,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use clap::Parser;
use serde_json::Value;
use tempfile::NamedTempFile;
use tests::{
    cgroup::Cgroup,
    disk,
    load::{self, Load, Working},
    machine,
    record::{Record, counts_nothing},
    running::Dump,
};

#[derive(Debug, Parser)]
struct Cli {
    /// How long the loads last
    #[arg(long, default_value_t = 60)]
    minutes: u64,
}

const INTERVAL: &str = "5s";
const RECORDS_A_MINUTE: u64 = 12;
/// Rows of the table.
const ROWS: u64 = 12;
/// Two audits, which are half a minute apart, and some.
const AFTERWARDS: u64 = RECORDS_A_MINUTE * 5 / 4;
/// By how much the process may grow after the first tenth of the time: tables that find their size.
const GROWTH: u64 = 1 << 20;
const FIGURES: [(&str, &str); 6] = [
    ("cpu", "some"),
    ("cpu", "full"),
    ("io", "some"),
    ("io", "full"),
    ("memory", "some"),
    ("memory", "full"),
];

/// What one row tells.
#[derive(Clone, Debug)]
struct Row {
    minute: u64,
    seconds: f64,
    cgroups_made: u64,
    rss: u64,
    cpu: Duration,
    quality: Value,
}

fn main() -> io::Result<ExitCode> {
    let Cli { minutes } = Cli::parse();
    let psi_load = load::program().expect("psi-load lies beside this program");
    let psi_load = psi_load.to_str().expect("a name in UTF-8");
    let outer = Cgroup::new("soak");
    let steady = outer.child("steady");
    // The build folder is on a disk.
    let program = env::current_exe()?;
    let file = disk::filled(program.parent().expect("a folder"));
    let mut dump = Dump::start(&["--counts", "--interval", INTERVAL, "--cgroup", &outer.glob()]);
    let first = dump.record();
    let kernel_before = kernel_totals(&outer);

    let is_over = AtomicBool::new(false);
    let made = AtomicU64::new(0);
    let mut rows = Vec::new();
    let last_under_load = thread::scope(|scope| {
        scope.spawn(|| churn(psi_load, &outer, &is_over, &made));
        let mut loads: Vec<Working> = Vec::new();
        let mut last = first.clone();
        for record in 0..minutes * RECORDS_A_MINUTE {
            if record % RECORDS_A_MINUTE == 0 {
                // One after the other is replaced: a minute each.
                let which = record / RECORDS_A_MINUTE;
                let fresh = start(psi_load, &steady, which, &file);
                if loads.len() < KINDS as usize {
                    loads.push(fresh);
                } else {
                    loads[(which % KINDS) as usize] = fresh;
                }
            }
            last = dump.record();
            let every = (minutes * RECORDS_A_MINUTE / ROWS).max(1);
            if (record + 1) % every == 0 {
                let row = Row {
                    minute: (record + 1) / RECORDS_A_MINUTE,
                    seconds: (record + 1) as f64 * 60.0 / RECORDS_A_MINUTE as f64,
                    cgroups_made: made.load(Relaxed),
                    rss: rss(dump.pid()),
                    cpu: cpu_time(dump.pid()),
                    quality: last.json["quality"].clone(),
                };
                eprintln!("{row:?}");
                rows.push(row);
            }
        }
        is_over.store(true, Relaxed);
        last
    });
    let kernel_after = kernel_totals(&outer);

    let mut settled = dump.record();
    for _ in 0..AFTERWARDS {
        settled = dump.record();
    }
    let still = dump.record();
    dump.finish();

    let mut wrong = check_end(&outer, &settled, &still);
    wrong.extend(check_memory(&rows));
    report(
        minutes,
        &outer,
        &rows,
        (&first, &last_under_load),
        (&kernel_before, &kernel_after),
        &wrong,
    )?;
    Ok(if wrong.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Kinds of loads.
const KINDS: u64 = 5;

fn start(psi_load: &str, cgroup: &Cgroup, which: u64, file: &NamedTempFile) -> Working {
    let load = || Load::new(psi_load).within(cgroup).behind();
    match which % KINDS {
        0 => load().start(&["spin", "--threads", "2"]),
        1 => load().start(&["ping-pong", "--pairs", "4"]),
        2 => load().start_on(&["read", "--threads", "4"], file.path()),
        3 => load().start(&["processes"]),
        _ => load().start_on(&["read-cached"], file.path()),
    }
}

/// Makes cgroups, uses and removes them.
fn churn(psi_load: &str, outer: &Cgroup, is_over: &AtomicBool, made: &AtomicU64) {
    const AT_ONCE: u64 = 20;
    let mut read = Instant::now();
    while !is_over.load(Relaxed) {
        let number = made.load(Relaxed);
        let cgroups: Vec<Cgroup> = (number..number + AT_ONCE)
            .map(|number| outer.child(&format!("churn-{number}")))
            .collect();
        for cgroup in &cgroups {
            Load::new(psi_load).within(cgroup).behind().run(&["nothing"]);
        }
        cgroups.into_iter().for_each(Cgroup::remove);
        made.fetch_add(AT_ONCE, Relaxed);
        // The kernel keeps times in 32 bits of ns: who does not read for 4.3 s may miss as much. Not more often than it would
        // sum them up itself: shorter windows weigh CPUs otherwise.
        if read.elapsed() >= Duration::from_secs(2) {
            read = Instant::now();
            let _ = kernel_totals(outer);
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Without tasks nothing is counted, and no total grows.
fn check_end(outer: &Cgroup, settled: &Record, still: &Record) -> Vec<String> {
    let mut wrong = Vec::new();
    for cgroup in still.cgroups() {
        if !counts_nothing(cgroup) {
            wrong.push(format!(
                "expected no counts, saw {} in {}",
                cgroup["counts"], cgroup["path"]
            ));
        }
    }
    for (resource, kind) in FIGURES {
        let total = |record: &Record| record.cgroup(outer.path())?[resource][kind]["total_us"].as_f64();
        if total(settled) != total(still) {
            wrong.push(format!(
                "expected that {resource} {kind} stands still, saw {:?} become {:?} us",
                total(settled),
                total(still)
            ));
        }
    }
    let (missed, drift) = (still.quality("missed_switches"), still.quality("drift"));
    // A task whose switches the kernel hid is found by the audit.
    if drift > missed {
        wrong.push(format!(
            "expected no drift but by missed switches, saw {drift} of {missed}"
        ));
    }
    // Storage failures and rejected readings are told in the table: under a lock the kernel's allocator may refuse, and a
    // virtual CPU may be taken away in the middle of a program.
    for counter in ["overflows", "program_misses", "cgroups_without_slot"] {
        let count = still.quality(counter);
        if count > 0 {
            wrong.push(format!("expected {counter} 0, saw {count}"));
        }
    }
    wrong
}

fn check_memory(rows: &[Row]) -> Option<String> {
    let (first, last) = (rows.get(rows.len() / 10)?, rows.last()?);
    (last.rss > first.rss + GROWTH).then(|| {
        format!(
            "expected that memory stays as it was at minute {}, {} KiB, saw {} KiB",
            first.minute,
            first.rss / 1024,
            last.rss / 1024
        )
    })
}

fn report(
    minutes: u64,
    outer: &Cgroup,
    rows: &[Row],
    ours: (&Record, &Record),
    kernel: (&Totals, &Totals),
    wrong: &[String],
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let verdict = if wrong.is_empty() {
        "all as it should be"
    } else {
        "FAILED"
    };
    writeln!(
        out,
        "\n{} min on {}, {} CPUs: {verdict}.\n",
        minutes,
        machine::kernel(),
        machine::cpus().len()
    )?;
    for line in wrong {
        writeln!(out, "- {line}")?;
    }
    if !wrong.is_empty() {
        writeln!(out)?;
    }
    writeln!(
        out,
        "| minute | cgroups made and removed | memory, MiB | CPU, % | missed | repaired | drift | storage failures | rejected |\n\
         |--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for Row {
        minute,
        seconds,
        cgroups_made,
        rss,
        cpu,
        quality,
    } in rows
    {
        writeln!(
            out,
            "| {minute} | {cgroups_made} | {:.1} | {:.2} | {} | {} | {} | {} | {} |",
            *rss as f64 / f64::from(1 << 20),
            cpu.as_secs_f64() * 100.0 / seconds,
            quality["missed_switches"],
            quality["repaired"],
            quality["drift"],
            quality["storage_failures"],
            quality["rejected_readings"]
        )?;
    }
    writeln!(
        out,
        "\nBeside the kernel's PSI for the loads' cgroup over the whole time:\n\n\
         | figure | kernel, s | psitrace, s | % |\n|---|--:|--:|--:|"
    )?;
    for (resource, kind) in FIGURES {
        let key = format!("{resource} {kind}");
        let (Some(before), Some(after)) = (kernel.0.get(&key), kernel.1.get(&key)) else {
            continue;
        };
        let kernel = (after - before) as f64 / 1e6;
        let total = |record: &Record| record.total_us(outer.path(), resource, kind);
        let ours = (total(ours.1) - total(ours.0)) / 1e6;
        let percent = if kernel > 0.0 {
            format!("{:+.2}", (ours - kernel) * 100.0 / kernel)
        } else {
            "-".to_owned()
        };
        writeln!(out, "| {key} | {kernel:.2} | {ours:.2} | {percent} |")?;
    }
    writeln!(out)
}

/// The kernel's totals, us, by figure; none where it keeps none.
type Totals = BTreeMap<String, u64>;

fn kernel_totals(cgroup: &Cgroup) -> Totals {
    let mut totals = Totals::new();
    for resource in ["cpu", "io", "memory"] {
        let text = fs::read_to_string(cgroup.dir().join(format!("{resource}.pressure"))).unwrap_or_default();
        for line in text.lines() {
            let kind = line.split_whitespace().next();
            let total = line
                .rsplit_once("total=")
                .and_then(|(_, total)| total.trim().parse().ok());
            if let (Some(kind), Some(total)) = (kind, total) {
                totals.insert(format!("{resource} {kind}"), total);
            }
        }
    }
    totals
}

/// Resident memory of a process, bytes.
fn rss(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("psitrace runs");
    let kilobytes = status.lines().find_map(|line| {
        line.strip_prefix("VmRSS:")?
            .split_whitespace()
            .next()?
            .parse::<u64>()
            .ok()
    });
    kilobytes.expect("VmRSS") * 1024
}

/// CPU time of a process.
fn cpu_time(pid: u32) -> Duration {
    let schedstat = fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("psitrace runs");
    let ns = schedstat.split_whitespace().next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.expect("a time"))
}
