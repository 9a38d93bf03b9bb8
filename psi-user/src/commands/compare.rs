//! `psitrace compare`: this tracer's totals beside the kernel's own.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use psi_user::{
    fields::{Figure, Kind, Measure, Resource, Stall},
    load::Options,
    model::{CgroupPressure, Quality, Snapshot},
    pressure_file::{self, Totals},
    tracer::Tracer,
};
use serde::Serialize;

use super::{
    Failure, Waiting, Woken, block_on, complain, give_up_capabilities, print_report, printable, require_cgroup,
    require_tracked,
};
use crate::cli::CompareArgs;

/// One resource and kind of one cgroup.
#[derive(Debug, Serialize)]
struct Row {
    cgroup: String,
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
    /// This tracer's interval less the kernel's, us: the two cannot be read at the same instant.
    skew_us: f64,
}

#[derive(Debug, Serialize)]
struct Comparison {
    schema: &'static str,
    interval_ns: u64,
    source: psi_user::model::Source,
    quality: Quality,
    rows: Vec<Row>,
}

/// Both sides weigh CPUs over windows, and their length and place show in the totals, by percents where the load of
/// the CPUs is uneven. Each read of a kernel file closes the kernel's window; so both are sampled together.
const CO_SAMPLING: Duration = Duration::from_millis(250);

/// Times that both sides are looked at for one sample, see [`Tracer::has_unread`].
const MOST_LOOKS: u32 = 20;

/// A cgroup to compare.
struct Target {
    path: String,
    directory: PathBuf,
    /// The kernel's files, by resource.
    files: Vec<(Resource, PathBuf)>,
}

/// The kernel's totals of one cgroup, us, and when each was read.
type KernelTotals = HashMap<Stall, (u64, Instant)>;

/// Both sides of one cgroup at one instant.
struct Sides {
    /// The cgroup's id.
    id: u64,
    kernel: KernelTotals,
    ours: HashMap<Stall, f64>,
}

/// Both sides of all cgroups at one instant.
struct Sample {
    /// By path; not of those that are not in the snapshot.
    sides: HashMap<String, Sides>,
    snapshot: Snapshot,
}

pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode, Failure> {
    let options = args.tracing.options();
    if options.hierarchy != psi_user::hierarchy::V2 {
        return Err(Failure::Usage(
            "compare works on the v2 hierarchy: the kernel keeps PSI only there".to_owned(),
        ));
    }
    let mut tracer = Tracer::attach(&options)?;
    let mut targets = args
        .cgroups
        .iter()
        .map(|cgroup| Target::new(&tracer, &options, cgroup))
        .collect::<Result<Vec<_>, _>>()?;
    // One that is named twice is shown once.
    let mut named = HashSet::new();
    targets.retain(|target| named.insert(target.path.clone()));
    // Under load a waiting comparison would read the two sides at different times. Without permission it just may.
    let _ = rustix::process::setpriority_process(None, -20);
    give_up_capabilities()?;
    block_on(async {
        let mut waiting = Waiting::new(&tracer)?;
        let before = sample(&mut tracer, &targets)?;
        go_on_without(&mut targets, |target| {
            (!before.sides.contains_key(&target.path)).then(|| target.absence())
        })?;
        let mut end = Instant::now() + args.duration;
        let mut woken = Woken::Time;
        while Instant::now() + CO_SAMPLING < end && woken == Woken::Time {
            woken = waiting
                .until(&mut tracer, (Instant::now() + CO_SAMPLING).into())
                .await?;
            let mut is_any_left = false;
            for target in &targets {
                is_any_left |= target.close_kernel_window()?;
            }
            tracer.sample();
            if !is_any_left {
                end = Instant::now();
            }
        }
        if woken == Woken::Time {
            woken = waiting.until(&mut tracer, end.into()).await?;
        }
        let after = sample(&mut tracer, &targets)?;
        go_on_without(&mut targets, |target| {
            match (before.sides.get(&target.path), after.sides.get(&target.path)) {
                (Some(before), Some(after)) if before.id == after.id => None,
                (Some(_), Some(_)) => Some("was replaced by another of that name meanwhile"),
                _ => Some(target.absence()),
            }
        })?;
        let comparison = compare(&targets, &before, after);
        print_report(&comparison, args.json, |comparison| table(comparison, woken))?;
        Ok(ExitCode::SUCCESS)
    })
}

