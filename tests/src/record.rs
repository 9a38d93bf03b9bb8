//! What `psitrace dump` writes.

use serde_json::{Value, json};

use crate::cgroup::Cgroup;

/// Readings that a run may give up: an emulator, or a host that takes a virtual CPU away, leaves an updater standing in the
/// middle of its work.
pub const MOST_REJECTED_READINGS: u64 = 3;

/// One record.
#[derive(Clone, Debug)]
pub struct Record {
    /// The JSON object.
    pub json: Value,
    /// Its place on the tracer's own clock: the sum of all intervals up to it, ns.
    pub at_ns: u64,
}

impl Record {
    /// Parses a line; `before_ns` is the place of the record before it.
    pub fn parse(line: &str, before_ns: u64) -> Self {
        let json: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("not JSON: {error}: {line:?}"));
        let interval_ns = json["interval_ns"]
            .as_u64()
            .unwrap_or_else(|| panic!("no interval_ns: {line}"));
        Self {
            json,
            at_ns: before_ns + interval_ns,
        }
    }

    /// All records of an output.
    pub fn all(output: &str) -> Vec<Self> {
        let mut records: Vec<Self> = Vec::new();
        for line in output.lines() {
            records.push(Self::parse(line, records.last().map_or(0, |record| record.at_ns)));
        }
        records
    }

    /// All cgroups.
    pub fn cgroups(&self) -> &[Value] {
        self.json["cgroups"]
            .as_array()
            .unwrap_or_else(|| panic!("no cgroups: {}", self.json))
    }

    /// Paths of all cgroups.
    pub fn paths(&self) -> Vec<&str> {
        self.cgroups()
            .iter()
            .map(|cgroup| cgroup["path"].as_str().expect("paths are strings"))
            .collect()
    }

    /// One cgroup.
    pub fn cgroup(&self, path: &str) -> Option<&Value> {
        self.cgroups().iter().find(|cgroup| cgroup["path"] == path)
    }

    /// A total, us: of `cpu` and `some`, say.
    #[track_caller]
    pub fn total_us(&self, path: &str, resource: &str, kind: &str) -> f64 {
        let Some(cgroup) = self.cgroup(path) else {
            panic!("expected the cgroup {path}, saw {:?}", self.paths());
        };
        cgroup[resource][kind]["total_us"]
            .as_f64()
            .unwrap_or_else(|| panic!("expected a total of {resource} {kind}, saw {cgroup}"))
    }

    /// A counter of what was missed or repaired.
    #[track_caller]
    pub fn quality(&self, counter: &str) -> u64 {
        let quality = &self.json["quality"];
        quality[counter]
            .as_u64()
            .unwrap_or_else(|| panic!("expected the counter {counter}, saw {quality}"))
    }

    /// Panics if more readings were given up than virtual CPUs that stand still explain.
    #[track_caller]
    pub fn expect_readings(&self) {
        let rejected = self.quality("rejected_readings");
        assert!(
            rejected <= MOST_REJECTED_READINGS,
            "expected at most {MOST_REJECTED_READINGS} rejected readings, saw {rejected}"
        );
    }

    /// By how much a total grew from `self` to `after`, in % of the time between the two.
    #[track_caller]
    pub fn growth(&self, after: &Self, path: &str, resource: &str, kind: &str) -> f64 {
        let grown_us = after.total_us(path, resource, kind) - self.total_us(path, resource, kind);
        grown_us * 100_000.0 / (after.at_ns - self.at_ns) as f64
    }

    /// Panics unless a total, of `cpu some`, say, grew from `self` to `after` by this share of the time between the two.
    #[track_caller]
    pub fn expect(&self, after: &Self, cgroup: &Cgroup, figure: &str, share: Share) {
        let (resource, kind) = figure.split_once(' ').expect("a resource and a kind");
        let seen = self.growth(after, cgroup.path(), resource, kind);
        share.check(&format!("{} {figure}", cgroup.path()), seen);
    }
}

/// Whether the records of a cgroup, one of [`Record::cgroups`] with `--counts`, count nothing: as without tasks.
pub fn counts_nothing(cgroup: &Value) -> bool {
    cgroup["counts"]
        == json!({
            "waiting": 0, "iowait": 0, "memstall": 0, "productive": 0, "running": 0, "running_memstall": 0
        })
}

/// A share of some time, in %.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// How much.
    pub percent: f64,
    /// It may be so much more or less.
    pub points: f64,
}

impl Share {
    /// All the time, but for what a load lets others do.
    pub const ALWAYS: Self = Self::about(100.0, 5.0);
    /// Never. The weights of CPUs are whole ticks over the kernel's period of 2 s, and rounding may show a little late.
    pub const NEVER: Self = Self::about(0.0, 2.0);

    /// `percent`, give or take `points`.
    pub const fn about(percent: f64, points: f64) -> Self {
        Self { percent, points }
    }

    /// Panics unless `seen` is that much.
    #[track_caller]
    pub fn check(self, what: &str, seen: f64) {
        let Self { percent, points } = self;
        assert!(
            (seen - percent).abs() <= points,
            "{what}: expected {percent:.1} % +- {points}, saw {seen:.2} %"
        );
    }
}
