//! `psitrace compare`: this tracer's totals beside the kernel's own.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode, time::Duration};

use psi_user::{
    model::{CgroupPressure, Quality, Snapshot},
    pressure_file::{self, RESOURCES},
    tracer::Tracer,
};
use serde::Serialize;
use tokio::time::Instant;

use super::{Failure, Waiting, Woken, block_on, give_up_capabilities, print, require_cgroup};
use crate::cli::{CompareArgs, Tracing};

/// One resource and kind.
#[derive(Debug, Serialize)]
struct Row {
    resource: &'static str,
    kind: &'static str,
    /// The kernel's total at the end, us.
    kernel_total_us: u64,
    /// This tracer's total since it was attached, us.
    psitrace_total_us: f64,
    /// Growth over the interval, us.
    kernel_us: u64,
    psitrace_us: f64,
    /// This tracer's growth less the kernel's, us.
    difference_us: f64,
    /// The same in % of the kernel's growth; absent when that is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference_percent: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Comparison {
    schema: &'static str,
    cgroup: String,
    interval_ns: u64,
    source: psi_user::model::Source,
    quality: Quality,
    rows: Vec<Row>,
}

/// Both sides weigh CPUs over windows, and their length and place show in the totals, by percents where the load of
/// the CPUs is uneven. Each read of a kernel file closes the kernel's window; so both are sampled together.
const CO_SAMPLING: Duration = Duration::from_millis(250);

type Key = (&'static str, &'static str);

/// Both sides at one instant.
struct Sample {
    /// The cgroup's id.
    id: u64,
    kernel: BTreeMap<Key, u64>,
    ours: BTreeMap<Key, f64>,
    snapshot: Snapshot,
}

