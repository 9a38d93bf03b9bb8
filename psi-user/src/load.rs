//! Loading: the object, sized to the machine and told the kernel's types; each program, or why not.

mod sizes;

use std::{fs, os::fd::AsFd as _, path::PathBuf};

pub use self::sizes::Sizes;
pub(crate) use self::sizes::possible_cpus;
use aya::{
    Btf, Ebpf, EbpfLoader,
    maps::Map,
    programs::{BtfTracePoint, FEntry, Iter, ProgramError},
};
use psi_common::layout::EXTRA_IDS;

use crate::{
    error::Error,
    hierarchy::Hierarchy,
    kernel::Kernel,
    mapped::{MappedArray, MappedMaps},
    model::{MemstallSource, Source},
    programs::{self, Family, Kind, ProgramSpec},
    track::Filter,
};

/// The BPF object, built from psi-ebpf by `cargo xtask ebpf`.
pub(crate) static OBJECT: &[u8] = aya::include_bytes_aligned!("../bpf/psitrace.bpf.o");

/// What to trace.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Options {
    /// `v2`, or the v1 controller whose hierarchy is traced.
    pub hierarchy: String,
    /// Number of cgroups with a record of their own; none for twice what exists, at least 512.
    pub max_cgroups: Option<u32>,
    /// Another BPF object than the built-in one, for tests.
    pub object: Option<PathBuf>,
    /// For tests: ignore every so many context switches; 0 for none.
    pub drop_switches: u32,
    /// Whether snapshots tell what the records count.
    pub counts: bool,
    /// Whether interrupts are timed.
    pub irq: bool,
    /// Whether memory stalls are measured.
    pub memstall: bool,
    /// Whether each cgroup counts its own tasks only, not those of the cgroups below.
    pub only_leaf: bool,
    /// Which cgroups have figures.
    pub track: Filter,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            hierarchy: crate::hierarchy::V2.to_owned(),
            max_cgroups: None,
            object: None,
            drop_switches: 0,
            counts: false,
            irq: true,
            memstall: true,
            only_leaf: false,
            track: Filter::default(),
        }
    }
}

/// What became of an optional or required program.
#[derive(Clone, Debug)]
pub struct ProgramReport {
    /// Which.
    pub spec: ProgramSpec,
    /// Instructions that the verifier looked at, or why the program is left out.
    pub outcome: Result<u32, String>,
}

/// What a machine's kernel lets the tracer use.
#[derive(Debug)]
pub struct Probe {
    /// How large the maps would be.
    pub sizes: Sizes,
    /// What became of each program.
    pub reports: Vec<ProgramReport>,
    /// Where the figures would come from.
    pub source: Source,
}

impl Probe {
    /// The required programs that do not load, a line each.
    pub fn required_failures(&self) -> impl Iterator<Item = String> {
        self.reports.iter().filter_map(|report| {
            let reason = report.outcome.as_ref().err().filter(|_| report.spec.required)?;
            Some(
                Error::Program {
                    program: report.spec.name.to_owned(),
                    reason: reason.clone(),
                }
                .to_string(),
            )
        })
    }
}

/// The loaded object.
pub(crate) struct Loaded {
    pub(crate) ebpf: Ebpf,
    pub(crate) source: Source,
    pub(crate) reports: Vec<ProgramReport>,
}

/// Loads the object with the best source of memory stalls that the kernel allows, or none if none is asked for.
pub(crate) fn load(kernel: &Kernel, hierarchy: &Hierarchy, sizes: Sizes, options: &Options) -> Result<Loaded, Error> {
    if !options.memstall {
        return load_with(kernel, hierarchy, sizes, options, None);
    }
    let fallback = if kernel.has_memstall_bit() {
        MemstallSource::TaskBit
    } else {
        MemstallSource::Tracepoints
    };
    // Whether functions can be hooked is only known by trying.
    let best = load_with(kernel, hierarchy, sizes, options, Some(MemstallSource::Fentry))?;
    if best.source.memstall.is_some() {
        return Ok(best);
    }
    let mut loaded = load_with(kernel, hierarchy, sizes, options, Some(fallback))?;
    loaded.reports.extend(best.reports);
    Ok(loaded)
}

