//! Snapshots for the tests.

use crate::model::{CgroupPressure, Full, MemstallSource, Pressure, Quality, SCHEMA, Snapshot, SomeFull, Source};

/// The same figure for all windows, but for the last interval, which is twice as high.
fn pressure(percent: f64) -> Pressure {
    Pressure {
        avg10: percent,
        avg60: percent / 10.0,
        avg300: percent / 100.0,
        total_ns: 0,
        last: percent * 2.0,
    }
}

/// A cgroup with nothing but CPU pressure: `some`, and half of it `full`.
pub(super) fn cgroup(path: &str, id: u64, some: f64) -> CgroupPressure {
    CgroupPressure {
        path: path.to_owned(),
        id,
        level: if path == "/" {
            0
        } else {
            path.matches('/').count() as u32
        },
        cpu: SomeFull {
            some: pressure(some),
            full: pressure(some / 2.0),
        },
        memory: Some(SomeFull::default()),
        io: SomeFull::default(),
        irq: Some(Full::default()),
        counts: None,
    }
}

/// The same without memory and interrupts.
pub(super) fn unmeasured(path: &str, id: u64, some: f64) -> CgroupPressure {
    CgroupPressure {
        memory: None,
        irq: None,
        ..cgroup(path, id, some)
    }
}

/// 2026-01-02 03:04:05 UTC.
pub(super) fn snapshot(cgroups: Vec<CgroupPressure>) -> Snapshot {
    Snapshot {
        schema: SCHEMA,
        time_ns: 1_767_323_045_000_000_000,
        interval_ns: 1_000_000_000,
        source: Source {
            memstall: Some(MemstallSource::Fentry),
            irq: vec!["softirq".to_owned(), "irq_handler".to_owned()],
            hierarchy: "v2".to_owned(),
        },
        quality: Quality::default(),
        flush: None,
        cgroups,
    }
}
