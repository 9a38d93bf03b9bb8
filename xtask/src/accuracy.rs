//! `cargo xtask accuracy`: psitrace beside the kernel's own PSI, as a table for docs/accuracy.md.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::{document, process, workspace::Workspace};

/// Whose marks the table's place has.
const COMMAND: &str = "accuracy";

/// The goal for cpu and io, as in tests/tests/accuracy/model.rs: % of the kernel's growth, or us, whichever is more.
const GOAL_PERCENT: f64 = 0.5;
const GOAL_US: f64 = 5_000.0;
/// A figure that grew by less than this on both sides, us, says nothing and is left out.
const TOO_SMALL_US: f64 = 1_000.0;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How long each comparison is; the goal is for 20 s or more.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=90))]
    seconds: u64,
    /// Put the table into this document, in place of the one there. [default: docs/accuracy.md, if there is no FILTER]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Add figures that were measured elsewhere: lines as the tests write them.
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// Measure nothing: a table of what --with names.
    #[arg(long, requires = "with")]
    no_measuring: bool,
    /// Only workloads whose name contains one of these.
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
}

/// One figure, as tests/tests/accuracy/measure.rs writes it.
#[derive(Clone, Debug, Deserialize)]
struct Figure {
    kernel: String,
    cpus: usize,
    workload: String,
    cgroup: String,
    resource: String,
    kind: String,
    kernel_us: f64,
    psitrace_us: f64,
    seconds: f64,
    /// Absent for guests.
    missed_switches: Option<u64>,
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let Options {
        seconds,
        output,
        with,
        no_measuring,
        filters,
    } = options;
    // What cannot be used is told before minutes of measuring.
    let default = filters.is_empty().then(|| workspace.root.join("docs/accuracy.md"));
    let document = output.clone().or(default);
    if let Some(document) = &document {
        document::check(document, COMMAND)?;
    }
    let mut others = Vec::new();
    for file in with {
        others.extend(read(file)?);
    }

    let (mut figures, tested) = if *no_measuring {
        (Vec::new(), Ok(()))
    } else {
        measure(workspace, *seconds, filters)?
    };
    figures.extend(others);
    if figures.is_empty() {
        // A filter that matches nothing is no failure of cargo's.
        return tested.and_then(|()| bail!("no figures: no workload has one of {filters:?} in its name"));
    }
    let table = render(&figures);
    match document {
        Some(document) => document::replace(&document, COMMAND, &table).inspect_err(|_| println!("{table}"))?,
        None => println!("{table}"),
    }
    tested
}

/// Runs the tests and returns what they measured, and whether all passed: a table with wrong figures in it is worth to be seen.
fn measure(workspace: &Workspace, seconds: u64, filters: &[String]) -> Result<(Vec<Figure>, Result<()>)> {
    process::require_root(COMMAND)?;
    workspace.build_psitrace()?;

    let measured = workspace.target.join("accuracy.jsonl");
    // Lines are appended to it.
    fs::write(&measured, "").with_context(|| format!("cannot write {}", measured.display()))?;
    let mut test = workspace.cargo();
    test.args(["test", "--package", "tests", "--test", "accuracy"])
        .args(["--", "--test-threads=1", "--nocapture"])
        // As the table shows them: with spaces.
        .args(filters.iter().map(|filter| filter.replace(' ', "_")))
        .env("PSITRACE_BIN", workspace.psitrace())
        .env("PSITRACE_ACCURACY_SECONDS", seconds.to_string())
        .env("PSITRACE_ACCURACY_OUTPUT", &measured)
        .env_remove("PSITRACE_TEST_OBJECT");
    let tested = process::run(&mut test);
    Ok((read(&measured)?, tested))
}

fn read(file: &Path) -> Result<Vec<Figure>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    text.lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("{}: not a figure: {line}", file.display())))
        .collect()
}

