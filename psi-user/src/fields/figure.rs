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
    /// All there are, in the order of all outputs.
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Memory, Self::Io, Self::Irq];

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
    /// Some tasks wait for a CPU.
    pub const CPU_SOME: Self = Self::new(Resource::Cpu, Kind::Some);
    /// All do.
    pub const CPU_FULL: Self = Self::new(Resource::Cpu, Kind::Full);
    /// Some tasks wait for memory.
    pub const MEMORY_SOME: Self = Self::new(Resource::Memory, Kind::Some);
    /// All do.
    pub const MEMORY_FULL: Self = Self::new(Resource::Memory, Kind::Full);
    /// Some tasks wait for block IO.
    pub const IO_SOME: Self = Self::new(Resource::Io, Kind::Some);
    /// All do.
    pub const IO_FULL: Self = Self::new(Resource::Io, Kind::Full);
    /// All tasks are interrupted.
    pub const IRQ_FULL: Self = Self::new(Resource::Irq, Kind::Full);

    /// All there are, in the order of all outputs. `irq` has only `full`.
    pub const ALL: [Self; 7] = [
        Self::CPU_SOME,
        Self::CPU_FULL,
        Self::MEMORY_SOME,
        Self::MEMORY_FULL,
        Self::IO_SOME,
        Self::IO_FULL,
        Self::IRQ_FULL,
    ];

    const fn new(resource: Resource, kind: Kind) -> Self {
        Self { resource, kind }
    }

    /// A title for people: `mem some`.
    pub fn title(self) -> String {
        format!("{} {}", self.resource.title(), self.kind.name())
    }

    /// What it means, in a few words.
    pub const fn meaning(self) -> &'static str {
        match (self.resource, self.kind) {
            (Resource::Cpu, Kind::Some) => "Some tasks waited for a CPU",
            (Resource::Cpu, Kind::Full) => "All tasks waited for a CPU",
            (Resource::Memory, Kind::Some) => "Some tasks waited for memory",
            (Resource::Memory, Kind::Full) => "All tasks waited for memory",
            (Resource::Io, Kind::Some) => "Some tasks waited for block IO",
            (Resource::Io, Kind::Full) => "All tasks waited for block IO",
            (Resource::Irq, Kind::Some) => "Some tasks were interrupted",
            (Resource::Irq, Kind::Full) => "All tasks were interrupted",
        }
    }

    /// Its place in [`Self::ALL`]; none for `irq.some`.
    pub fn place(self) -> Option<usize> {
        Self::ALL.iter().position(|stall| *stall == self)
    }

    /// The same resource's other kind, if it has two.
    pub fn other_kind(self) -> Option<Self> {
        let is_other = |other: &Self| other.resource == self.resource && other.kind != self.kind;
        Self::ALL.into_iter().find(is_other)
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

    /// What it means, in a few words.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Avg10 => "Running average over 10 s",
            Self::Avg60 => "Running average over 60 s",
            Self::Avg300 => "Running average over 300 s",
            Self::Total => "Stall time since the tracer came",
            Self::Last => "The last interval",
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
