//! The tracer: loads and attaches the programs, seeds them, and yields snapshots.

use std::{
    fs, io,
    io::Read as _,
    os::fd::{AsFd as _, BorrowedFd},
    path::PathBuf,
    time::{Duration, SystemTime},
};

use aya::{
    Btf, Ebpf, EbpfLoader,
    maps::{HashMap, Map, MapData, Stack},
    programs::{BtfTracePoint, FEntry, Iter, ProgramError},
};
use psi_common::layout::{ANCESTORS_SLOT, Counter, MAX_CPUS, MAX_LEVEL, MAX_SLOTS, NO_SLOT, slot_state};
use rustix::time::{ClockId, clock_getres};

use crate::{
    averages::{Averages, Schedule, period_ns},
    error::Error,
    flush::{Flusher, HoldTimes, Totals},
    hierarchy::{Directory, Hierarchy},
    kernel::Kernel,
    mapped::{MappedArray, MappedMaps, now_ns},
    model::{CgroupPressure, Full, MemstallSource, Pressure, Quality, SCHEMA, Snapshot, SomeFull, Source},
    privilege,
    programs::{self, Family, Kind, ProgramSpec},
    slots::Slots,
    wakeups::Wakeups,
};

/// The BPF object, built from psi-ebpf by `cargo xtask ebpf`.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../bpf/psitrace.bpf.o");

/// Slots that a machine gets at least.
const MIN_SLOTS: u32 = 512;
/// Cgroups beyond the slots whose ancestor is remembered by id; more are found by walking up at each new task.
const EXTRA_IDS: u32 = 4096;
const ROOT_SLOT: u32 = 0;

/// What to trace.
#[derive(Clone, Debug)]
pub struct Options {
    /// `v2`, or the v1 controller whose hierarchy is traced.
    pub hierarchy: String,
    /// Number of cgroups with a record of their own; none for twice what exists, at least 512.
    pub max_cgroups: Option<u32>,
    /// Another BPF object than the built-in one, for tests.
    pub object: Option<PathBuf>,
    /// For tests: ignore every so many context switches; 0 for none.
    pub drop_switches: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            hierarchy: crate::hierarchy::V2.to_owned(),
            max_cgroups: None,
            object: None,
            drop_switches: 0,
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

/// The attached tracer. Dropping it detaches everything.
pub struct Tracer {
    ebpf: Ebpf,
    maps: MappedMaps,
    wakeups: Wakeups,
    ids: HashMap<MapData, u64, u32>,
    free_slots: Stack<MapData, u32>,
    slots: Slots,
    flusher: Flusher,
    groups: Vec<Option<Group>>,
    source: Source,
    reports: Vec<ProgramReport>,
    period_ns: u64,
    snapshot_ns: u64,
    hierarchy: Hierarchy,
}

/// Averages of one cgroup: one for each of [`FIGURES`].
#[derive(Clone, Debug)]
struct Group {
    schedule: Schedule,
    averages: [Averages; FIGURES.len()],
    last_total: [u64; FIGURES.len()],
}

/// Indices into the flush's totals of what is shown: cpu some and full, io, memory, irq.
const FIGURES: [usize; 7] = [0, 1, 3, 4, 5, 6, 7];

/// How large the maps are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Possible CPUs.
    pub cpus: u32,
    /// Cgroups with a record of their own.
    pub slots: u32,
}

impl Sizes {
    /// For this machine, with `existing` cgroups.
    ///
    /// # Errors
    /// When `max_cgroups` is 0 or too large, or the CPUs cannot be counted.
    pub fn for_machine(existing: usize, max_cgroups: Option<u32>) -> Result<Self, Error> {
        let cpus = aya::util::nr_cpus()
            .map_err(|(path, source)| Error::File {
                path: path.into(),
                source,
            })?
            .min(MAX_CPUS as usize) as u32;
        let slots = match max_cgroups {
            Some(n) if n == 0 || n > MAX_SLOTS => return Err(Error::MaxCgroups(n)),
            Some(n) => n,
            None => (existing as u32).saturating_mul(2).clamp(MIN_SLOTS, MAX_SLOTS),
        };
        Ok(Self { cpus, slots })
    }

