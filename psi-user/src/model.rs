//! What a flush yields, for every command to show: one snapshot of all cgroups.

use serde::{Serialize, Serializer};

use crate::flush::{FlushCost, HoldTimes};

/// Name of the JSON form of a [`Snapshot`]; its number grows when a field changes its meaning.
pub const SCHEMA: &str = "psitrace/1";

/// One flush.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// When, ns since 1970 (CLOCK_REALTIME).
    pub time_ns: u64,
    /// Time since the flush before, or since the tracer came for the first one, ns.
    pub interval_ns: u64,
    /// Where the figures come from.
    pub source: Source,
    /// What was missed or repaired since the tracer came.
    pub quality: Quality,
    /// What the flush cost so far; none where nobody measured it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush: Option<Flush>,
    /// All cgroups of the hierarchy that still exist: parents before their children, siblings by name.
    pub cgroups: Vec<CgroupPressure>,
}

/// What the flush cost since the tracer came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Flush {
    /// Flushes, records and time.
    #[serde(flatten)]
    pub cost: FlushCost,
    /// How long it held what an updater can meet.
    pub hold_us: HoldTimes,
    /// The longest of these, ns.
    pub longest_hold_ns: u64,
}

impl Flush {
    /// The names in JSON of what [`Self::numbers`] yields, below `flush`.
    pub const NAMES: [&str; 19] = [
        "flushes",
        "records",
        "time_ns",
        "longest_ns",
        "hold_us.0-1",
        "hold_us.1-5",
        "hold_us.5-10",
        "hold_us.10-15",
        "hold_us.15-20",
        "hold_us.20-25",
        "hold_us.25-30",
        "hold_us.30-40",
        "hold_us.40-50",
        "hold_us.50-60",
        "hold_us.60-70",
        "hold_us.70-80",
        "hold_us.80-90",
        "hold_us.>90",
        "longest_hold_ns",
    ];

    /// All its numbers, in the order of JSON.
    pub fn numbers(&self) -> [u64; Self::NAMES.len()] {
        let mut numbers = [0; Self::NAMES.len()];
        let FlushCost {
            flushes,
            records,
            time_ns,
            longest_ns,
        } = self.cost;
        numbers[..4].copy_from_slice(&[flushes, records, time_ns, longest_ns]);
        numbers[4..18].copy_from_slice(&self.hold_us.counts);
        numbers[18] = self.longest_hold_ns;
        numbers
    }

    /// What [`Self::numbers`] says these are.
    pub(crate) fn from_numbers(numbers: &[u64; Self::NAMES.len()]) -> Self {
        let [flushes, records, time_ns, longest_ns, counts @ .., longest_hold_ns] = *numbers;
        Self {
            cost: FlushCost {
                flushes,
                records,
                time_ns,
                longest_ns,
            },
            hold_us: HoldTimes {
                counts,
                longest_ns: longest_hold_ns,
            },
            longest_hold_ns,
        }
    }
}

/// Where the figures come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Source of memory stalls; absent when memory is not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memstall: Option<MemstallSource>,
    /// Interrupt kinds that are timed, as the kernel names their tracepoints without `_entry`; empty when
    /// interrupts are not measured.
    pub irq: Vec<String>,
    /// `v2`, or a v1 controller's name.
    pub hierarchy: String,
}

/// Source of memory stalls, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum MemstallSource {
    /// The kernel's own enter and leave functions: complete.
    #[serde(rename = "fentry")]
    Fentry,
    /// The kernel's per-task bit while a task is off the CPU, reclaim tracepoints while it runs.
    #[serde(rename = "task-bit+tracepoints")]
    TaskBit,
    /// Reclaim tracepoints alone: partial, no refaults and no swap-in.
    #[serde(rename = "tracepoints")]
    Tracepoints,
}

impl MemstallSource {
    /// All there are.
    pub(crate) const ALL: [Self; 3] = [Self::Fentry, Self::TaskBit, Self::Tracepoints];

    /// The name in all outputs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fentry => "fentry",
            Self::TaskBit => "task-bit+tracepoints",
            Self::Tracepoints => "tracepoints",
        }
    }
}