pub(crate) fn run(tracing: &Tracing, args: &CompareArgs) -> Result<ExitCode, Failure> {
    let options = tracing.options();
    if options.hierarchy != psi_user::hierarchy::V2 {
        return Err(Failure::Usage(
            "compare works on the v2 hierarchy: the kernel keeps PSI only there".to_owned(),
        ));
    }
    let mut tracer = Tracer::attach(&options)?;
    require_cgroup(tracer.hierarchy(), &args.cgroup)?;
    let path = match args.cgroup.trim_end_matches('/') {
        "" => "/".to_owned(),
        path => path.to_owned(),
    };
    let files: Vec<(&'static str, PathBuf)> = RESOURCES
        .iter()
        .map(|&resource| {
            (
                resource,
                pressure_file::path(&tracer.hierarchy().directory(&path), path == "/", resource),
            )
        })
        .collect();
    if kernel_totals(&files)?.is_empty() {
        return Err(Failure::Cannot(format!(
            "the kernel keeps no PSI for {path}: built without it, off at boot (psi=1 turns it on), or off for this \
             cgroup (cgroup.pressure)"
        )));
    }
    // Under load a waiting comparison would read the two sides at different times. Without permission it just may.
    let _ = rustix::process::setpriority_process(None, -20);
    give_up_capabilities()?;
    block_on(async {
        let mut waiting = Waiting::new(&tracer)?;
        let before = sample(&mut tracer, &files, &path)?;
        let end = Instant::now() + args.duration;
        let mut woken = Woken::Time;
        while Instant::now() + CO_SAMPLING < end && woken == Woken::Time {
            woken = waiting.until(&mut tracer, Instant::now() + CO_SAMPLING).await?;
            let _ = kernel_totals(&files)?;
            tracer.sample();
        }
        if woken == Woken::Time {
            woken = waiting.until(&mut tracer, end).await?;
        }
        let after = sample(&mut tracer, &files, &path)?;
        if after.id != before.id {
            return Err(Failure::Usage(format!(
                "the cgroup {path} was replaced by another of that name meanwhile"
            )));
        }
        let comparison = compare(&before, after, path);
        let text = if args.json {
            serde_json::to_string(&comparison).unwrap_or_default() + "\n"
        } else {
            table(&comparison, woken)
        };
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    })
}

fn kernel_totals(files: &[(&'static str, PathBuf)]) -> Result<BTreeMap<Key, u64>, Failure> {
    let mut totals = BTreeMap::new();
    for (resource, file) in files {
        let read = pressure_file::read(file)
            .map_err(|error| Failure::Cannot(format!("reading {}: {error}", file.display())))?;
        let Some(found) = read else { continue };
        totals.extend(found.some_us.map(|us| ((*resource, "some"), us)));
        totals.extend(found.full_us.map(|us| ((*resource, "full"), us)));
    }
    Ok(totals)
}

fn sample(tracer: &mut Tracer, files: &[(&'static str, PathBuf)], path: &str) -> Result<Sample, Failure> {
    // What takes time comes first, so that the two sides are read right after each other.
    tracer.housekeeping()?;
    let kernel = kernel_totals(files)?;
    tracer.sample();
    let snapshot = tracer.snapshot()?;
    let Some(cgroup) = snapshot.cgroups.iter().find(|cgroup| cgroup.path == path) else {
        return Err(Failure::Usage(format!(
            "the cgroup {path} is gone, has no slot (--max-cgroups), or is deeper than 31 levels"
        )));
    };
    let (id, ours) = (cgroup.id, totals(cgroup));
    Ok(Sample {
        id,
        kernel,
        ours,
        snapshot,
    })
}

fn totals(cgroup: &CgroupPressure) -> BTreeMap<Key, f64> {
    let us = |ns: u64| ns as f64 / 1000.0;
    let mut totals = BTreeMap::new();
    let resources = [
        ("cpu", Some(cgroup.cpu)),
        ("memory", cgroup.memory),
        ("io", Some(cgroup.io)),
    ];
    for (resource, figures) in resources {
        if let Some(figures) = figures {
            totals.insert((resource, "some"), us(figures.some.total_ns));
            totals.insert((resource, "full"), us(figures.full.total_ns));
        }
    }
    totals.extend(cgroup.irq.map(|irq| (("irq", "full"), us(irq.full.total_ns))));
    totals
}

fn compare(before: &Sample, after: Sample, cgroup: String) -> Comparison {
    let mut rows = Vec::new();
    for resource in RESOURCES {
        for kind in ["some", "full"] {
            let key = (resource, kind);
            let (Some(&kernel_total_us), Some(&psitrace_total_us)) = (after.kernel.get(&key), after.ours.get(&key))
            else {
                continue;
            };
            let kernel_us = kernel_total_us - before.kernel.get(&key).copied().unwrap_or(0).min(kernel_total_us);
            let psitrace_us = psitrace_total_us - before.ours.get(&key).copied().unwrap_or(0.0);
            let difference_us = psitrace_us - kernel_us as f64;
            let difference_percent = (kernel_us != 0).then(|| difference_us * 100.0 / kernel_us as f64);
            rows.push(Row {
                resource,
                kind,
                kernel_total_us,
                psitrace_total_us,
                kernel_us,
                psitrace_us,
                difference_us,
                difference_percent,
            });
        }
    }
    Comparison {
        schema: "psitrace-compare/1",
        cgroup,
        interval_ns: after.snapshot.interval_ns,
        source: after.snapshot.source,
        quality: after.snapshot.quality,
        rows,
    }
}

fn table(comparison: &Comparison, woken: Woken) -> String {
    use std::fmt::Write as _;
    let seconds = comparison.interval_ns as f64 / 1e9;
    let note = if woken == Woken::Signal { ", cut short" } else { "" };
    let mut text = format!("{} over {seconds:.1} s{note}, us\n", comparison.cgroup.escape_debug());
    let _ = writeln!(
        text,
        "{:<12} {:>15} {:>15} {:>12} {:>12} {:>11} {:>8}",
        "", "kernel total", "our total", "kernel grew", "we grew", "difference", "%"
    );
    for row in &comparison.rows {
        let percent = row
            .difference_percent
            .map_or_else(|| "-".to_owned(), |percent| format!("{percent:+.2}"));
        let _ = writeln!(
            text,
            "{:<12} {:>15} {:>15.0} {:>12} {:>12.0} {:>+11.0} {percent:>8}",
            format!("{} {}", row.resource, row.kind),
            row.kernel_total_us,
            row.psitrace_total_us,
            row.kernel_us,
            row.psitrace_us,
            row.difference_us,
        );
    }
    let memstall = comparison
        .source
        .memstall
        .map_or("not measured", |source| source.name());
    let Quality {
        missed_switches,
        repaired,
        storage_failures,
        program_misses,
        rejected_readings,
        ..
    } = comparison.quality;
    let _ = writeln!(
        text,
        "memory from {memstall}; missed switches {missed_switches}, repaired {repaired}, storage failures \
         {storage_failures}, program misses {program_misses}, rejected readings {rejected_readings}"
    );
    text
}
