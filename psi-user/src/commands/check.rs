//! `psitrace check`: whether the tracer can run here, and what it would use.

use std::{fs, path::Path, process::ExitCode};

use psi_user::{
    hierarchy::Hierarchy,
    kernel::{Kernel, VMLINUX_BTF, release},
    load::Probe,
    model::MemstallSource,
    privilege,
    tracer::Tracer,
};
use serde::Serialize;

use super::{Failure, print_report};
use crate::cli::{CheckArgs, Tracing, exit};

#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    ok: bool,
    kernel: String,
    btf: bool,
    /// The kernel's lockdown mode; absent where it has none or it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    lockdown: Option<String>,
    missing_capabilities: Vec<String>,
    cgroup_mounts: Vec<Mount>,
    /// `on`, `off` (built in, not kept) or `absent`.
    psi: &'static str,
    /// Whether the kernel keeps irq pressure itself.
    irq_pressure: bool,
    programs: Vec<ProgramLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memstall: Option<&'static str>,
    /// The interrupt kinds that would be timed; absent when nothing could be loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    irq: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slots: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map_bytes: Option<u64>,
    /// What stands in the way, each with its remedy.
    problems: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Mount {
    hierarchy: String,
    path: String,
}

#[derive(Debug, Serialize)]
struct ProgramLine {
    name: &'static str,
    required: bool,
    loadable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified_instructions: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let report = report(&args.tracing);
    print_report(&report, args.json, lines)?;
    Ok(if report.ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(exit::CANNOT)
    })
}

fn report(tracing: &Tracing) -> Report {
    let mut problems = Vec::new();
    let kernel = Kernel::running();
    if let Err(error) = &kernel {
        problems.push(error.to_string());
    }
    let missing_capabilities = privilege::missing();
    if let Err(error) = privilege::check() {
        problems.push(error.to_string());
    }
    let mounts = Hierarchy::mounted().unwrap_or_else(|error| {
        problems.push(error.to_string());
        Vec::new()
    });
    let lockdown = lockdown();
    if lockdown.as_deref() == Some("confidentiality") {
        problems
            .push("lockdown=confidentiality forbids reading kernel memory; boot with lockdown=integrity".to_owned());
    }
    let mut probe: Option<Probe> = None;
    if problems.is_empty() {
        match Tracer::probe(&tracing.options()) {
            Ok(found) => {
                problems.extend(found.required_failures());
                probe = Some(found);
            }
            Err(error) => problems.push(error.to_string()),
        }
    }
    let programs = probe
        .as_ref()
        .map(|probe| probe.reports.iter().map(program_line).collect())
        .unwrap_or_default();
    Report {
        schema: "psitrace-check/1",
        ok: problems.is_empty(),
        kernel: release(),
        btf: kernel.is_ok(),
        lockdown,
        missing_capabilities,
        cgroup_mounts: mounts
            .into_iter()
            .map(|mount| Mount {
                hierarchy: mount.name,
                path: mount.mount.display().to_string(),
            })
            .collect(),
        psi: psi(kernel.as_ref().is_ok_and(Kernel::has_memstall_bit)),
        irq_pressure: fs::read("/proc/pressure/irq").is_ok(),
        programs,
        memstall: probe
            .as_ref()
            .and_then(|probe| probe.source.memstall)
            .map(MemstallSource::name),
        irq: probe.as_ref().map(|probe| probe.source.irq.clone()),
        cpus: probe.as_ref().map(|probe| probe.sizes.cpus),
        slots: probe.as_ref().map(|probe| probe.sizes.slots),
        map_bytes: probe.as_ref().map(|probe| probe.sizes.bytes()),
        problems,
    }
}

fn program_line(report: &psi_user::load::ProgramReport) -> ProgramLine {
    ProgramLine {
        name: report.spec.name,
        required: report.spec.required,
        loadable: report.outcome.is_ok(),
        verified_instructions: report.outcome.as_ref().ok().copied(),
        reason: report.outcome.as_ref().err().cloned(),
    }
}

/// The mode in brackets: `none [integrity] confidentiality`. securityfs may not be mounted.
fn lockdown() -> Option<String> {
    let text = fs::read_to_string("/sys/kernel/security/lockdown").ok()?;
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

fn psi(built_in: bool) -> &'static str {
    if fs::read("/proc/pressure/cpu").is_ok() {
        "on"
    } else if built_in || Path::new("/proc/pressure").exists() {
        "off"
    } else {
        "absent"
    }
}

fn lines(report: &Report) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    // Writing to a string cannot fail.
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<16} {value}");
    };
    line("kernel", &report.kernel);
    line("type information", if report.btf { VMLINUX_BTF } else { "missing" });
    line(
        "lockdown",
        report
            .lockdown
            .as_deref()
            .unwrap_or("unknown (no securityfs, or not built in)"),
    );
    line(
        "capabilities",
        &if report.missing_capabilities.is_empty() {
            "sufficient".to_owned()
        } else {
            format!("missing {}", report.missing_capabilities.join(", "))
        },
    );
    for mount in &report.cgroup_mounts {
        line("cgroups", &format!("{} at {}", mount.hierarchy, mount.path));
    }
    line("kernel's PSI", report.psi);
    line("kernel's irq PSI", if report.irq_pressure { "yes" } else { "no" });
    for program in &report.programs {
        let need = if program.required { "required" } else { "optional" };
        line(
            "program",
            &match &program.reason {
                None => format!(
                    "{} ({need}): loads, {} instructions verified",
                    program.name,
                    program.verified_instructions.unwrap_or(0)
                ),
                Some(reason) => format!("{} ({need}): left out: {reason}", program.name),
            },
        );
    }
    line("memory stalls", report.memstall.unwrap_or("not measured"));
    let irq = report.irq.as_deref().filter(|kinds| !kinds.is_empty());
    line(
        "interrupts",
        &irq.map_or_else(|| "not measured".to_owned(), |kinds| kinds.join(" ")),
    );
    if let (Some(cpus), Some(slots), Some(bytes)) = (report.cpus, report.slots, report.map_bytes) {
        line(
            "maps",
            &format!(
                "{:.1} MiB for {cpus} CPUs and {slots} cgroups",
                bytes as f64 / 1_048_576.0
            ),
        );
    }
    for problem in &report.problems {
        line("problem", problem);
    }
    line(
        "result",
        if report.ok {
            "the tracer can run"
        } else {
            "the tracer cannot run here"
        },
    );
    text
}
