//! `psitrace bench overhead`: what it costs to be attached, and what of that each option saves.
//!
//! The loads run three cgroups deep, as in the series that sped the kernel's PSI up.

use std::{fmt::Write as _, path::Path, process::ExitCode};

use serde::Serialize;

use super::{
    loads::Load,
    machine::Machine,
    nested::Nested,
    pairs::{Pairs, Summary, median},
    subject::{Subject, loaded_at_switches, require_detached},
};
use crate::{
    cli::BenchPairsArgs,
    commands::{Failure, print_report},
};

/// How deep the loads run: /user.slice/user-0.slice/session-4.scope in the series.
const LEVELS: usize = 3;

const SUBJECTS: [Subject; 7] = [
    Subject::Detached,
    Subject::Empty,
    Subject::Tracer(&[]),
    Subject::Tracer(&["--no-irq"]),
    Subject::Tracer(&["--no-memstall"]),
    Subject::Tracer(&["--only-leaf"]),
    Subject::Tracer(&["--track", "/"]),
];

/// What others measured of the kernel's PSI, for the foot of the table.
const ELSEWHERE: &str = "\
Elsewhere, of the kernel's PSI:
  perf bench sched pipe, 3 cgroups deep (PSI optimizations v4, 2022; mean of the run's seconds)
    before 8.95, patched 8.62 (-3.67 %), patched and only the leaf 8.11 (-9.43 %)
  hackbench with pipes (report of 2018): 6 to 10 % slower with PSI than without
";

#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    machine: Machine,
    loads: Vec<Row>,
    /// Programs at the scheduler's switches once all is done.
    left_loaded: usize,
}

#[derive(Debug, Serialize)]
struct Row {
    load: Load,
    bar: f64,
    /// Median of the runs with nothing attached, s.
    detached_s: f64,
    subjects: Vec<Cell>,
}

#[derive(Debug, Serialize)]
struct Cell {
    subject: String,
    /// Absent without a pair.
    #[serde(flatten)]
    ratio: Option<Summary>,
}

pub(super) fn run(args: &BenchPairsArgs) -> Result<ExitCode, Failure> {
    require_detached()?;
    let machine = Machine::here();
    let nested = Nested::make(LEVELS)?;
    let mut rows = Vec::new();
    for &load in args.loads(&Load::ALL) {
        rows.push(row(load, nested.at(LEVELS), args.pairs)?);
    }
    let report = Report {
        schema: "psitrace-bench-overhead/1",
        machine,
        loads: rows,
        left_loaded: loaded_at_switches(),
    };
    print_report(&report, args.json, table)?;
    Ok(ExitCode::SUCCESS)
}

fn row(load: Load, cgroup: &Path, pairs: u32) -> Result<Row, Failure> {
    let mut ratios: [Pairs; SUBJECTS.len()] = Default::default();
    let mut detached = Vec::new();
    // The first run finds cold caches.
    load.time(cgroup)?;
    let mut before = load.time(cgroup)?;
    for _ in 0..pairs {
        for (subject, ratios) in SUBJECTS.iter().zip(&mut ratios) {
            let attached = subject.attach()?;
            let with = load.time(cgroup)?;
            drop(attached);
            let after = load.time(cgroup)?;
            ratios.push(before, with, after);
            detached.push(after);
            before = after;
        }
    }
    Ok(Row {
        load,
        bar: load.bar(),
        detached_s: median(&detached),
        subjects: SUBJECTS
            .iter()
            .zip(&ratios)
            .map(|(subject, ratios)| Cell {
                subject: subject.title(),
                ratio: ratios.summary(),
            })
            .collect(),
    })
}

fn table(report: &Report) -> String {
    let mut text = format!("{}\n", report.machine.line());
    // Writing to a string cannot fail; here and below.
    for row in &report.loads {
        let _ = writeln!(
            text,
            "\n{} ({:.3} s detached), over detached; bar for attached: {:.2}",
            row.load.title(),
            row.detached_s,
            row.bar
        );
        for Cell { subject, ratio } in &row.subjects {
            let Some(ratio) = ratio else { continue };
            let _ = writeln!(text, "  {subject:<16} {}", ratio.text());
        }
    }
    let _ = writeln!(
        text,
        "\nPrograms at sched_switch afterwards: {}\n\n{ELSEWHERE}",
        report.left_loaded
    );
    text
}
