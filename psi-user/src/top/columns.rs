//! What can be shown and sorted by.

use crate::model::{CgroupPressure, Pressure};

/// What the view is sorted by: a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum SortKey {
    /// Name of the cgroup.
    Cgroup,
    /// Some tasks waited for a CPU.
    #[default]
    CpuSome,
    /// All tasks waited for a CPU.
    CpuFull,
    /// Some tasks waited for memory.
    MemorySome,
    /// All tasks waited for memory.
    MemoryFull,
    /// Some tasks waited for block IO.
    IoSome,
    /// All tasks waited for block IO.
    IoFull,
    /// All tasks were interrupted.
    IrqFull,
}

impl SortKey {
    /// All, as `s` cycles through them.
    pub(super) const ALL: [Self; 8] = [
        Self::Cgroup,
        Self::CpuSome,
        Self::CpuFull,
        Self::MemorySome,
        Self::MemoryFull,
        Self::IoSome,
        Self::IoFull,
        Self::IrqFull,
    ];

    /// The columns with a figure, from left to right: the most important first.
    pub(super) fn figures() -> impl DoubleEndedIterator<Item = Self> + Clone {
        Self::ALL.into_iter().skip(1)
    }

    /// Resource, short enough for a column's title.
    pub(super) const fn resource(self) -> &'static str {
        match self {
            Self::Cgroup => "cgroup",
            Self::CpuSome | Self::CpuFull => "cpu",
            Self::MemorySome | Self::MemoryFull => "mem",
            Self::IoSome | Self::IoFull => "io",
            Self::IrqFull => "irq",
        }
    }

    /// Line of the resource's pressure file.
    pub(super) const fn line(self) -> &'static str {
        match self {
            Self::Cgroup => "",
            Self::CpuSome | Self::MemorySome | Self::IoSome => "some",
            Self::CpuFull | Self::MemoryFull | Self::IoFull | Self::IrqFull => "full",
        }
    }

    /// Title in one line.
    pub(super) fn title(self) -> String {
        [self.resource(), self.line()].join(" ").trim_end().to_owned()
    }

    /// The same resource's other line, if it has two.
    pub(super) const fn other_line(self) -> Self {
        match self {
            Self::CpuSome => Self::CpuFull,
            Self::CpuFull => Self::CpuSome,
            Self::MemorySome => Self::MemoryFull,
            Self::MemoryFull => Self::MemorySome,
            Self::IoSome => Self::IoFull,
            Self::IoFull => Self::IoSome,
            Self::Cgroup | Self::IrqFull => self,
        }
    }

    pub(super) fn next(self) -> Self {
        Self::ALL[(self as usize + 1) % Self::ALL.len()]
    }

    pub(super) fn previous(self) -> Self {
        Self::ALL[(self as usize + Self::ALL.len() - 1) % Self::ALL.len()]
    }

    /// The column's figure; absent when not measured, or when the column has none.
    pub(super) fn figure(self, cgroup: &CgroupPressure, window: Window) -> Option<f64> {
        self.pressure(cgroup).map(|pressure| window.of(pressure))
    }

    /// All figures of the column's line; absent as in [`figure`](Self::figure).
    pub(super) fn pressure(self, cgroup: &CgroupPressure) -> Option<&Pressure> {
        let CgroupPressure {
            cpu, memory, io, irq, ..
        } = cgroup;
        match self {
            Self::Cgroup => None,
            Self::CpuSome => Some(&cpu.some),
            Self::CpuFull => Some(&cpu.full),
            Self::MemorySome => memory.as_ref().map(|memory| &memory.some),
            Self::MemoryFull => memory.as_ref().map(|memory| &memory.full),
            Self::IoSome => Some(&io.some),
            Self::IoFull => Some(&io.full),
            Self::IrqFull => irq.as_ref().map(|irq| &irq.full),
        }
    }
}

/// Which lines the table has columns for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Lines {
    #[default]
    Both,
    Some,
    Full,
}

impl Lines {
    pub(super) const fn next(self) -> Self {
        match self {
            Self::Both => Self::Some,
            Self::Some => Self::Full,
            Self::Full => Self::Both,
        }
    }

    /// Whether `key` is among them. Interrupts have `full` only, and are always shown.
    pub(super) fn has(self, key: SortKey) -> bool {
        match self {
            Self::Both => true,
            Self::Some => key.line() == "some" || key == SortKey::IrqFull,
            Self::Full => key.line() == "full",
        }
    }
}

/// Time that the figures cover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Window {
    /// The last interval.
    Last,
    /// Running average over 10 s.
    #[default]
    Avg10,
    /// Over 60 s.
    Avg60,
    /// Over 300 s.
    Avg300,
}

impl Window {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Last => "last interval",
            Self::Avg10 => "avg10",
            Self::Avg60 => "avg60",
            Self::Avg300 => "avg300",
        }
    }

    /// The next, as `a` cycles through them.
    pub(super) const fn next(self) -> Self {
        match self {
            Self::Last => Self::Avg10,
            Self::Avg10 => Self::Avg60,
            Self::Avg60 => Self::Avg300,
            Self::Avg300 => Self::Last,
        }
    }

    const fn of(self, pressure: &Pressure) -> f64 {
        match self {
            Self::Last => pressure.last,
            Self::Avg10 => pressure.avg10,
            Self::Avg60 => pressure.avg60,
            Self::Avg300 => pressure.avg300,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sort_keys_cycle_both_ways() {
        for (at, key) in SortKey::ALL.into_iter().enumerate() {
            assert_eq!(key as usize, at);
            assert_eq!(key.next().previous(), key);
        }
        assert_eq!(SortKey::IrqFull.next(), SortKey::Cgroup);
    }

    #[test]
    fn windows_cycle_from_last_to_300_s() {
        let mut window = Window::Last;
        for expected in ["avg10", "avg60", "avg300", "last interval"] {
            window = window.next();
            assert_eq!(window.name(), expected);
        }
    }
}
