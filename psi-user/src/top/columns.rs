//! What can be shown and sorted by: the figures of [`crate::fields`], and the name.

use clap::{ValueEnum, builder::PossibleValue};

use crate::{
    fields::{Figure, Kind, Measure, Resource, Stall},
    model::CgroupPressure,
};

/// What the view is sorted by: a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// Name of the cgroup.
    Cgroup,
    /// A figure.
    Stall(Stall),
}

impl SortKey {
    /// All, as `s` cycles through them: the columns from left to right, the most important first.
    pub(super) const ALL: [Self; 1 + Stall::ALL.len()] = {
        let mut all = [Self::Cgroup; 1 + Stall::ALL.len()];
        let mut at = 0;
        while at < Stall::ALL.len() {
            all[at + 1] = Self::Stall(Stall::ALL[at]);
            at += 1;
        }
        all
    };

    /// Title in one line.
    pub(super) fn title(self) -> String {
        match self {
            Self::Cgroup => "cgroup".to_owned(),
            Self::Stall(stall) => stall.title(),
        }
    }

    /// The same resource's other line, if it has two.
    pub(super) fn other_line(self) -> Self {
        match self {
            Self::Cgroup => self,
            Self::Stall(stall) => stall.other_kind().map_or(self, Self::Stall),
        }
    }

    pub(super) fn next(self) -> Self {
        self.step(1)
    }

    pub(super) fn previous(self) -> Self {
        self.step(Self::ALL.len() - 1)
    }

    fn step(self, by: usize) -> Self {
        let mut endless = Self::ALL.into_iter().cycle().skip_while(|key| *key != self);
        endless.nth(by).unwrap_or(self)
    }

    /// The column's figure; absent when not measured, or when the column has none.
    pub(super) fn figure(self, cgroup: &CgroupPressure, window: Window) -> Option<f64> {
        match self {
            Self::Cgroup => None,
            Self::Stall(stall) => window.of(stall).of(cgroup),
        }
    }
}

impl ValueEnum for SortKey {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: &[SortKey] = &SortKey::ALL;
        ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Cgroup => PossibleValue::new("cgroup").help("Name of the cgroup"),
            Self::Stall(stall) => {
                let name = format!("{}-{}", stall.resource.name(), stall.kind.name());
                PossibleValue::new(name).help(stall.meaning())
            }
        })
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

    /// Whether `stall` is among them. Interrupts have `full` only, and are always shown.
    pub(super) fn has(self, stall: Stall) -> bool {
        match self {
            Self::Both => true,
            Self::Some => stall.kind == Kind::Some || stall.resource == Resource::Irq,
            Self::Full => stall.kind == Kind::Full,
        }
    }
}

/// Time that the figures cover: a measure that is a share of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window(Measure);

impl Window {
    /// The last interval.
    pub const LAST: Self = Self(Measure::Last);
    /// Running average over 10 s.
    pub const AVG10: Self = Self(Measure::Avg10);

    /// All, as `a` cycles through them.
    const ALL: [Self; 4] = [Self::LAST, Self::AVG10, Self(Measure::Avg60), Self(Measure::Avg300)];

    pub(super) const fn title(self) -> &'static str {
        self.0.title()
    }

    pub(super) fn next(self) -> Self {
        let mut endless = Self::ALL.into_iter().cycle().skip_while(|window| *window != self);
        endless.nth(1).unwrap_or(self)
    }

    /// The figure of a column.
    pub(super) const fn of(self, stall: Stall) -> Figure {
        Figure { stall, measure: self.0 }
    }
}

impl ValueEnum for Window {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let Self(measure) = self;
        Some(PossibleValue::new(measure.name()).help(measure.meaning()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sort_keys_cycle_both_ways() {
        for (at, key) in SortKey::ALL.into_iter().enumerate() {
            assert_eq!(key.next(), SortKey::ALL[(at + 1) % SortKey::ALL.len()]);
            assert_eq!(key.next().previous(), key);
        }
        assert_eq!(SortKey::Stall(Stall::IRQ_FULL).next(), SortKey::Cgroup);
    }

    #[test]
    fn windows_cycle_from_last_to_300_s() {
        let mut window = Window::LAST;
        for expected in ["avg10", "avg60", "avg300", "last interval"] {
            window = window.next();
            assert_eq!(window.title(), expected);
        }
    }

    #[test]
    fn the_command_line_has_all_by_their_names() {
        let names = |values: &[Option<PossibleValue>]| {
            let names = values.iter().flatten().map(|value| value.get_name().to_owned());
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            names(&SortKey::ALL.map(|key| key.to_possible_value())),
            "cgroup cpu-some cpu-full memory-some memory-full io-some io-full irq-full"
        );
        assert_eq!(
            names(&Window::ALL.map(|window| window.to_possible_value())),
            "last avg10 avg60 avg300"
        );
    }
}