impl Target {
    fn new(tracer: &Tracer, options: &Options, cgroup: &str) -> Result<Self, Failure> {
        require_cgroup(tracer.hierarchy(), cgroup)?;
        let path = match cgroup.trim_end_matches('/') {
            "" => "/".to_owned(),
            path => path.to_owned(),
        };
        require_tracked(tracer, options, &path)?;
        if options.only_leaf && (path == "/" || tracer.hierarchy().children(&path).next().is_some()) {
            return Err(Failure::Usage(format!(
                "with --only-leaf {path} counts its own tasks only, the kernel those of the cgroups below as well: compare \
                 a cgroup without any"
            )));
        }
        let directory = tracer.hierarchy().directory(&path);
        let file = |resource| pressure_file::path(&directory, path == "/", resource);
        let mut target = Self {
            files: Resource::ALL.map(|resource| (resource, file(resource))).to_vec(),
            path,
            directory,
        };
        let kept = target.kernel_totals()?;
        target
            .files
            .retain(|(resource, _)| kept.keys().any(|stall| stall.resource == *resource));
        if target.files.is_empty() {
            return Err(Failure::Cannot(format!(
                "the kernel keeps no PSI for {}: built without it, off at boot (psi=1 turns it on), or off for this \
                 cgroup (cgroup.pressure)",
                target.path
            )));
        }
        Ok(target)
    }

    /// Reading any one file closes the window for all. What lies between two such reads is less than a tick, which the
    /// kernel drops; so only one is read. Says whether the cgroup is still there.
    fn close_kernel_window(&self) -> Result<bool, Failure> {
        let is_read = match self.files.first() {
            Some((_, file)) => read(file)?.is_some(),
            None => false,
        };
        Ok(is_read || self.directory.is_dir())
    }

    /// Why the tracer has no figures for it.
    fn absence(&self) -> &'static str {
        if self.directory.is_dir() {
            "has no slot (--max-cgroups) or is deeper than 31 levels"
        } else {
            "is gone"
        }
    }

    fn kernel_totals(&self) -> Result<KernelTotals, Failure> {
        let mut totals = HashMap::new();
        for (resource, file) in &self.files {
            let Some(found) = read(file)? else { continue };
            let now = Instant::now();
            let resource = *resource;
            let lines = [Kind::Some, Kind::Full].map(|kind| (Stall { resource, kind }, found.of(kind)));
            totals.extend(lines.into_iter().filter_map(|(stall, us)| Some((stall, (us?, now)))));
        }
        Ok(totals)
    }
}

/// None also where the cgroup is gone.
fn read(file: &Path) -> Result<Option<Totals>, Failure> {
    match pressure_file::read(file) {
        // It went between opening and reading.
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
        totals => totals.map_err(|error| Failure::Cannot(format!("reading {}: {error}", file.display()))),
    }
}

/// Takes out the cgroups that something has become of, and tells that. If none is left, that is the failure.
fn go_on_without(
    targets: &mut Vec<Target>,
    what_became: impl Fn(&Target) -> Option<&'static str>,
) -> Result<(), Failure> {
    let mut lines = Vec::new();
    targets.retain(|target| {
        let what = what_became(target);
        lines.extend(what.map(|what| format!("the cgroup {} {what}", target.path)));
        what.is_none()
    });
    let last = lines.pop_if(|_| targets.is_empty());
    for line in lines {
        complain(&printable(&line));
    }
    last.map_or(Ok(()), |line| Err(Failure::Usage(line)))
}

fn sample(tracer: &mut Tracer, targets: &[Target]) -> Result<Sample, Failure> {
    // What takes time comes first, so that the two sides are read right after each other, always in this order: what
    // lies between is the same at both ends of the interval and cancels out, but for what `skew_us` says.
    tracer.housekeeping()?;
    let mut looks = 0;
    let kernel = loop {
        let kernel = targets
            .iter()
            .map(Target::kernel_totals)
            .collect::<Result<Vec<_>, _>>()?;
        tracer.sample();
        looks += 1;
        if !tracer.has_unread() || looks == MOST_LOOKS {
            break kernel;
        }
        // What could not be read now would be missing from the difference.
        std::thread::sleep(Duration::from_millis(1));
    };
    let snapshot = tracer.snapshot()?;
    let sides = targets.iter().zip(kernel).filter_map(|(target, kernel)| {
        let path = &target.path;
        let cgroup = snapshot.cgroups.iter().find(|cgroup| cgroup.path == *path)?;
        let (id, ours) = (cgroup.id, totals(cgroup));
        Some((path.clone(), Sides { id, kernel, ours }))
    });
    Ok(Sample {
        sides: sides.collect(),
        snapshot,
    })
}