    /// Bytes that the array maps take: a record of 128 bytes for each CPU and slot, 128 for each CPU, 32 a slot,
    /// and about 64 for each id of the hash map.
    pub const fn bytes(self) -> u64 {
        let (cpus, slots) = (self.cpus as u64, self.slots as u64);
        cpus * slots * 128 + cpus * 128 + slots * 36 + (slots + EXTRA_IDS as u64) * 64 + 4096
    }
}

impl Tracer {
    /// Loads and attaches everything and counts all tasks that exist.
    ///
    /// # Errors
    /// See [`Error`]; nothing stays attached then.
    pub fn attach(options: &Options) -> Result<Self, Error> {
        privilege::check()?;
        let kernel = Kernel::running()?;
        let hierarchy = Hierarchy::find(&options.hierarchy)?;
        let existing = hierarchy.walk()?;
        let sizes = Sizes::for_machine(existing.len(), options.max_cgroups)?;
        let mut loaded = load(&kernel, &hierarchy, sizes, options)?;
        if let Some(failed) = loaded
            .reports
            .iter()
            .find(|report| report.spec.required && report.outcome.is_err())
        {
            return Err(Error::Program {
                program: failed.spec.name.to_owned(),
                reason: failed.outcome.clone().err().unwrap_or_default(),
            });
        }

        let maps = map_all(&loaded.ebpf, sizes)?;
        let mut free_slots: Stack<_, u32> = take(&mut loaded.ebpf, "FREE_SLOTS")?;
        for slot in (1..sizes.slots).rev() {
            free_slots
                .push(slot, 0)
                .map_err(|error| Error::Object(error.to_string()))?;
        }
        let now = now_ns();
        let tick = clock_getres(ClockId::MonotonicCoarse);
        let tick_ns = (tick.tv_nsec as u64).max(1);
        let mut tracer = Self {
            wakeups: Wakeups::new(
                take(&mut loaded.ebpf, "WAKEUPS")?,
                Duration::from_nanos(period_ns(tick_ns)),
            )
            .map_err(|error| Error::Object(format!("waiting for events: {error}")))?,
            ids: take(&mut loaded.ebpf, "CGROUP_IDS")?,
            free_slots,
            slots: Slots::new(hierarchy.clone(), maps.slots()),
            flusher: Flusher::new(&maps, now, tick_ns),
            groups: vec![None; maps.slots()],
            source: loaded.source,
            reports: loaded.reports,
            period_ns: period_ns(tick_ns),
            snapshot_ns: now,
            ebpf: loaded.ebpf,
            maps,
            hierarchy,
        };
        tracer.find_ksoftirqds();
        tracer.adopt(&existing)?;
        tracer.attach_all()?;
        // Cgroups made between the first walk and the attachment; and those that went are taken back.
        let again = tracer.hierarchy.walk()?;
        tracer.adopt(&again)?;
        tracer.drop_vanished(&again);
        tracer.walk_tasks()?;
        tracer.slots.refresh(&tracer.maps, now_ns());
        Ok(tracer)
    }

    /// Loads everything, without attaching it.
    ///
    /// # Errors
    /// When the object as a whole cannot be loaded; a program that cannot is in the report.
    pub fn probe(options: &Options) -> Result<Probe, Error> {
        privilege::check()?;
        let kernel = Kernel::running()?;
        let hierarchy = Hierarchy::find(&options.hierarchy)?;
        let sizes = Sizes::for_machine(hierarchy.walk()?.len(), options.max_cgroups)?;
        let Loaded { source, reports, .. } = load(&kernel, &hierarchy, sizes, options)?;
        Ok(Probe { sizes, reports, source })
    }

