//! The one table of what can be shown, sorted by, written and recorded: every figure's name, title and unit.
//!
//! Names are those of `dump`'s JSON, with dots: `cpu.some.avg10`. docs/output.md describes them.

mod figure;

use std::{borrow::Cow, fmt};

use serde::{Serialize, Serializer};
use thiserror::Error;

pub use self::figure::{Figure, Kind, Measure, Resource, Stall, Unit};
use crate::model::{CgroupPressure, Flush, Quality, Snapshot};

/// Anything that a snapshot says, of a cgroup or as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Name of the JSON form.
    Schema,
    /// When the snapshot was taken, since 1970.
    Time,
    /// Time since the one before.
    Interval,
    /// Where memory stalls come from.
    Memstall,
    /// The interrupt kinds that are timed.
    Interrupts,
    /// The hierarchy that is traced.
    Hierarchy,
    /// A counter of what was missed or repaired: its place in [`Quality::counters`].
    Quality(usize),
    /// What the flush cost: its place in [`Flush::NAMES`].
    Flush(usize),
    /// A cgroup's path.
    Path,
    /// A cgroup's id.
    Id,
    /// A cgroup's depth.
    Level,
    /// A cgroup's pressure.
    Figure(Figure),
}

impl Field {
    /// All there are, in the order of all outputs.
    pub fn all() -> impl Iterator<Item = Self> {
        let before = [
            Self::Schema,
            Self::Time,
            Self::Interval,
            Self::Memstall,
            Self::Interrupts,
            Self::Hierarchy,
        ];
        let counters = (0..Quality::default().counters().len()).map(Self::Quality);
        let figures = Stall::ALL
            .into_iter()
            .flat_map(|stall| Measure::ALL.map(|measure| Self::Figure(Figure { stall, measure })));
        before
            .into_iter()
            .chain(counters)
            .chain((0..Flush::NAMES.len()).map(Self::Flush))
            .chain([Self::Path, Self::Id, Self::Level])
            .chain(figures)
    }

    /// What is written when nothing is asked for: all that JSON says. The last interval's share is left out, as it
    /// follows from the totals.
    pub fn usual() -> impl Iterator<Item = Self> {
        Self::all().filter(|field| !matches!(field, Self::Figure(figure) if figure.measure == Measure::Last))
    }

    /// The name in all outputs.
    pub fn name(self) -> Cow<'static, str> {
        match self {
            Self::Schema => "schema".into(),
            Self::Time => "time_ns".into(),
            Self::Interval => "interval_ns".into(),
            Self::Memstall => "source.memstall".into(),
            Self::Interrupts => "source.irq".into(),
            Self::Hierarchy => "source.hierarchy".into(),
            Self::Quality(n) => format!("quality.{}", Quality::default().counters()[n].0).into(),
            Self::Flush(n) => format!("flush.{}", Flush::NAMES[n]).into(),
            Self::Path => "path".into(),
            Self::Id => "id".into(),
            Self::Level => "level".into(),
            Self::Figure(Figure { stall, measure }) => {
                format!("{}.{}.{}", stall.resource.name(), stall.kind.name(), measure.name()).into()
            }
        }
    }

    /// A title for people.
    pub fn title(self) -> Cow<'static, str> {
        match self {
            Self::Time => "time".into(),
            Self::Interval => "interval".into(),
            Self::Memstall => "memory stalls from".into(),
            Self::Interrupts => "interrupts timed".into(),
            Self::Hierarchy => "hierarchy".into(),
            Self::Quality(n) => Quality::default().counters()[n].0.replace('_', " ").into(),
            Self::Flush(n) => format!("flush {}", Flush::NAMES[n].replace(['_', '.'], " ")).into(),
            Self::Path => "cgroup".into(),
            Self::Schema | Self::Id | Self::Level => self.name(),
            Self::Figure(Figure { stall, measure }) => format!("{} {}", stall.title(), measure.title()).into(),
        }
    }

    /// The unit of its values.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Time | Self::Interval | Self::Flush(2 | 3 | 18) => Unit::Nanoseconds,
            Self::Quality(_) | Self::Flush(_) => Unit::Count,
            Self::Figure(Figure { measure, .. }) => measure.unit(),
            _ => Unit::None,
        }
    }

    /// Whether each cgroup has a value of its own.
    pub const fn is_of_cgroup(self) -> bool {
        matches!(self, Self::Path | Self::Id | Self::Level | Self::Figure(_))
    }

    /// Its value; none where it is not measured, or where it is of a cgroup and none is given.
    pub fn value<'a>(self, snapshot: &'a Snapshot, cgroup: Option<&'a CgroupPressure>) -> Option<Value<'a>> {
        let Snapshot { source, quality, .. } = snapshot;
        Some(match self {
            Self::Schema => Value::Text(snapshot.schema),
            Self::Time => Value::Number(snapshot.time_ns),
            Self::Interval => Value::Number(snapshot.interval_ns),
            Self::Memstall => Value::Text(source.memstall?.name()),
            Self::Interrupts => Value::List(&source.irq),
            Self::Hierarchy => Value::Text(&source.hierarchy),
            Self::Quality(n) => Value::Number(quality.counters()[n].1),
            Self::Flush(n) => Value::Number(snapshot.flush.as_ref()?.numbers()[n]),
            Self::Path => Value::Text(&cgroup?.path),
            Self::Id => Value::Number(cgroup?.id),
            Self::Level => Value::Number(cgroup?.level.into()),
            Self::Figure(figure) => {
                let value = figure.of(cgroup?)?;
                match figure.measure.unit() {
                    Unit::Microseconds => Value::Microseconds(value),
                    _ => Value::Percent(value),
                }
            }
        })
    }

    /// The field of this name.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(name: &str) -> Result<Self, UnknownField> {
        Self::all()
            .find(|field| field.name() == name)
            .ok_or_else(|| UnknownField::new(name))
    }

    /// All fields that a name stands for: `cpu` for all of `cpu.some.avg10`, `cpu.full.total_us`, ..., each where its
    /// full name is a [usual](Self::usual) one.
    ///
    /// # Errors
    /// When there is none.
    pub fn select(name: &str) -> Result<Vec<Self>, UnknownField> {
        if let Ok(field) = Self::find(name) {
            return Ok(vec![field]);
        }
        let is_below = |field: &Self| {
            field
                .name()
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('.'))
        };
        let found: Vec<Self> = Self::usual().filter(is_below).collect();
        if found.is_empty() {
            return Err(UnknownField::new(name));
        }
        Ok(found)
    }
}

