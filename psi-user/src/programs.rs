//! The BPF programs: which there are, what each is for, which the tracer cannot do without.

use crate::{kernel::Kernel, model::MemstallSource};

/// How a program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A tracepoint with typed arguments.
    Tracepoint,
    /// The entry of a kernel function.
    Fentry,
    /// The walk over the tasks, which userspace runs.
    TaskIterator,
}

/// What a program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Task states: required.
    Sched,
    /// Cgroups that come and go: required.
    Cgroup,
    /// Interrupt time.
    Irq,
    /// Memory stalls from the kernel's own functions.
    MemstallFunctions,
    /// Memory stalls from reclaim tracepoints.
    MemstallTracepoints,
}

/// One program of the object; its name there is also the hook's, but for the iterator's.
#[derive(Clone, Copy, Debug)]
pub struct ProgramSpec {
    /// Name in the object.
    pub name: &'static str,
    /// How it is attached.
    pub kind: Kind,
    /// What it is for.
    pub family: Family,
    /// Whether the tracer is wrong without it.
    pub required: bool,
    /// The program that must be there too: an entry is useless without its exit.
    pub partner: Option<&'static str>,
}

const fn required(name: &'static str, kind: Kind, family: Family) -> ProgramSpec {
    ProgramSpec {
        name,
        kind,
        family,
        required: true,
        partner: None,
    }
}

const fn optional(name: &'static str, kind: Kind, family: Family, partner: Option<&'static str>) -> ProgramSpec {
    ProgramSpec {
        name,
        kind,
        family,
        required: false,
        partner,
    }
}

macro_rules! pairs {
    ($family:expr, $($begin:literal $end:literal),* $(,)?) => {
        [$(
            // The exit first: an exit without its entry is ignored, the reverse would count up to the next exit.
            optional($end, Kind::Tracepoint, $family, Some($begin)),
            optional($begin, Kind::Tracepoint, $family, Some($end)),
        )*]
    };
}

const SCHED: [ProgramSpec; 13] = [
    // Storage for new tasks before any event on them.
    required("sched_process_fork", Kind::Tracepoint, Family::Sched),
    // Places of tasks that are gone, before any is taken.
    required("sched_process_free", Kind::Tracepoint, Family::Sched),
    required("cgroup_release", Kind::Tracepoint, Family::Cgroup),
    required("cgroup_mkdir", Kind::Tracepoint, Family::Cgroup),
    optional("cgroup_rmdir", Kind::Tracepoint, Family::Cgroup, None),
    required("cgroup_attach_task", Kind::Tracepoint, Family::Cgroup),
    required("sched_migrate_task", Kind::Tracepoint, Family::Sched),
    required("sched_wakeup_new", Kind::Tracepoint, Family::Sched),
    required("sched_wakeup", Kind::Tracepoint, Family::Sched),
    required("sched_switch", Kind::Tracepoint, Family::Sched),
    // Where CPUs always tick it does not exist, and is not needed.
    optional("tick_stop", Kind::Tracepoint, Family::Sched, None),
    // Where no CPU can go it does not exist, and is not needed.
    optional("cpuhp_exit", Kind::Tracepoint, Family::Sched, None),
    required("walk_tasks", Kind::TaskIterator, Family::Sched),
];

const IRQ: [ProgramSpec; 26] = pairs!(
    Family::Irq,
    "softirq_entry" "softirq_exit",
    "irq_handler_entry" "irq_handler_exit",
    "local_timer_entry" "local_timer_exit",
    "call_function_entry" "call_function_exit",
    "call_function_single_entry" "call_function_single_exit",
    "irq_work_entry" "irq_work_exit",
    "x86_platform_ipi_entry" "x86_platform_ipi_exit",
    "thermal_apic_entry" "thermal_apic_exit",
    "threshold_apic_entry" "threshold_apic_exit",
    "deferred_error_apic_entry" "deferred_error_apic_exit",
    "error_apic_entry" "error_apic_exit",
    "spurious_apic_entry" "spurious_apic_exit",
    "ipi_entry" "ipi_exit",
);

const MEMSTALL_FUNCTIONS: [ProgramSpec; 2] = [
    optional(
        "psi_memstall_leave",
        Kind::Fentry,
        Family::MemstallFunctions,
        Some("psi_memstall_enter"),
    ),
    optional(
        "psi_memstall_enter",
        Kind::Fentry,
        Family::MemstallFunctions,
        Some("psi_memstall_leave"),
    ),
];

const MEMSTALL_TRACEPOINTS: [ProgramSpec; 12] = pairs!(
    Family::MemstallTracepoints,
    "mm_vmscan_direct_reclaim_begin" "mm_vmscan_direct_reclaim_end",
    "mm_vmscan_memcg_reclaim_begin" "mm_vmscan_memcg_reclaim_end",
    "mm_vmscan_node_reclaim_begin" "mm_vmscan_node_reclaim_end",
    "mm_vmscan_kswapd_wake" "mm_vmscan_kswapd_sleep",
    "mm_compaction_begin" "mm_compaction_end",
    "mm_compaction_kcompactd_wake" "mm_compaction_kcompactd_sleep",
);

/// All programs. The memory stall functions come first: what the kernel says to them decides what else is loaded. All
/// others come in the order in which they are attached.
pub fn all() -> impl Iterator<Item = ProgramSpec> {
    MEMSTALL_FUNCTIONS
        .into_iter()
        .chain(SCHED)
        .chain(MEMSTALL_TRACEPOINTS)
        .chain(IRQ)
}

impl ProgramSpec {
    /// Whether the kernel has what the program hooks.
    pub fn exists(&self, kernel: &Kernel) -> bool {
        match self.kind {
            Kind::Tracepoint => kernel.has_tracepoint(self.name),
            Kind::Fentry => kernel.has_function(self.name),
            Kind::TaskIterator => kernel.has_function("bpf_iter_task"),
        }
    }

    /// Whether it is one of the sources of memory stalls.
    pub fn is_memstall(&self) -> bool {
        matches!(self.family, Family::MemstallFunctions | Family::MemstallTracepoints)
    }

    /// The interrupt kind that a program times: the hook's name without its ending.
    pub fn irq_kind(&self) -> Option<&'static str> {
        if self.family == Family::Irq {
            self.name.strip_suffix("_entry")
        } else {
            None
        }
    }
}

/// The memstall families of the object's programs that a source uses.
pub const fn memstall_family(source: MemstallSource) -> Family {
    match source {
        MemstallSource::Fentry => Family::MemstallFunctions,
        MemstallSource::TaskBit | MemstallSource::Tracepoints => Family::MemstallTracepoints,
    }
}

/// The value of the object's global `MEMSTALL_SOURCE`.
pub const fn memstall_global(source: Option<MemstallSource>) -> u32 {
    match source {
        Some(MemstallSource::Fentry) => 0,
        Some(MemstallSource::TaskBit) => 1,
        Some(MemstallSource::Tracepoints) => 2,
        None => 3,
    }
}