/// A table for each kernel, in the order of the figures.
fn render(figures: &[Figure]) -> String {
    let mut text = String::new();
    for figures in figures.chunk_by(|a, b| (&a.kernel, a.cpus) == (&b.kernel, b.cpus)) {
        let shown: Vec<&Figure> = figures.iter().filter(|figure| figure.is_large_enough()).collect();
        let beyond = shown.iter().filter(|figure| figure.is_beyond_goal()).count();
        let Figure { kernel, cpus, .. } = &figures[0];
        let _ = write!(
            text,
            "\n### {kernel}, {cpus} CPUs\n\n{} figures, {beyond} of them beyond the goal (**bold**).\n\n\
             | workload | cgroup | figure | kernel, ms | psitrace, ms | difference, ms | % | s | missed switches |\n\
             |---|---|---|--:|--:|--:|--:|--:|--:|\n",
            shown.len()
        );
        for figure in shown {
            let _ = writeln!(text, "{}", figure.row());
        }
    }
    text.push('\n');
    text
}

impl Figure {
    fn difference_us(&self) -> f64 {
        self.psitrace_us - self.kernel_us
    }

    fn is_large_enough(&self) -> bool {
        self.kernel_us.max(self.psitrace_us) >= TOO_SMALL_US
    }

    /// For memory there is no goal, see docs/accuracy.md.
    fn is_beyond_goal(&self) -> bool {
        let goal = (self.kernel_us * GOAL_PERCENT / 100.0).max(GOAL_US);
        self.resource != "memory" && self.difference_us().abs() > goal
    }

    fn row(&self) -> String {
        let Self {
            workload,
            cgroup,
            resource,
            kind,
            kernel_us,
            psitrace_us,
            seconds,
            missed_switches,
            ..
        } = self;
        let bold = if self.is_beyond_goal() { "**" } else { "" };
        let difference = self.difference_us();
        let percent = if *kernel_us > 0.0 {
            format!("{:+.2}", difference * 100.0 / kernel_us)
        } else {
            "-".to_owned()
        };
        let missed = missed_switches.map_or_else(|| "-".to_owned(), |missed| missed.to_string());
        format!(
            "| {} | {cgroup} | {resource} {kind} | {:.1} | {:.1} | {bold}{:+.1}{bold} | {bold}{percent}{bold} | {seconds} | {missed} |",
            workload.replace('_', " "),
            kernel_us / 1e3,
            psitrace_us / 1e3,
            difference / 1e3,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"kernel":"6.18","cpus":2,"workload":"fork_storm","cgroup":"own","resource":"cpu",
        "kind":"some","kernel_us":1000000,"psitrace_us":1004000.5,"seconds":20,"missed_switches":3,"switches":9}"#;

    #[test]
    fn differences_beyond_the_goal_are_marked() {
        let within: Figure = serde_json::from_str(LINE).expect("a figure");
        assert_eq!(
            within.row(),
            "| fork storm | own | cpu some | 1000.0 | 1004.0 | +4.0 | +0.40 | 20 | 3 |"
        );
        let beyond = Figure {
            psitrace_us: 994_000.0,
            missed_switches: None,
            ..within
        };
        assert_eq!(
            beyond.row(),
            "| fork storm | own | cpu some | 1000.0 | 994.0 | **-6.0** | **-0.60** | 20 | - |"
        );
    }

    #[test]
    fn each_kernel_has_its_table() {
        let here: Figure = serde_json::from_str(LINE).expect("a figure");
        let nothing = Figure {
            kernel_us: 0.0,
            psitrace_us: 9.0,
            ..here.clone()
        };
        let guest = Figure {
            kernel: "6.1".to_owned(),
            missed_switches: None,
            ..here.clone()
        };
        let text = render(&[here, nothing, guest]);
        assert_eq!(text.matches("1 figures, 0 of them").count(), 2, "{text}");
        assert!(
            text.contains("### 6.18, 2 CPUs") && text.contains("### 6.1, 2 CPUs"),
            "{text}"
        );
    }
}
