//! `psitrace bench depth`: what each level of the cgroup tree adds, beside what it adds to the kernel's own PSI.

use std::{fmt::Write as _, process::ExitCode};

use serde::Serialize;

use super::{
    loads::Load,
    machine::Machine,
    nested::Nested,
    pairs::{Pairs, Summary, median},
    subject::{Subject, require_detached},
};
use crate::{
    cli::BenchPairsArgs,
    commands::{Failure, print_report},
};

const DEPTHS: [usize; 4] = [1, 4, 8, 16];

#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    machine: Machine,
    loads: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    load: Load,
    depths: Vec<Depth>,
    /// What a level adds to the time with psitrace attached, % of the time with none: least squares over the depths. Absent if
    /// noise explains it.
    per_level: Option<f64>,
    /// What a level adds to the time with the kernel's PSI in these cgroups, likewise; absent where it has none.
    kernel_per_level: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Depth {
    levels: usize,
    /// Median of the runs with nothing attached, s.
    detached_s: f64,
    /// psitrace attached over detached.
    attached: Option<Summary>,
    /// With the kernel's PSI in these cgroups over without; absent where it cannot be turned off there.
    kernel: Option<Summary>,
}

pub(super) fn run(args: &BenchPairsArgs) -> Result<ExitCode, Failure> {
    require_detached()?;
    let machine = Machine::here();
    let nested = Nested::make(DEPTHS[DEPTHS.len() - 1])?;
    let mut rows = Vec::new();
    for &load in args.loads(&[Load::Pipe, Load::Messaging]) {
        rows.push(row(load, &nested, args.pairs)?);
    }
    let report = Report {
        schema: "psitrace-bench-depth/1",
        machine,
        loads: rows,
    };
    print_report(&report, args.json, table)?;
    Ok(ExitCode::SUCCESS)
}

fn row(load: Load, nested: &Nested, pairs: u32) -> Result<Row, Failure> {
    let mut attached: [Pairs; DEPTHS.len()] = Default::default();
    let mut kernel: [Pairs; DEPTHS.len()] = Default::default();
    let mut detached: [Vec<f64>; DEPTHS.len()] = Default::default();
    load.time(nested.at(1))?;
    for _ in 0..pairs {
        for (n, &depth) in DEPTHS.iter().enumerate() {
            let cgroup = nested.at(depth);
            let first = load.time(cgroup)?;
            let tracer = Subject::Tracer(&[]).attach()?;
            let with = load.time(cgroup)?;
            drop(tracer);
            let second = load.time(cgroup)?;
            attached[n].push(first, with, second);
            detached[n].extend([first, second]);
            if nested.switch_psi(false) {
                let without = load.time(cgroup)?;
                nested.switch_psi(true);
                let third = load.time(cgroup)?;
                // The reverse of the pairs above: what is measured is here without.
                kernel[n].push(without, f64::midpoint(second, third), without);
            }
        }
    }
    let depths: Vec<Depth> = DEPTHS
        .iter()
        .enumerate()
        .map(|(n, &depth)| Depth {
            levels: depth,
            detached_s: median(&detached[n]),
            attached: attached[n].summary(),
            kernel: kernel[n].summary(),
        })
        .collect();
    Ok(Row {
        load,
        per_level: slope(&depths, |depth| depth.attached),
        kernel_per_level: slope(&depths, |depth| depth.kernel),
        depths,
    })
}

/// By how much a ratio grows a level, %; none if one is missing, or if the deepest is not told from noise.
fn slope(depths: &[Depth], ratio: impl Fn(&Depth) -> Option<Summary>) -> Option<f64> {
    let points: Vec<(f64, f64)> = depths
        .iter()
        .map(|depth| Some((depth.levels as f64, ratio(depth)?.median)))
        .collect::<Option<_>>()?;
    if !depths.last().and_then(&ratio).is_some_and(|deepest| deepest.is_told()) {
        return None;
    }
    let count = points.len() as f64;
    let (x, y) = points
        .iter()
        .fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let (over, under) = points.iter().fold((0.0, 0.0), |(over, under), point| {
        (
            over + (point.0 - x) * (point.1 - y),
            under + (point.0 - x) * (point.0 - x),
        )
    });
    (under > 0.0).then(|| over / under * 100.0)
}

fn table(report: &Report) -> String {
    let mut text = format!("{}\n", report.machine.line());
    let cell = |summary: Option<Summary>| summary.map_or_else(|| "-".to_owned(), |summary| summary.text());
    let level = |slope: Option<f64>| slope.map_or_else(|| "-".to_owned(), |slope| format!("{slope:+.2} % a level"));
    // Writing to a string cannot fail; here and below.
    for row in &report.loads {
        let _ = writeln!(
            text,
            "\n{}\n  {:>6} {:>12}  {:<24} {:<24}",
            row.load.title(),
            "levels",
            "detached, s",
            "psitrace attached",
            "kernel's PSI there"
        );
        for depth in &row.depths {
            let _ = writeln!(
                text,
                "  {:>6} {:>12.3}  {:<24} {:<24}",
                depth.levels,
                depth.detached_s,
                cell(depth.attached),
                cell(depth.kernel)
            );
        }
        let _ = writeln!(
            text,
            "  {:>6} {:>12}  {:<24} {:<24}",
            "",
            "",
            level(row.per_level),
            level(row.kernel_per_level)
        );
    }
    text
}
