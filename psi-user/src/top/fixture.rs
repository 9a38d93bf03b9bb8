//! Snapshots for the tests.

use super::source::History;
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

/// A machine with services and pods, both drivers' names among them.
pub(super) fn pod_machine() -> Vec<CgroupPressure> {
    const HASH: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    let pod =
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1a2b3c4d_0000_4000_8000_00000000000f.slice";
    let container = format!("{pod}/cri-containerd-{HASH}.scope");
    let paths = [
        ("/", 40.25),
        ("/kubepods.slice", 31.0),
        ("/kubepods.slice/kubepods-burstable.slice", 31.0),
        (pod, 31.0),
        (&container, 31.0),
        ("/machine.slice", 0.0),
        ("/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", 0.0),
        ("/system.slice", 75.5),
        ("/system.slice/db.service", 75.5),
        ("/system.slice/docker-db.service", 0.12),
        ("/system.slice/web.service", 0.004),
    ];
    (1..)
        .zip(paths)
        .map(|(id, (path, some))| cgroup(path, id, some))
        .collect()
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

/// A recording in memory.
pub(super) struct Recording(pub(super) Vec<Snapshot>);

impl History for Recording {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn time_ns(&self, index: usize) -> u64 {
        self.0[index].time_ns
    }

    fn frame(&mut self, index: usize) -> anyhow::Result<Snapshot> {
        Ok(self.0[index].clone())
    }
}
