//! The content of a frame: a snapshot as what changed since the one before.
//!
//! A key frame is the same as any other, on nothing before it.

mod decode;
mod encode;

use std::collections::HashMap;

pub(super) use self::{
    decode::Decoder,
    encode::{Encoded, Encoder},
};
use crate::{
    fields::{Kind, Resource, Stall},
    model::{CgroupPressure, Flush, Full, Pressure, Quality, SCHEMA, Snapshot, SomeFull, Source, share},
};

/// What a frame builds on: the frame before.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    source: Option<Source>,
    quality: [u64; 9],
    flush: Option<[u64; Flush::NAMES.len()]>,
    cgroups: Vec<Cgroup>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cgroup {
    path: String,
    id: u64,
    level: u32,
    /// A bit for each of [`Stall::ALL`].
    measured: u8,
    /// In the order of [`Stall::ALL`].
    figures: [Line; Stall::ALL.len()],
}

/// One line of a pressure file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Line {
    /// avg10, avg60 and avg300 in hundredths of a percent.
    averages: [u32; 3],
    total_ns: u64,
    /// Gained in the last interval.
    gained_ns: u64,
}

impl Line {
    /// `before`: the total one frame ago.
    fn new(pressure: &Pressure, before_ns: u64, interval_ns: u64) -> Self {
        let &Pressure {
            avg10,
            avg60,
            avg300,
            total_ns,
            last,
        } = pressure;
        // Which it is but for figures that were hidden for a while.
        let mut gained_ns = total_ns.saturating_sub(before_ns);
        if share(gained_ns, interval_ns).to_bits() != last.to_bits() {
            gained_ns = (last * interval_ns as f64 / 100.0).round() as u64;
        }
        Self {
            averages: [avg10, avg60, avg300].map(|average| (average * 100.0).round() as u32),
            total_ns,
            gained_ns,
        }
    }

    fn pressure(&self, interval_ns: u64) -> Pressure {
        let [avg10, avg60, avg300] = self.averages.map(|hundredths| f64::from(hundredths) / 100.0);
        Pressure {
            avg10,
            avg60,
            avg300,
            total_ns: self.total_ns,
            last: share(self.gained_ns, interval_ns),
        }
    }
}

impl State {
    /// What a snapshot says; `before` is of the one before.
    fn of(snapshot: &Snapshot, before: &Self) -> Self {
        let known: HashMap<u64, &Cgroup> = before.cgroups.iter().map(|cgroup| (cgroup.id, cgroup)).collect();
        let cgroups = snapshot.cgroups.iter().map(|cgroup| {
            let mut measured = 0;
            let mut figures = [Line::default(); Stall::ALL.len()];
            for (n, stall) in Stall::ALL.into_iter().enumerate() {
                let Some(pressure) = stall.of(cgroup) else { continue };
                let before_ns = known.get(&cgroup.id).map_or(0, |known| known.figures[n].total_ns);
                measured |= 1 << n;
                figures[n] = Line::new(pressure, before_ns, snapshot.interval_ns);
            }
            Cgroup {
                path: cgroup.path.clone(),
                id: cgroup.id,
                level: cgroup.level,
                measured,
                figures,
            }
        });
        Self {
            source: Some(snapshot.source.clone()),
            quality: snapshot.quality.counters().map(|(_, count)| count),
            flush: snapshot.flush.as_ref().map(Flush::numbers),
            cgroups: cgroups.collect(),
        }
    }

    fn snapshot(&self, time_ns: u64, interval_ns: u64) -> Option<Snapshot> {
        Some(Snapshot {
            schema: SCHEMA,
            time_ns,
            interval_ns,
            source: self.source.clone()?,
            flush: self.flush.as_ref().map(Flush::from_numbers),
            quality: Quality::from_counters(self.quality),
            cgroups: self.cgroups.iter().map(|cgroup| cgroup.pressure(interval_ns)).collect(),
        })
    }
}

impl Cgroup {
    /// Whether it is the same cgroup, of which the same is measured.
    fn is(&self, other: &Self) -> bool {
        (self.id, self.level, self.measured) == (other.id, other.level, other.measured) && self.path == other.path
    }

    fn pressure(&self, interval_ns: u64) -> CgroupPressure {
        let line = |resource, kind| {
            let n = Stall { resource, kind }.place()?;
            (self.measured >> n & 1 != 0).then(|| self.figures[n].pressure(interval_ns))
        };
        let both = |resource| {
            Some(SomeFull {
                some: line(resource, Kind::Some)?,
                full: line(resource, Kind::Full)?,
            })
        };
        CgroupPressure {
            path: self.path.clone(),
            id: self.id,
            level: self.level,
            cpu: both(Resource::Cpu).unwrap_or_default(),
            memory: both(Resource::Memory),
            io: both(Resource::Io).unwrap_or_default(),
            irq: line(Resource::Irq, Kind::Full).map(|full| Full { full }),
            counts: None,
        }
    }
}
