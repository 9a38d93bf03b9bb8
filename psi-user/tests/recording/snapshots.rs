//! Snapshots of all kinds: cgroups that come, go and change, figures as the tracer makes them.

use proptest::{collection::vec, prelude::*};
use psi_user::{
    flush::{FlushCost, HoldTimes},
    model::{CgroupPressure, Flush, Full, MemstallSource, Pressure, Quality, SCHEMA, Snapshot, SomeFull, Source},
};

/// What becomes of a cgroup from one snapshot to the next.
#[derive(Clone, Copy, Debug)]
struct Step {
    is_there: bool,
    /// One of a few names, in a tree.
    name: u8,
    gained: [u32; 7],
    averages: u16,
}

fn step() -> impl Strategy<Value = Step> {
    let gained = prop_oneof![Just([0; 7]), any::<[u32; 7]>()];
    (prop::bool::weighted(0.8), any::<u8>(), gained, 0..=10_000_u16).prop_map(|(is_there, name, gained, averages)| {
        Step {
            is_there,
            name: name % 40,
            gained,
            averages,
        }
    })
}

/// A run of snapshots of up to a dozen cgroups.
pub(crate) fn run() -> impl Strategy<Value = Vec<Snapshot>> {
    let snapshot = (vec(step(), 0..12), 1_u32.., any::<[u32; 9]>());
    (vec(snapshot, 1..12), prop::bool::ANY, prop::bool::ANY).prop_map(|(steps, has_memory, has_irq)| {
        let mut totals = std::collections::BTreeMap::new();
        let mut time_ns = 1_767_323_045_000_000_000;
        let snapshots = steps.into_iter().map(|(steps, interval, counters)| {
            let interval_ns = u64::from(interval);
            time_ns += interval_ns;
            let mut cgroups: Vec<CgroupPressure> = Vec::new();
            for step in steps.into_iter().filter(|step| step.is_there) {
                if cgroups.iter().any(|cgroup| cgroup.id == u64::from(step.name)) {
                    continue;
                }
                let total: &mut [u64; 7] = totals.entry(step.name).or_default();
                cgroups.push(cgroup(step, total, interval_ns, has_memory, has_irq));
            }
            cgroups.sort_by(|a, b| a.path.cmp(&b.path));
            snapshot_of(time_ns, interval_ns, counters, cgroups, has_memory, has_irq)
        });
        snapshots.collect()
    })
}

fn cgroup(step: Step, totals: &mut [u64; 7], interval_ns: u64, has_memory: bool, has_irq: bool) -> CgroupPressure {
    let Step {
        name, gained, averages, ..
    } = step;
    let mut line = |n: usize| {
        totals[n] += u64::from(gained[n]);
        let average = |part: u16| f64::from(averages / part) / 100.0;
        Pressure {
            avg10: average(1),
            avg60: average(3),
            avg300: average(7),
            total_ns: totals[n],
            last: (f64::from(gained[n]) * 100.0 / interval_ns as f64).min(100.0),
        }
    };
    let mut both = |n| SomeFull {
        some: line(n),
        full: line(n + 1),
    };
    let (cpu, memory, io) = (both(0), both(2), both(4));
    CgroupPressure {
        path: match name {
            0 => "/".to_owned(),
            _ => format!("/a\u{e9}{}/{}", name % 3, "x".repeat(name.into())),
        },
        id: name.into(),
        level: (name % 5).into(),
        cpu,
        memory: has_memory.then_some(memory),
        io,
        irq: has_irq.then_some(Full { full: line(6) }),
        counts: None,
    }
}

fn snapshot_of(
    time_ns: u64,
    interval_ns: u64,
    counters: [u32; 9],
    cgroups: Vec<CgroupPressure>,
    has_memory: bool,
    has_irq: bool,
) -> Snapshot {
    let flush = counters[0].is_multiple_of(2).then(|| {
        let mut hold_us = HoldTimes::default();
        hold_us.add(counters[1].into());
        Flush {
            cost: FlushCost {
                flushes: counters[2].into(),
                records: counters[3].into(),
                time_ns: counters[4].into(),
                longest_ns: counters[5].into(),
            },
            longest_hold_ns: hold_us.longest_ns,
            hold_us,
        }
    });
    let mut counters = counters.into_iter().map(u64::from);
    let mut counter = || counters.next().unwrap_or_default();
    Snapshot {
        schema: SCHEMA,
        time_ns,
        interval_ns,
        source: Source {
            memstall: has_memory.then_some(MemstallSource::TaskBit),
            irq: if has_irq {
                vec!["softirq".to_owned()]
            } else {
                Vec::new()
            },
            hierarchy: "v2".to_owned(),
        },
        quality: Quality {
            missed_switches: counter(),
            repaired: counter(),
            drift: counter(),
            storage_failures: counter(),
            overflows: counter(),
            missed_irqs: counter(),
            cgroups_without_slot: counter(),
            program_misses: counter(),
            rejected_readings: counter(),
        },
        flush,
        cgroups,
    }
}

/// A snapshot of one cgroup, `/`, with this share of the last interval, and nothing else.
pub(crate) fn with_cpu_some(time_ns: u64, percent: f64) -> Snapshot {
    let step = Step {
        is_there: true,
        name: 0,
        gained: [0; 7],
        averages: 0,
    };
    let mut cgroup = cgroup(step, &mut [0; 7], 1_000_000_000, true, true);
    cgroup.cpu.some.last = percent;
    snapshot_of(time_ns, 1_000_000_000, [0; 9], vec![cgroup], true, true)
}
