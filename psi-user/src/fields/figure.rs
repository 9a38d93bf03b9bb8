//! The figures of a cgroup: resource, kind and measure of each.

use crate::model::{CgroupPressure, Pressure};

/// What tasks wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// A CPU.
    Cpu,
    /// Memory.
    Memory,
    /// Block IO.
    Io,
    /// Interrupts that took the CPU.
    Irq,
}

impl Resource {
    /// The name in all outputs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Io => "io",
            Self::Irq => "irq",
        }
    }

    /// The same, short enough for a column's title.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Memory => "mem",
            _ => self.name(),
        }
    }
}

/// How many of the tasks wait: a line of a pressure file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// At least one.
    Some,
    /// All that are not idle.
    Full,
}

impl Kind {
    /// The name in all outputs, and the title.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Some => "some",
            Self::Full => "full",
        }
    }
}

/// What is measured of a cgroup: one line of one pressure file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stall {
    /// What is waited for.
    pub resource: Resource,
    /// By how many.
    pub kind: Kind,
}

impl Stall {
    /// All there are, in the order of all outputs. `irq` has only `full`.
    pub const ALL: [Self; 7] = [
        Self::new(Resource::Cpu, Kind::Some),
        Self::new(Resource::Cpu, Kind::Full),
        Self::new(Resource::Memory, Kind::Some),
        Self::new(Resource::Memory, Kind::Full),
        Self::new(Resource::Io, Kind::Some),
        Self::new(Resource::Io, Kind::Full),
        Self::new(Resource::Irq, Kind::Full),
    ];

    const fn new(resource: Resource, kind: Kind) -> Self {
        Self { resource, kind }
    }

    /// Its figures of a cgroup; none where it is not measured.
    pub fn of(self, cgroup: &CgroupPressure) -> Option<&Pressure> {
        let CgroupPressure {
            cpu, memory, io, irq, ..
        } = cgroup;
        let lines = match self.resource {
            Resource::Cpu => cpu,
            Resource::Memory => memory.as_ref()?,
            Resource::Io => io,
            Resource::Irq => return irq.as_ref().filter(|_| self.kind == Kind::Full).map(|irq| &irq.full),
        };
        Some(match self.kind {
            Kind::Some => &lines.some,
            Kind::Full => &lines.full,
        })
    }
}

/// A figure of a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Running average over 10 s.
    Avg10,
    /// Over 60 s.
    Avg60,
    /// Over 300 s.
    Avg300,
    /// Stall time since the tracer came.
    Total,
    /// Share of the last interval.
    Last,
}

impl Measure {
    /// All there are, in the order of all outputs.
    pub const ALL: [Self; 5] = [Self::Avg10, Self::Avg60, Self::Avg300, Self::Total, Self::Last];

    /// The name in all outputs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Avg10 => "avg10",
            Self::Avg60 => "avg60",
            Self::Avg300 => "avg300",
            Self::Total => "total_us",
            Self::Last => "last",
        }
    }

    /// For people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Last => "last interval",
            _ => self.name(),
        }
    }

    /// Its unit.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Total => Unit::Microseconds,
            _ => Unit::Percent,
        }
    }

    /// Its value, in its unit.
    pub const fn of(self, pressure: &Pressure) -> f64 {
        match self {
            Self::Avg10 => pressure.avg10,
            Self::Avg60 => pressure.avg60,
            Self::Avg300 => pressure.avg300,
            Self::Total => pressure.total_ns as f64 / 1000.0,
            Self::Last => pressure.last,
        }
    }
}

/// One number of a cgroup's pressure, such as `cpu.some.avg10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Figure {
    /// Of what.
    pub stall: Stall,
    /// Which.
    pub measure: Measure,
}

impl Figure {
    /// Its value in its measure's unit; none where it is not measured.
    pub fn of(self, cgroup: &CgroupPressure) -> Option<f64> {
        self.stall.of(cgroup).map(|pressure| self.measure.of(pressure))
    }
}

/// A unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A text, or a number that counts nothing: an id.
    None,
    /// A number of events or cgroups.
    Count,
    /// ns.
    Nanoseconds,
    /// us, with three decimals.
    Microseconds,
    /// %, 0 to 100, with two decimals.
    Percent,
}

impl Unit {
    /// As it stands behind a number; empty where there is none.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::None | Self::Count => "",
            Self::Nanoseconds => "ns",
            Self::Microseconds => "us",
            Self::Percent => "%",
        }
    }
}
