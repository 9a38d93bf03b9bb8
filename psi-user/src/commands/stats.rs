//! `psitrace stats`: what tracing costs here and now.

use std::{process::ExitCode, time::Duration};

use psi_user::{
    info,
    model::{Flush, Quality},
    tracer::Tracer,
};
use serde::Serialize;
use tokio::time::Instant;

use super::{
    Failure, Waiting, Woken, block_on, give_up_capabilities,
    holds::{Column, table, thousands},
    next_time, print_report,
};
use crate::cli::StatsArgs;

#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    duration_ns: u64,
    flush: Flush,
    maps: Vec<MapLine>,
    /// Sum over `maps`.
    map_bytes: u64,
    /// What the documented formula says.
    formula_bytes: u64,
    /// Absent while kernel.bpf_stats_enabled is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    programs: Option<Vec<ProgramLine>>,
    quality: Quality,
}

#[derive(Debug, Serialize)]
struct MapLine {
    name: String,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct ProgramLine {
    name: String,
    runs: u64,
    /// Absent when it never ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    average_ns: Option<u64>,
}

pub(crate) fn run(args: &StatsArgs) -> Result<ExitCode, Failure> {
    const INTERVAL: Duration = Duration::from_secs(1);
    let mut tracer = Tracer::attach(&args.tracing.options())?;
    give_up_capabilities()?;
    let start = Instant::now();
    let end = start + args.duration;
    block_on(async {
        let mut waiting = Waiting::new(&tracer)?;
        let mut last = start;
        while last < end {
            last = next_time(last, INTERVAL).min(end);
            if waiting.until(&mut tracer, last).await? == Woken::Signal {
                break;
            }
            tracer.snapshot()?;
        }
        Ok(())
    })?;
    let report = report(&tracer, start.elapsed());
    print_report(&report, args.json, lines)?;
    Ok(ExitCode::SUCCESS)
}

fn report(tracer: &Tracer, duration: Duration) -> Report {
    let maps: Vec<MapLine> = tracer
        .map_bytes()
        .iter()
        .map(|(name, bytes)| MapLine {
            name: name.clone(),
            bytes: *bytes,
        })
        .collect();
    let programs = info::counts_runs().unwrap_or(false).then(|| {
        let line = |runs: info::ProgramRuns| ProgramLine {
            name: runs.name,
            runs: runs.count,
            average_ns: runs.time_ns.checked_div(runs.count),
        };
        tracer.program_runs().into_iter().map(line).collect()
    });
    Report {
        schema: "psitrace-stats/1",
        duration_ns: duration.as_nanos() as u64,
        flush: tracer.flush_figures(),
        map_bytes: maps.iter().map(|map| map.bytes).sum(),
        maps,
        formula_bytes: tracer.sizes().bytes(),
        programs,
        quality: tracer.quality(),
    }
}

fn lines(report: &Report) -> String {
    use std::fmt::Write as _;
    let Flush { cost, hold_us, .. } = &report.flush;
    let mut text = table("Hold time", &[Column::new("flush", hold_us)]);
    // Writing to a string cannot fail.
    let mut line = |line: String| _ = writeln!(text, "{line}");
    line(format!("longest hold {} ns", thousands(hold_us.longest_ns)));
    let us = |ns: u64| thousands(ns / 1000);
    line(format!(
        "\n{} flushes in {:.1} s, {} records, {} us in all, longest {} us",
        thousands(cost.flushes),
        report.duration_ns as f64 / 1e9,
        thousands(cost.records),
        us(cost.time_ns),
        us(cost.longest_ns)
    ));
    line(format!(
        "\nmaps: {} bytes, by the formula {}",
        thousands(report.map_bytes),
        thousands(report.formula_bytes)
    ));
    for map in &report.maps {
        line(format!("{:>14} {}", thousands(map.bytes), map.name));
    }
    if let Some(programs) = &report.programs {
        line("\n          runs  average ns  program".to_owned());
        for program in programs {
            let average = program.average_ns.map_or_else(|| "-".to_owned(), thousands);
            line(format!(
                "{:>14} {average:>11}  {}",
                thousands(program.runs),
                program.name
            ));
        }
    } else {
        line("\nprograms: not timed, kernel.bpf_stats_enabled is off (sysctl kernel.bpf_stats_enabled=1)".to_owned());
    }
    line("\nquality:".to_owned());
    for (name, count) in report.quality.counters() {
        line(format!("{:>14} {name}", thousands(count)));
    }
    text
}