    /// Becomes readable when [`Self::housekeeping`] has something to do.
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wakeups.as_fd()
    }

    /// Follows moved tasks, frees the slots of cgroups that are gone, and samples once each averaging period, as the
    /// kernel does. Cheap when there is nothing to do.
    ///
    /// # Errors
    /// When the walk over the tasks fails.
    pub fn housekeeping(&mut self) -> Result<(), Error> {
        let due = self.wakeups.take();
        if self.maps.take_resync() {
            self.walk_tasks()?;
        }
        if self.maps.take_recycle() || self.slots.is_recycling() {
            self.recycle();
        }
        if due {
            self.sample();
        }
        Ok(())
    }

    /// Closes the window over which CPUs are weighed against each other, as the kernel does once an averaging period
    /// and whenever one of its pressure files is read. [`Self::housekeeping`] does the former; this is for who
    /// compares with the kernel's files.
    pub fn sample(&mut self) {
        self.slots.refresh(&self.maps, now_ns());
        self.flusher.close(&self.maps, &self.slots);
        let now = self.flusher.last_ns();
        for (slot, _) in self.slots.iter() {
            let group = self.groups[slot as usize].get_or_insert_with(|| Group::new(now, self.period_ns));
            group.average(self.flusher.totals(slot), now);
        }
    }

    /// Compares what is recorded of each task with what it is, seeds what is unknown, repairs what is wrong.
    /// A difference counts as drift when two walks in a row see it.
    ///
    /// # Errors
    /// When the kernel refuses the iterator.
    pub fn walk_tasks(&mut self) -> Result<(), Error> {
        let other = |error: &dyn std::fmt::Display| Error::Walk(io::Error::other(error.to_string()));
        let program: &mut Iter = self
            .ebpf
            .program_mut("walk_tasks")
            .ok_or_else(|| other(&"not in the object"))?
            .try_into()
            .map_err(|error: ProgramError| other(&error))?;
        let link = program.attach().map_err(|error| other(&error))?;
        let link = program.take_link(link).map_err(|error| other(&error))?;
        let mut file = link.into_file().map_err(|error| other(&error))?;
        // The program prints nothing: reading to the end runs it on each task.
        let mut nothing = Vec::new();
        file.read_to_end(&mut nothing).map_err(Error::Walk)?;
        Ok(())
    }

    /// Flushes and yields the pressure of all cgroups that exist.
    ///
    /// # Errors
    /// When following moved tasks fails.
    pub fn snapshot(&mut self) -> Result<Snapshot, Error> {
        self.housekeeping()?;
        self.slots.refresh(&self.maps, now_ns());
        self.flusher.flush(&self.maps, &self.slots);
        let now = self.flusher.last_ns();
        let interval_ns = now.saturating_sub(self.snapshot_ns);
        self.snapshot_ns = now;
        let mut cgroups: Vec<CgroupPressure> = Vec::with_capacity(self.slots.used());
        for (slot, known) in self.slots.iter() {
            let (true, Some(path)) = (known.exists, &known.path) else {
                continue;
            };
            let group = self.groups[slot as usize].get_or_insert_with(|| Group::new(now, self.period_ns));
            let figures = group.figures(self.flusher.totals(slot), interval_ns);
            cgroups.push(pressure(path, known.id, known.level, figures, &self.source));
        }
        cgroups.sort_by(|a, b| a.path.split('/').cmp(b.path.split('/')));
        Ok(Snapshot {
            schema: SCHEMA,
            time_ns: SystemTime::UNIX_EPOCH
                .elapsed()
                .map_or(0, |time| time.as_nanos() as u64),
            interval_ns,
            source: self.source.clone(),
            quality: self.quality(),
            cgroups,
        })
    }

    /// What was missed or repaired so far.
    pub fn quality(&self) -> Quality {
        let counter = |counter| self.maps.counter(counter);
        Quality {
            missed_switches: counter(Counter::MissedSwitches),
            repaired: counter(Counter::RepairedRunning) + counter(Counter::RepairedTasks),
            storage_failures: counter(Counter::StorageFailures),
            overflows: counter(Counter::Overflows),
            missed_irqs: counter(Counter::MissedIrqs),
            cgroups_without_slot: self.maps.without_slot().load(std::sync::atomic::Ordering::SeqCst),
            program_misses: self.program_misses(),
            rejected_readings: self.flusher.rejected,
        }
    }

    /// The hierarchy that is traced.
    pub const fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// What became of each program.
    pub fn program_reports(&self) -> &[ProgramReport] {
        &self.reports
    }

    /// Where the figures come from.
    pub const fn source(&self) -> &Source {
        &self.source
    }

    /// Slots in use, and all slots.
    pub fn slot_use(&self) -> (usize, usize) {
        (self.slots.used(), self.maps.slots())
    }

    /// How long the flush held a list.
    pub const fn hold_times(&self) -> HoldTimes {
        self.flusher.hold_times
    }

    /// Frees the slots of cgroups that are gone.
    fn recycle(&mut self) {
        let now = now_ns();
        self.slots.refresh(&self.maps, now);
        for slot in self.slots.recycle(&self.maps, &mut self.flusher, now) {
            self.groups[slot as usize] = None;
            // Cannot be full: it has room for every slot.
            let _ = self.free_slots.push(slot, 0);
        }
        if self.slots.is_recycling() {
            self.wakeups.again_soon();
        }
    }

    /// Gives slots to directories that have none.
    fn adopt(&mut self, directories: &[Directory]) -> Result<(), Error> {
        let failed = |error: &dyn std::fmt::Display| Error::Object(format!("cgroup ids: {error}"));
        for directory in directories {
            if self.ids.get(&directory.id, 0).is_ok() {
                continue;
            }
            let parent = match directory.parent {
                None => NO_SLOT,
                Some(id) => self.ids.get(&id, 0).map_or(ROOT_SLOT, |slot| slot & !ANCESTORS_SLOT),
            };
            let slot = if directory.parent.is_none() {
                Some(ROOT_SLOT)
            } else if directory.level <= MAX_LEVEL {
                self.free_slots.pop(0).ok()
            } else {
                None
            };
            let value = if let Some(slot) = slot {
                self.slots.put(&self.maps, slot, directory, parent);
                slot
            } else {
                self.maps
                    .without_slot()
                    .fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                parent | ANCESTORS_SLOT
            };
            self.ids
                .insert(directory.id, value, 0)
                .map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// Cgroups that went before their release could be seen: as if it had been.
    fn drop_vanished(&mut self, directories: &[Directory]) {
        let existing: std::collections::HashSet<u64> = directories.iter().map(|directory| directory.id).collect();
        self.slots.refresh(&self.maps, now_ns());
        let vanished: Vec<(u32, u64)> = self
            .slots
            .iter()
            .filter(|(_, known)| !existing.contains(&known.id))
            .map(|(s, known)| (s, known.id))
            .collect();
        for (slot, id) in vanished {
            let Some(mut entry) = self.maps.cgroup(slot) else {
                continue;
            };
            // Made and already seen by the programs after the walk: they will see its release too.
            let path = self.slots.get(slot).and_then(|known| known.path.clone());
            if path.is_some_and(|path| self.hierarchy.directory(&path).exists()) || entry.state != slot_state::LIVE {
                continue;
            }
            let _ = self.ids.remove(&id);
            entry.state = slot_state::RELEASED;
            self.maps.set_cgroup(slot, entry);
            self.maps.note_cgroup_change();
        }
    }

    /// Attaches what was loaded, in the order of [`programs::all`].
    fn attach_all(&mut self) -> Result<(), Error> {
        for report in &mut self.reports {
            if report.outcome.is_err() || report.spec.kind == Kind::TaskIterator {
                continue;
            }
            let name = report.spec.name;
            let Some(program) = self.ebpf.program_mut(name) else {
                continue;
            };
            let attached = match report.spec.kind {
                Kind::Fentry => <&mut FEntry>::try_from(program).and_then(|p| p.attach().map(drop)),
                _ => <&mut BtfTracePoint>::try_from(program).and_then(|p| p.attach().map(drop)),
            };
            if let Err(error) = attached {
                let reason = reason(&error);
                if report.spec.required {
                    return Err(Error::Program {
                        program: name.to_owned(),
                        reason,
                    });
                }
                report.outcome = Err(reason);
            }
        }
        Ok(())
    }

    /// Runs that the kernel skipped because the program was running on that CPU already.
    fn program_misses(&self) -> u64 {
        self.ebpf
            .programs()
            .filter_map(|(_, program)| program.fd().ok())
            .filter_map(|fd| crate::info::recursion_misses(fd.as_fd()))
            .sum()
    }

    /// The pids of the CPUs' ksoftirqd threads, by their names: `ksoftirqd/3`.
    fn find_ksoftirqds(&self) {
        let Ok(processes) = fs::read_dir("/proc") else { return };
        for process in processes.flatten() {
            let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // A process that has ended is normal life. Only kernel threads have an empty command line.
            let Ok(name) = fs::read_to_string(process.path().join("comm")) else {
                continue;
            };
            let Some(cpu) = name
                .trim_end()
                .strip_prefix("ksoftirqd/")
                .and_then(|cpu| cpu.parse().ok())
            else {
                continue;
            };
            if fs::read(process.path().join("cmdline")).is_ok_and(|line| line.is_empty()) {
                self.maps.set_ksoftirqd(cpu, pid);
            }
        }
    }
}

impl Group {
    fn new(now_ns: u64, period_ns: u64) -> Self {
        Self {
            schedule: Schedule::new(now_ns, period_ns),
            averages: [Averages::default(); FIGURES.len()],
            last_total: [0; FIGURES.len()],
        }
    }

    /// Brings the averages up to date if they are due.
    fn average(&mut self, totals: &Totals, now_ns: u64) {
        if let Some(due) = self.schedule.due(now_ns) {
            for (averages, figure) in self.averages.iter_mut().zip(FIGURES) {
                averages.update(totals[figure], due);
            }
        }
    }

    fn figures(&mut self, totals: &Totals, interval_ns: u64) -> [Pressure; FIGURES.len()] {
        let mut figures = [Pressure::default(); FIGURES.len()];
        for (n, figure) in figures.iter_mut().enumerate() {
            let total_ns = totals[FIGURES[n]];
            let [avg10, avg60, avg300] = self.averages[n].percent();
            let gained = total_ns - self.last_total[n];
            self.last_total[n] = total_ns;
            let last = (gained as f64 * 100.0 / interval_ns.max(1) as f64).min(100.0);
            *figure = Pressure { avg10, avg60, avg300, total_ns, last };
        }
        figures
    }
}

fn pressure(path: &str, id: u64, level: u32, figures: [Pressure; FIGURES.len()], source: &Source) -> CgroupPressure {
    let [cpu_some, cpu_full, io_some, io_full, memory_some, memory_full, irq_full] = figures;
    CgroupPressure {
        path: path.to_owned(),
        id,
        level,
        // The kernel too accumulates the system's cpu full and shows 0: it is undefined there (psi_show).
        cpu: SomeFull {
            some: cpu_some,
            full: if level == 0 { Pressure::default() } else { cpu_full },
        },
        memory: source.memstall.map(|_| SomeFull {
            some: memory_some,
            full: memory_full,
        }),
        io: SomeFull {
            some: io_some,
            full: io_full,
        },
        irq: (!source.irq.is_empty()).then_some(Full { full: irq_full }),
    }
}

struct Loaded {
    ebpf: Ebpf,
    source: Source,
    reports: Vec<ProgramReport>,
}

/// Loads the object with the best source of memory stalls that the kernel allows.
fn load(kernel: &Kernel, hierarchy: &Hierarchy, sizes: Sizes, options: &Options) -> Result<Loaded, Error> {
    let fallback = if kernel.has_memstall_bit() {
        MemstallSource::TaskBit
    } else {
        MemstallSource::Tracepoints
    };
    // Whether functions can be hooked is only known by trying: some kernels refuse at load, some at attachment.
    let mut refused = Vec::new();
    for source in [MemstallSource::Fentry, fallback] {
        let mut loaded = load_with(kernel, hierarchy, sizes, options, source)?;
        let failed = loaded
            .reports
            .iter()
            .any(|report| report.spec.family == Family::MemstallFunctions && report.outcome.is_err());
        if source == MemstallSource::Fentry && failed {
            refused = loaded
                .reports
                .into_iter()
                .filter(|report| report.spec.family == Family::MemstallFunctions)
                .collect();
            continue;
        }
        loaded.reports.append(&mut refused);
        return Ok(loaded);
    }
    Err(Error::Object("no source of memory stalls could be tried".to_owned()))
}

fn load_with(
    kernel: &Kernel,
    hierarchy: &Hierarchy,
    sizes: Sizes,
    options: &Options,
    memstall: MemstallSource,
) -> Result<Loaded, Error> {
    let controller = (!hierarchy.is_v2()).then_some(hierarchy.name.as_str());
    let mut globals = kernel.globals(controller)?;
    globals.extend([
        ("HIERARCHY_ID", hierarchy.id),
        ("SLOTS", sizes.slots),
        ("MEMSTALL_SOURCE", programs::memstall_global(memstall)),
        ("DROP_SWITCHES", options.drop_switches),
    ]);
    let mut loader = EbpfLoader::new();
    loader.allow_unsupported_maps();
    for (name, value) in &globals {
        loader.override_global(name, value, true);
    }
    for (map, entries) in [
        ("STATE", sizes.cpus * sizes.slots),
        ("CPUS", sizes.cpus),
        ("CGROUPS", sizes.slots),
        ("FREE_SLOTS", sizes.slots),
        ("CGROUP_IDS", sizes.slots + EXTRA_IDS),
    ] {
        loader.map_max_entries(map, entries);
    }
    let own = match &options.object {
        Some(path) => Some(fs::read(path).map_err(Error::file(path))?),
        None => None,
    };
    let mut ebpf = loader
        .load(own.as_deref().unwrap_or(OBJECT))
        .map_err(|error| Error::Object(chain(&error)))?;
    let btf = Btf::from_sys_fs().map_err(|error| Error::Btf(error.to_string()))?;

    let wanted = programs::memstall_family(memstall);
    let mut reports: Vec<ProgramReport> = Vec::new();
    for spec in programs::all() {
        let unused = [Family::MemstallFunctions, Family::MemstallTracepoints].contains(&spec.family);
        if unused && spec.family != wanted {
            continue;
        }
        let outcome = if spec.exists(kernel) {
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
        memstall: usable(wanted).then_some(memstall),
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

/// The kernel's reason in a line: the verifier's last words, or the error number's text.
fn reason(error: &ProgramError) -> String {
    if let ProgramError::LoadError { io_error, verifier_log } = error {
        let log = verifier_log.to_string();
        if std::env::var_os("PSITRACE_VERIFIER_LOG").is_some() {
            eprintln!("{log}");
        }
        let last = log
            .lines()
            .rev()
            .find(|line| !line.is_empty() && !line.starts_with("processed "));
        return last.map_or_else(|| io_error.to_string(), |last| format!("{io_error}: {last}"));
    }
    chain(error)
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
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

fn map_all(ebpf: &Ebpf, sizes: Sizes) -> Result<MappedMaps, Error> {
    fn mapped<T>(ebpf: &Ebpf, map: &'static str, len: u32) -> Result<MappedArray<T>, Error> {
        let Some(Map::Array(data)) = ebpf.map(map) else {
            return Err(Error::Object(format!("no array map {map}")));
        };
        MappedArray::new(data.fd().as_fd(), len as usize).map_err(|source| Error::Map { map, source })
    }
    Ok(MappedMaps {
        state: mapped(ebpf, "STATE", sizes.cpus * sizes.slots)?,
        cpus: mapped(ebpf, "CPUS", sizes.cpus)?,
        cgroups: mapped(ebpf, "CGROUPS", sizes.slots)?,
        shared: mapped(ebpf, "SHARED", 1)?,
    })
}

fn take<M: TryFrom<Map>>(ebpf: &mut Ebpf, name: &str) -> Result<M, Error> {
    ebpf.take_map(name)
        .and_then(|map| M::try_from(map).ok())
        .ok_or_else(|| Error::Object(format!("no usable map {name}")))
}
