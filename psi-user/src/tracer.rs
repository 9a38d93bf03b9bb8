//! The tracer: loads and attaches the programs, seeds them, and yields snapshots.

mod adopt;
mod serve;
mod tasks;

use std::{
    os::fd::{AsFd as _, BorrowedFd},
    sync::atomic::Ordering::SeqCst,
    time::{Duration, SystemTime},
};

use aya::{
    Ebpf,
    maps::{HashMap, MapData, Stack},
    programs::{BtfTracePoint, FEntry},
};
use psi_common::layout::Counter;
use rustix::time::{ClockId, clock_getres};

use crate::{
    averages::{Schedule, period_ns},
    control::Listener,
    drift::Drift,
    enable::Switches,
    error::Error,
    figures::{Group, pressure},
    flush::{Flusher, HoldTimes},
    hierarchy::Hierarchy,
    info::ProgramRuns,
    kernel::Kernel,
    load::{Loaded, Options, Probe, ProgramReport, Sizes, load, map_all, map_bytes, reason, take},
    mapped::{MappedMaps, now_ns},
    model::{CgroupPressure, Flush, Quality, SCHEMA, Snapshot, Source},
    privilege,
    programs::Kind,
    slots::Slots,
    track::Filter,
    wakeups::Wakeups,
};

const ROOT_SLOT: u32 = 0;
/// Averaging periods between two walks over all tasks: half a minute.
const AUDIT_PERIODS: u64 = 15;

/// The attached tracer. Dropping it detaches everything.
pub struct Tracer {
    ebpf: Ebpf,
    maps: MappedMaps,
    wakeups: Wakeups,
    ids: HashMap<MapData, u64, u32>,
    free_slots: Stack<MapData, u32>,
    slots: Slots,
    flusher: Flusher,
    groups: Vec<Group>,
    source: Source,
    reports: Vec<ProgramReport>,
    sizes: Sizes,
    map_bytes: Vec<(String, u64)>,
    schedule: Schedule,
    clocks: Drift,
    /// Storage failures before all tasks had been seeded: events on tasks that nothing was known of yet.
    unseeded: u64,
    /// Averaging periods that have passed.
    periods: u64,
    snapshot_ns: u64,
    with_counts: bool,
    hierarchy: Hierarchy,
    filter: Filter,
    /// Whether the whole tree is to be looked at after this averaging period.
    rescan_soon: bool,
    unverified: Vec<adopt::Unverified>,
    switches: Switches,
    listener: Option<Listener>,
}

