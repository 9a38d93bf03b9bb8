//! What `psitrace dump` writes.

use serde_json::Value;

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

    /// By how much a total grew from `self` to `after`, in % of the time between the two.
    #[track_caller]
    pub fn growth(&self, after: &Self, path: &str, resource: &str, kind: &str) -> f64 {
        let grown_us = after.total_us(path, resource, kind) - self.total_us(path, resource, kind);
        grown_us * 100_000.0 / (after.at_ns - self.at_ns) as f64
    }
}

/// Panics unless `seen` is within `points` of `expected`, both in %.
#[track_caller]
pub fn assert_near(what: &str, seen: f64, expected: f64, points: f64) {
    assert!(
        (seen - expected).abs() <= points,
        "{what}: expected {expected:.1} % +- {points}, saw {seen:.1} %"
    );
}