/// Loads the object with one source of memory stalls, or without. Where fentry is refused, only that is in the report.
fn load_with(
    kernel: &Kernel,
    hierarchy: &Hierarchy,
    sizes: Sizes,
    options: &Options,
    memstall: Option<MemstallSource>,
) -> Result<Loaded, Error> {
    let controller = (!hierarchy.is_v2()).then_some(hierarchy.name.as_str());
    let mut globals = kernel.globals(controller)?;
    globals.extend([
        ("HIERARCHY_ID", hierarchy.id),
        ("SLOTS", sizes.slots),
        ("TASK_MASK", sizes.tasks - 1),
        ("MEMSTALL_SOURCE", programs::memstall_global(memstall)),
        ("ONLY_LEAF", options.only_leaf.into()),
        ("UNTRACKED_IDS", sizes.untracked),
        ("DROP_SWITCHES", options.drop_switches),
    ]);
    let mut loader = EbpfLoader::new();
    for (name, value) in &globals {
        loader.override_global(name, value, true);
    }
    for (map, entries) in [
        ("STATE", sizes.cpus * sizes.slots),
        ("CPUS", sizes.cpus),
        ("TASKS", sizes.tasks),
        ("CGROUPS", sizes.slots),
        ("FREE_SLOTS", sizes.slots),
        ("CGROUP_IDS", sizes.slots + EXTRA_IDS + sizes.untracked),
        ("NEW_CGROUPS", sizes.ring()),
    ] {
        loader.map_max_entries(map, entries);
    }
    let own = match &options.object {
        Some(path) => Some(fs::read(path).map_err(Error::file(path))?),
        None => None,
    };
    let (mut ebpf, btf) = load_object(&mut loader, own.as_deref().unwrap_or(OBJECT))?;

    let wanted = memstall.map(programs::memstall_family);
    let is_candidate = |spec: &ProgramSpec| !spec.is_memstall() || wanted.is_none_or(|wanted| spec.family == wanted);
    let mut reports: Vec<ProgramReport> = Vec::new();
    for spec in programs::all().filter(is_candidate) {
        if memstall == Some(MemstallSource::Fentry)
            && !spec.is_memstall()
            && reports.iter().any(|r| r.outcome.is_err() && r.spec.is_memstall())
        {
            break;
        }
        let outcome = if let Some(option) = left_out_by(spec, options) {
            Err(format!("not asked for ({option})"))
        } else if spec.exists(kernel) {
            load_program(&mut ebpf, spec, &btf)
        } else {
            Err("this kernel has no such hook".to_owned())
        };
        reports.push(ProgramReport { spec, outcome });
    }
    // An entry without its exit is worth nothing, nor the reverse.
    let failed: Vec<&str> = reports
        .iter()
        .filter(|r| r.outcome.is_err())
        .map(|r| r.spec.name)
        .collect();
    for report in &mut reports {
        if let Some(partner) = report.spec.partner.filter(|partner| failed.contains(partner))
            && report.outcome.is_ok()
        {
            report.outcome = Err(format!("left out with {partner}"));
        }
    }
    let usable = |family| {
        reports
            .iter()
            .any(move |r| r.spec.family == family && r.outcome.is_ok())
    };
    let source = Source {
        memstall: memstall.filter(|&source| usable(programs::memstall_family(source))),
        irq: reports
            .iter()
            .filter(|r| r.outcome.is_ok())
            .filter_map(|r| r.spec.irq_kind())
            .map(str::to_owned)
            .collect(),
        hierarchy: hierarchy.name.clone(),
    };
    Ok(Loaded { ebpf, source, reports })
}

/// Loads an object's maps; its programs are loaded one by one, by the types of the running kernel.
pub(crate) fn load_object(loader: &mut EbpfLoader<'_>, object: &[u8]) -> Result<(Ebpf, Btf), Error> {
    let ebpf = loader
        .allow_unsupported_maps()
        .load(object)
        .map_err(|error| Error::Object(chain(&error)))?;
    let btf = Btf::from_sys_fs().map_err(|error| Error::Btf(error.to_string()))?;
    Ok((ebpf, btf))
}

/// The option that leaves a program out.
fn left_out_by(spec: ProgramSpec, options: &Options) -> Option<&'static str> {
    if spec.is_memstall() && !options.memstall {
        Some("--no-memstall")
    } else if spec.family == Family::Irq && !options.irq {
        Some("--no-irq")
    } else {
        None
    }
}