impl Tracer {
    /// Loads and attaches everything and counts all tasks that exist.
    ///
    /// # Errors
    /// See [`Error`]; nothing stays attached then.
    pub fn attach(options: &Options) -> Result<Self, Error> {
        privilege::check()?;
        let clocks = Drift::new();
        let kernel = Kernel::running()?;
        let hierarchy = Hierarchy::find(&options.hierarchy)?;
        let existing = hierarchy.walk()?;
        let sizes = Sizes::for_machine(&existing, options)?;
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

        let map_bytes = map_bytes(&loaded.ebpf);
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
                take(&mut loaded.ebpf, "NEW_CGROUPS")?,
                Duration::from_nanos(period_ns(tick_ns)),
            )
            .map_err(|error| Error::Object(format!("waiting for events: {error}")))?,
            ids: take(&mut loaded.ebpf, "CGROUP_IDS")?,
            free_slots,
            slots: Slots::new(hierarchy.clone(), maps.slots(), options.only_leaf),
            flusher: Flusher::new(&maps, now, tick_ns),
            groups: vec![Group::default(); maps.slots()],
            source: loaded.source,
            reports: loaded.reports,
            sizes,
            map_bytes,
            schedule: Schedule::new(now, period_ns(tick_ns)),
            clocks,
            unseeded: 0,
            periods: 0,
            snapshot_ns: now,
            with_counts: options.counts,
            filter: options.track.clone(),
            rescan_soon: false,
            unverified: Vec::new(),
            switches: Switches::default(),
            listener: None,
            ebpf: loaded.ebpf,
            maps,
            hierarchy,
        };
        tracer.maps.set_drift(tracer.clocks.update());
        if options.irq {
            tracer.find_ksoftirqds();
        }
        tracer.adopt(&existing)?;
        tracer.attach_all()?;
        // Cgroups made between the first walk and the attachment; and those that went are taken back.
        let again = tracer.hierarchy.walk()?;
        tracer.adopt(&again)?;
        tracer.drop_vanished(&existing, &again);
        tracer.walk_tasks()?;
        tracer.unseeded = tracer.maps.counter(Counter::StorageFailures);
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
        let sizes = Sizes::for_machine(&hierarchy.walk()?, options)?;
        let Loaded { source, reports, .. } = load(&kernel, &hierarchy, sizes, options)?;
        Ok(Probe { sizes, reports, source })
    }

    /// Becomes readable when [`Self::housekeeping`] has something to do.
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wakeups.as_fd()
    }

    /// Follows moved tasks, frees the slots of cgroups that are gone, samples once each averaging period, as the kernel
    /// does, and audits all tasks every half minute. Cheap when there is nothing to do.
    ///
    /// # Errors
    /// When the walk over the tasks fails.
    pub fn housekeeping(&mut self) -> Result<(), Error> {
        let due = self.wakeups.take();
        self.periods += u64::from(due);
        self.adopt_new(due)?;
        if self.maps.take_resync() || due && self.periods.is_multiple_of(AUDIT_PERIODS) {
            self.walk_tasks()?;
        }
        if self.maps.take_recycle() || self.slots.is_recycling() {
            self.recycle();
        }
        self.answer_requests();
        if due {
            self.maps.set_drift(self.clocks.update());
            self.sample();
        }
        Ok(())
    }

    /// Closes the window over which CPUs are weighed against each other, as the kernel does once an averaging period
    /// and whenever one of its pressure files is read. [`Self::housekeeping`] does the former; this is for who
    /// compares with the kernel's files.
    pub fn sample(&mut self) {
        self.slots.refresh(&self.maps, now_ns());
        self.switches.settle(&self.maps);
        self.flusher.close(&self.maps, &self.slots);
        let Some(due) = self.schedule.due(self.flusher.last_ns()) else {
            return;
        };
        for (slot, _) in self.slots.iter() {
            self.groups[slot as usize].average(self.flusher.totals(slot), due);
        }
    }

    /// Whether the last flush left readings unused: their updaters were stopped in the middle of their work, with their
    /// virtual CPUs. Totals lack what these gained until a later flush makes up for it.
    #[must_use]
    pub fn has_unread(&self) -> bool {
        self.flusher.has_unread()
    }

    /// Flushes and yields the pressure of all cgroups that exist.
    ///
    /// # Errors
    /// When following moved tasks fails.
    pub fn snapshot(&mut self) -> Result<Snapshot, Error> {
        self.housekeeping()?;
        self.slots.refresh(&self.maps, now_ns());
        self.switches.settle(&self.maps);
        self.flusher.flush(&self.maps, &self.slots);
        let now = self.flusher.last_ns();
        let interval_ns = now.saturating_sub(self.snapshot_ns);
        self.snapshot_ns = now;
        let mut cgroups: Vec<CgroupPressure> = Vec::with_capacity(self.slots.used());
        for (slot, known, path) in self.slots.ordered() {
            if self.switches.is_disabled(slot) {
                continue;
            }
            let figures = self.groups[slot as usize].figures(self.flusher.totals(slot), interval_ns);
            let mut cgroup = pressure(path, known.id, known.level, &figures, &self.source);
            cgroup.counts = self.with_counts.then(|| self.maps.counts(slot));
            cgroups.push(cgroup);
        }
        Ok(Snapshot {
            schema: SCHEMA,
            time_ns: SystemTime::UNIX_EPOCH
                .elapsed()
                .map_or(0, |time| time.as_nanos() as u64),
            interval_ns,
            source: self.source.clone(),
            quality: self.quality(),
            flush: Some(self.flush_figures()),
            cgroups,
        })
    }

    /// What was missed or repaired so far.
    pub fn quality(&self) -> Quality {
        let counter = |counter| self.maps.counter(counter);
        Quality {
            missed_switches: counter(Counter::MissedSwitches),
            repaired: counter(Counter::RepairedRunning),
            drift: counter(Counter::RepairedTasks),
            storage_failures: counter(Counter::StorageFailures) - self.unseeded,
            overflows: counter(Counter::Overflows),
            missed_irqs: counter(Counter::MissedIrqs),
            cgroups_without_slot: self.maps.without_slot().load(SeqCst),
            program_misses: self.program_misses(),
            rejected_readings: self.flusher.rejected,
        }
    }

    /// The hierarchy that is traced.
    pub const fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// Whether a cgroup has figures of its own. Not so if it is left out, or has no slot.
    pub fn is_tracked(&self, path: &str) -> bool {
        self.slots
            .iter()
            .any(|(_, known)| known.exists && known.path.as_deref() == Some(path))
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

    /// What the flush cost so far.
    pub const fn flush_figures(&self) -> Flush {
        Flush {
            cost: self.flusher.cost,
            hold_us: self.flusher.hold_times,
            longest_hold_ns: self.flusher.hold_times.longest_ns,
        }
    }

    /// How large the maps are.
    pub const fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// What the kernel says that each map takes, bytes, by the maps' names.
    pub fn map_bytes(&self) -> &[(String, u64)] {
        &self.map_bytes
    }

    /// How often each loaded program ran and how long, while kernel.bpf_stats_enabled was on.
    pub fn program_runs(&self) -> Vec<ProgramRuns> {
        let mut runs: Vec<ProgramRuns> = self
            .ebpf
            .programs()
            .filter_map(|(name, program)| crate::info::runs(name, program.fd().ok()?.as_fd()))
            .collect();
        runs.sort_by(|a, b| a.name.cmp(&b.name));
        runs
    }

    /// Frees the slots of cgroups that are gone.
    fn recycle(&mut self) {
        let now = now_ns();
        self.slots.refresh(&self.maps, now);
        for slot in self.slots.recycle(&self.maps, &mut self.flusher, now) {
            self.groups[slot as usize] = Group::default();
            self.switches.forget(slot);
            // Cannot be full: it has room for every slot.
            let _ = self.free_slots.push(slot, 0);
        }
        if self.slots.is_recycling() {
            self.wakeups.again_soon();
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
                if report.spec.is_memstall() {
                    // Half a source would be wrong figures: none are better.
                    self.source.memstall = None;
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
}