fn totals(cgroup: &CgroupPressure) -> HashMap<Stall, f64> {
    let measure = Measure::Total;
    let total = |stall| Some((stall, Figure { stall, measure }.of(cgroup)?));
    Stall::ALL.into_iter().filter_map(total).collect()
}

fn compare(targets: &[Target], before: &Sample, after: Sample) -> Comparison {
    let interval_ns = after.snapshot.interval_ns;
    let mut rows = Vec::new();
    for Target { path, .. } in targets {
        if let (Some(before), Some(after)) = (before.sides.get(path), after.sides.get(path)) {
            rows.extend(compare_sides(path, before, after, interval_ns));
        }
    }
    Comparison {
        schema: "psitrace-compare/1",
        interval_ns,
        source: after.snapshot.source,
        quality: after.snapshot.quality,
        rows,
    }
}

/// A row for each stall that both sides have.
fn compare_sides(path: &str, before: &Sides, after: &Sides, interval_ns: u64) -> Vec<Row> {
    let row = |stall: Stall| {
        let (kernel_before_us, kernel_from) = *before.kernel.get(&stall)?;
        let (kernel_total_us, kernel_to) = *after.kernel.get(&stall)?;
        let psitrace_total_us = *after.ours.get(&stall)?;
        let kernel_us = kernel_total_us.saturating_sub(kernel_before_us);
        let psitrace_us = psitrace_total_us - before.ours.get(&stall)?;
        let difference_us = psitrace_us - kernel_us as f64;
        let kernel_interval = kernel_to - kernel_from;
        Some(Row {
            cgroup: path.to_owned(),
            resource: stall.resource.name(),
            kind: stall.kind.name(),
            kernel_total_us,
            psitrace_total_us,
            kernel_us,
            psitrace_us,
            difference_us,
            difference_percent: (kernel_us != 0).then(|| difference_us * 100.0 / kernel_us as f64),
            skew_us: (interval_ns as f64 - kernel_interval.as_nanos() as f64) / 1000.0,
        })
    };
    Stall::ALL.into_iter().filter_map(row).collect()
}

fn table(comparison: &Comparison, woken: Woken) -> String {
    use std::fmt::Write as _;
    let seconds = comparison.interval_ns as f64 / 1e9;
    let note = if woken == Woken::Signal { ", cut short" } else { "" };
    let mut text = format!("over {seconds:.1} s{note}, us\n");
    for rows in comparison.rows.chunk_by(|a, b| a.cgroup == b.cgroup) {
        let _ = writeln!(text, "{}", rows[0].cgroup.escape_debug());
        let _ = writeln!(
            text,
            "{:<12} {:>15} {:>15} {:>12} {:>12} {:>11} {:>8} {:>8}",
            "", "kernel total", "our total", "kernel grew", "we grew", "difference", "%", "skew"
        );
        for row in rows {
            let percent = row
                .difference_percent
                .map_or_else(|| "-".to_owned(), |percent| format!("{percent:+.2}"));
            let _ = writeln!(
                text,
                "{:<12} {:>15} {:>15.0} {:>12} {:>12.0} {:>+11.0} {percent:>8} {:>+8.0}",
                format!("{} {}", row.resource, row.kind),
                row.kernel_total_us,
                row.psitrace_total_us,
                row.kernel_us,
                row.psitrace_us,
                row.difference_us,
                row.skew_us,
            );
        }
    }
    let memstall = comparison
        .source
        .memstall
        .map_or("not measured", |source| source.name());
    let counters = comparison.quality.counters();
    let quality: Vec<String> = counters
        .iter()
        .map(|(name, value)| format!("{} {value}", name.replace('_', " ")))
        .collect();
    let _ = writeln!(text, "memory from {memstall}; {}", quality.join(", "));
    text
}