/// Loads one program; returns how many instructions the verifier looked at, or the kernel's reason in a line.
fn load_program(ebpf: &mut Ebpf, spec: ProgramSpec, btf: &Btf) -> Result<u32, String> {
    let program = ebpf.program_mut(spec.name).ok_or("not in the object")?;
    let result = match spec.kind {
        Kind::Tracepoint => <&mut BtfTracePoint>::try_from(&mut *program).and_then(|p| p.load(spec.name, btf)),
        Kind::Fentry => <&mut FEntry>::try_from(&mut *program).and_then(|p| p.load(spec.name, btf)),
        Kind::TaskIterator => <&mut Iter>::try_from(&mut *program).and_then(|p| p.load("task", btf)),
    };
    result.map_err(|error| reason(&error))?;
    Ok(program
        .info()
        .ok()
        .and_then(|info| info.verified_instruction_count())
        .unwrap_or(0))
}

/// Loads the program `name` and attaches it to the tracepoint `hook`, until `ebpf` is dropped.
pub(crate) fn attach_tracepoint(ebpf: &mut Ebpf, name: &str, hook: &str, btf: &Btf) -> Result<(), Error> {
    let failed = |reason| Error::Program {
        program: name.to_owned(),
        reason,
    };
    let program = ebpf
        .program_mut(name)
        .ok_or_else(|| failed("not in the object".to_owned()))?;
    <&mut BtfTracePoint>::try_from(program)
        .and_then(|program| {
            program.load(hook, btf)?;
            program.attach().map(drop)
        })
        .map_err(|error| failed(reason(&error)))
}

/// What the verifier says after its verdict.
const STATISTICS: [&str; 3] = ["processed ", "stack depth ", "verification time "];

/// The kernel's reason in a line: the verifier's last words, or the error number's text.
pub(crate) fn reason(error: &ProgramError) -> String {
    if let ProgramError::LoadError { io_error, verifier_log } = error {
        let log = verifier_log.to_string();
        if std::env::var_os("PSITRACE_VERIFIER_LOG").is_some() {
            eprintln!("{log}");
        }
        let last = log
            .lines()
            .rev()
            .find(|line| !line.is_empty() && !STATISTICS.iter().any(|start| line.starts_with(start)));
        return last.map_or_else(|| io_error.to_string(), |last| format!("{io_error}: {last}"));
    }
    chain(error)
}

/// An error and its causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !line.contains(&text) {
            line = format!("{line}: {text}");
        }
        cause = error.source();
    }
    line.replace('\n', " ")
}

/// What the kernel says that each map takes, bytes.
pub(crate) fn map_bytes(ebpf: &Ebpf) -> Vec<(String, u64)> {
    let bytes = |map: &Map| match map {
        Map::Array(data) | Map::HashMap(data) | Map::Stack(data) | Map::RingBuf(data) | Map::Unsupported(data) => {
            crate::info::map_bytes(data.fd().as_fd())
        }
        _ => None,
    };
    let mut all: Vec<_> = ebpf
        .maps()
        .filter_map(|(name, map)| Some((name.to_owned(), bytes(map)?)))
        .collect();
    all.sort();
    all
}

/// Maps `len` records of the array map `map`.
pub(crate) fn map_array<T>(ebpf: &Ebpf, map: &'static str, len: u32) -> Result<MappedArray<T>, Error> {
    let Some(Map::Array(data)) = ebpf.map(map) else {
        return Err(Error::Object(format!("no array map {map}")));
    };
    MappedArray::new(data.fd().as_fd(), len as usize).map_err(|source| Error::Map { map, source })
}

pub(crate) fn map_all(ebpf: &Ebpf, sizes: Sizes) -> Result<MappedMaps, Error> {
    Ok(MappedMaps {
        state: map_array(ebpf, "STATE", sizes.cpus * sizes.slots)?,
        cpus: map_array(ebpf, "CPUS", sizes.cpus)?,
        cgroups: map_array(ebpf, "CGROUPS", sizes.slots)?,
        shared: map_array(ebpf, "SHARED", 1)?,
    })
}

pub(crate) fn take<M: TryFrom<Map>>(ebpf: &mut Ebpf, name: &str) -> Result<M, Error> {
    ebpf.take_map(name)
        .and_then(|map| M::try_from(map).ok())
        .ok_or_else(|| Error::Object(format!("no usable map {name}")))
}