/// Counters of what was missed or repaired since the tracer came. All 0 is perfect; docs/output.md says what each
/// means and what to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Quality {
    /// Context switches that the kernel did not report.
    pub missed_switches: u64,
    /// Tasks that were put right at an interrupt of their CPU, or when they were freed.
    pub repaired: u64,
    /// Waiting and sleeping tasks that two walks over all tasks in a row found wrong, and put right.
    pub drift: u64,
    /// Events on a task for which there was no memory.
    pub storage_failures: u64,
    /// Tasks left uncounted because more than 8191 of one kind were on one CPU in one cgroup.
    pub overflows: u64,
    /// Interrupts whose end was not reported.
    pub missed_irqs: u64,
    /// Cgroups that exist now and are charged to their nearest ancestor because no slot is left.
    pub cgroups_without_slot: u64,
    /// Program runs that the kernel skipped because the same program was running on that CPU.
    pub program_misses: u64,
    /// Readings outside of their possible range that were not used.
    pub rejected_readings: u64,
}

impl Quality {
    /// All counters, by their names in JSON.
    pub const fn counters(self) -> [(&'static str, u64); 9] {
        [
            ("missed_switches", self.missed_switches),
            ("repaired", self.repaired),
            ("drift", self.drift),
            ("storage_failures", self.storage_failures),
            ("overflows", self.overflows),
            ("missed_irqs", self.missed_irqs),
            ("cgroups_without_slot", self.cgroups_without_slot),
            ("program_misses", self.program_misses),
            ("rejected_readings", self.rejected_readings),
        ]
    }

    /// What they are called where room is short, in the order of [`Self::counters`].
    pub(crate) const SHORT_TITLES: [&str; 9] = [
        "missed",
        "repaired",
        "drift",
        "storage failures",
        "overflows",
        "missed irqs",
        "without slot",
        "program misses",
        "rejected readings",
    ];

    /// What [`Self::counters`] says these are, in its order.
    pub(crate) const fn from_counters(values: [u64; 9]) -> Self {
        let [
            missed_switches,
            repaired,
            drift,
            storage_failures,
            overflows,
            missed_irqs,
            cgroups_without_slot,
            program_misses,
            rejected_readings,
        ] = values;
        Self {
            missed_switches,
            repaired,
            drift,
            storage_failures,
            overflows,
            missed_irqs,
            cgroups_without_slot,
            program_misses,
            rejected_readings,
        }
    }
}

/// One cgroup's pressure.
#[derive(Clone, Debug, Serialize)]
pub struct CgroupPressure {
    /// Path from the hierarchy's root: `/`, `/a/b`.
    pub path: String,
    /// The cgroup's id: the inode number of its directory.
    pub id: u64,
    /// Depth, 0 for the root.
    pub level: u32,
    /// Waiting for a CPU.
    pub cpu: SomeFull,
    /// Waiting for memory; absent when not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<SomeFull>,
    /// Waiting for block IO.
    pub io: SomeFull,
    /// Interrupted; absent when not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub irq: Option<Full>,
    /// What the records count now; absent unless asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
}

/// What a cgroup's records count, summed over the CPUs: of its own tasks, and, once each, of its children's records
/// that count any on that CPU. For tests and for finding faults: without tasks all are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Runnable tasks that wait for the CPU.
    pub waiting: i64,
    /// Tasks in an IO wait.
    pub iowait: i64,
    /// Tasks in a memory stall.
    pub memstall: i64,
    /// Runnable tasks, running or not, that are in no memory stall.
    pub productive: i64,
    /// Tasks on the CPU.
    pub running: i64,
    /// Tasks on the CPU that are in a memory stall.
    pub running_memstall: i64,
}

/// `some` and `full` of one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SomeFull {
    /// At least one task was stalled.
    pub some: Pressure,
    /// All non-idle tasks were stalled.
    pub full: Pressure,
}

/// A resource that has only `full`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Full {
    /// All tasks were stalled.
    pub full: Pressure,
}

/// One line of a pressure file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Pressure {
    /// Running average over 10 s, % (0 to 100), as the kernel computes it; likewise the next two.
    pub avg10: f64,
    /// Over 60 s.
    pub avg60: f64,
    /// Over 300 s.
    pub avg300: f64,
    /// Total stall time since the tracer came, ns; in JSON `total_us` with three decimals.
    #[serde(rename = "total_us", serialize_with = "as_us")]
    pub total_ns: u64,
    /// Share of the last interval, % (0 to 100).
    #[serde(skip)]
    pub last: f64,
}

/// How much `gained_ns` is of an interval, % (0 to 100).
pub(crate) fn share(gained_ns: u64, interval_ns: u64) -> f64 {
    (gained_ns as f64 * 100.0 / interval_ns.max(1) as f64).min(100.0)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn as_us<S: Serializer>(ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(*ns as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_titles_are_parts_of_the_names() {
        for ((name, _), title) in Quality::default().counters().iter().zip(Quality::SHORT_TITLES) {
            assert!(name.replace('_', " ").contains(title), "{name}: {title}");
        }
    }
}