/// A value, ready to be written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A text.
    Text(&'a str),
    /// Names.
    List(&'a [String]),
    /// A count, a time in ns, an id.
    Number(u64),
    /// us, three decimals.
    Microseconds(f64),
    /// %, two decimals.
    Percent(f64),
}

impl Value<'_> {
    /// As a number; none for texts.
    pub fn number(self) -> Option<f64> {
        match self {
            Self::Text(_) | Self::List(_) => None,
            Self::Number(number) => Some(number as f64),
            Self::Microseconds(number) | Self::Percent(number) => Some(number),
        }
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::List(names) => f.write_str(&names.join(" ")),
            Self::Number(number) => write!(f, "{number}"),
            Self::Microseconds(number) => write!(f, "{number:.3}"),
            Self::Percent(number) => write!(f, "{number:.2}"),
        }
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(names) => serializer.collect_seq(*names),
            Self::Number(number) => serializer.serialize_u64(*number),
            Self::Microseconds(number) => serializer.serialize_f64(*number),
            // Averages have two decimals as they are.
            Self::Percent(number) => serializer.serialize_f64((number * 100.0).round() / 100.0),
        }
    }
}

/// No field has this name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("no field `{name}`; the nearest is `{nearest}`, docs/output.md lists all")]
pub struct UnknownField {
    /// What was asked for.
    pub name: String,
    /// The most similar name.
    pub nearest: String,
}

impl UnknownField {
    fn new(name: &str) -> Self {
        let nearest = Field::all()
            .map(Field::name)
            .max_by(|a, b| strsim::jaro_winkler(a, name).total_cmp(&strsim::jaro_winkler(b, name)))
            .unwrap_or_default();
        Self {
            name: name.to_owned(),
            nearest: nearest.into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_field_is_found_by_its_name() {
        let mut names = HashSet::new();
        for field in Field::all() {
            assert_eq!(Field::find(&field.name()), Ok(field));
            assert!(names.insert(field.name()), "{field:?} has another's name");
            assert!(!field.title().is_empty());
        }
        assert_eq!(names.len(), 6 + 9 + 19 + 3 + 35);
    }

    #[test]
    fn a_prefix_stands_for_all_below_it() {
        let names = |name| Field::select(name).map(|fields| fields.into_iter().map(Field::name).collect::<Vec<_>>());
        assert_eq!(
            names("irq").expect("fields"),
            [
                "irq.full.avg10",
                "irq.full.avg60",
                "irq.full.avg300",
                "irq.full.total_us"
            ]
        );
        assert_eq!(names("cpu.some.last").expect("a field"), ["cpu.some.last"]);
        assert_eq!(names("quality").expect("fields").len(), 9);
        assert!(names("cp").is_err() && names("").is_err() && names("cpu.").is_err());
    }

    #[test]
    fn the_nearest_name_is_told() {
        for (wrong, nearest) in [
            ("cpu.some.avg1", "cpu.some.avg10"),
            ("mem.full.avg60", "memory.full.avg60"),
            ("pth", "path"),
            ("io.some.total", "io.some.total_us"),
        ] {
            let error = Field::select(wrong).expect_err("a wrong name");
            assert_eq!(error.nearest, nearest, "{wrong}");
            assert!(error.to_string().contains(wrong));
        }
    }
}
