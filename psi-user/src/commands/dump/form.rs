//! The forms that `dump` writes a snapshot in.

use std::fmt::Write as _;

use psi_user::{
    fields::{Field, Figure, Kind, Measure, Stall, Value},
    model::{CgroupPressure, Snapshot},
};
use serde::{Serialize, Serializer, ser::SerializeMap as _};

use super::Fields;
use crate::{
    cli::{DumpArgs, Format},
    commands::printable,
};

/// Turns snapshots into text.
pub(super) struct Form {
    format: Format,
    /// What was asked for, if anything.
    fields: Option<Vec<Field>>,
    /// Whether the line with the names, where there is one, has been written.
    is_headed: bool,
}

impl Form {
    /// What the arguments ask for.
    pub(super) fn of(args: &DumpArgs) -> Self {
        Self::new(args.format, args.fields.clone().map(|Fields(fields)| fields))
    }

    const fn new(format: Format, fields: Option<Vec<Field>>) -> Self {
        Self {
            format,
            fields,
            is_headed: false,
        }
    }

    /// One record, with a line end.
    pub(super) fn render(&mut self, snapshot: &Snapshot) -> String {
        let Self {
            format,
            fields,
            is_headed,
        } = self;
        match (*format, fields) {
            (Format::Json, None) => json(snapshot),
            (Format::Json, Some(fields)) => json(&Chosen::new(snapshot, fields)),
            (Format::Table, None) => usual_table(snapshot),
            (Format::Table, Some(fields)) => table(snapshot, fields),
            (Format::Kv, fields) => pairs(snapshot, &or_usual(fields.as_ref())),
            (Format::Csv | Format::Tsv, fields) => {
                let delimiter = if *format == Format::Csv { b',' } else { b'\t' };
                let has_header = !std::mem::replace(is_headed, true);
                separated(snapshot, &or_usual(fields.as_ref()), delimiter, has_header)
            }
        }
    }
}

fn or_usual(fields: Option<&Vec<Field>>) -> Vec<Field> {
    fields.map_or_else(|| Field::usual().collect(), Clone::clone)
}

/// What the rows are of: the cgroups, or, if no field is one's own, the snapshot as a whole.
fn rows<'a>(snapshot: &'a Snapshot, fields: &[Field]) -> Vec<Option<&'a CgroupPressure>> {
    if fields.iter().any(|field| field.is_of_cgroup()) {
        snapshot.cgroups.iter().map(Some).collect()
    } else {
        vec![None]
    }
}

fn json(record: &impl Serialize) -> String {
    // Numbers and strings only: this cannot fail.
    let mut line = serde_json::to_string(record).unwrap_or_default();
    line.push('\n');
    line
}

/// Comma- or tab-separated values; what is not measured is an empty cell.
fn separated(snapshot: &Snapshot, fields: &[Field], delimiter: u8, has_header: bool) -> String {
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(Vec::new());
    let mut write = || -> csv::Result<()> {
        if has_header {
            writer.write_record(fields.iter().map(|field| field.name().into_owned()))?;
        }
        for cgroup in rows(snapshot, fields) {
            writer.write_record(fields.iter().map(|field| cell(field.value(snapshot, cgroup))))?;
        }
        Ok(())
    };
    // Into memory, with rows of the same length: this cannot fail.
    let bytes = write().ok().and_then(|()| writer.into_inner().ok());
    String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
}

fn cell(value: Option<Value<'_>>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// `name=value`, a line a cgroup; what is not measured is left out.
fn pairs(snapshot: &Snapshot, fields: &[Field]) -> String {
    let mut text = String::new();
    for cgroup in rows(snapshot, fields) {
        let pairs: Vec<String> = fields
            .iter()
            .filter_map(|field| Some(format!("{}={}", field.name(), quoted(field.value(snapshot, cgroup)?))))
            .collect();
        text.push_str(&pairs.join(" "));
        text.push('\n');
    }
    text
}

/// Texts that a reader could take apart are quoted as in JSON.
fn quoted(value: Value<'_>) -> String {
    let text = value.to_string();
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !['"', '=', '\\'].contains(&c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    serde_json::to_string(&text).unwrap_or_default()
}

/// avg10 of everything, a line a cgroup.
fn usual_table(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    let measure = Measure::Avg10;
    // Writing to a string cannot fail.
    for stall in Stall::ALL {
        let _ = write!(text, "{:>8} ", column(stall));
    }
    let _ = writeln!(text, " CGROUP ({} in {})", measure.title(), measure.unit().symbol());
    for cgroup in &snapshot.cgroups {
        for stall in Stall::ALL {
            let field = Field::Figure(Figure { stall, measure });
            let _ = write!(text, "{:>8} ", shown(field.value(snapshot, Some(cgroup))));
        }
        let _ = writeln!(text, " {}", printable(&cgroup.path));
    }
    text.push('\n');
    text
}

/// `CPU`, `CPUFULL`, ...: what is usual, some, or all there is, goes without saying.
fn column(stall: Stall) -> String {
    let is_only = Stall::ALL
        .iter()
        .filter(|other| other.resource == stall.resource)
        .count()
        == 1;
    let kind = match stall.kind {
        Kind::Full if !is_only => "full",
        _ => "",
    };
    format!("{}{kind}", stall.resource.title()).to_uppercase()
}

/// A table of the fields that were asked for, as wide as they need.
fn table(snapshot: &Snapshot, fields: &[Field]) -> String {
    let title = |field: &Field| match field.unit().symbol() {
        "" => field.title().to_uppercase(),
        unit => format!("{} ({unit})", field.title().to_uppercase()),
    };
    let mut lines = vec![fields.iter().map(title).collect::<Vec<_>>()];
    for cgroup in rows(snapshot, fields) {
        let cells = fields.iter().map(|field| shown(field.value(snapshot, cgroup)));
        lines.push(cells.collect());
    }
    let width = |n: usize| lines.iter().map(|line| line[n].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..fields.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(fields).zip(&widths);
        let cells = cells.map(|((cell, field), &width)| {
            // Texts begin, numbers end at the same place.
            if *field == Field::Path {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text.push('\n');
    text
}

/// For people: `-` for what is not measured.
fn shown(value: Option<Value<'_>>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| printable(&value.to_string()))
}

/// The JSON form with some fields only.
struct Chosen<'a> {
    snapshot: &'a Snapshot,
    /// Of the snapshot as a whole, and of the cgroups: names in parts, in the order of all outputs.
    whole: Vec<(Vec<String>, Field)>,
    each: Vec<(Vec<String>, Field)>,
}

impl<'a> Chosen<'a> {
    fn new(snapshot: &'a Snapshot, fields: &[Field]) -> Self {
        let parts = |field: Field| field.name().split('.').map(str::to_owned).collect();
        // In the order of all outputs, so that what belongs into one object comes together.
        let (each, whole): (Vec<_>, Vec<_>) = Field::all()
            .filter(|field| fields.contains(field))
            .map(|field| (parts(field), field))
            .partition(|(_, field)| field.is_of_cgroup());
        Self { snapshot, whole, each }
    }
}

impl Serialize for Chosen<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { snapshot, whole, each } = self;
        let cgroups: Vec<Object<'_>> = snapshot
            .cgroups
            .iter()
            .map(|cgroup| Object::new(snapshot, Some(cgroup), each))
            .collect();
        let mut map = serializer.serialize_map(None)?;
        for entry in Object::new(snapshot, None, whole).entries() {
            map.serialize_entry(entry.0, &entry.1)?;
        }
        if !each.is_empty() {
            map.serialize_entry("cgroups", &cgroups)?;
        }
        map.end()
    }
}

/// What is measured of these fields, those with a common first part as an object.
struct Object<'a>(Vec<(&'a [String], Value<'a>)>);

/// A member of an [`Object`].
enum Member<'a> {
    Value(Value<'a>),
    Object(Object<'a>),
}

impl<'a> Object<'a> {
    fn new(snapshot: &'a Snapshot, cgroup: Option<&'a CgroupPressure>, fields: &'a [(Vec<String>, Field)]) -> Self {
        let value = |(parts, field): &'a (Vec<String>, Field)| Some((parts.as_slice(), field.value(snapshot, cgroup)?));
        Self(fields.iter().filter_map(value).collect())
    }

    fn entries(&self) -> impl Iterator<Item = (&'a str, Member<'a>)> {
        self.0.chunk_by(|a, b| a.0[0] == b.0[0]).map(|members| {
            let (parts, value) = members[0];
            let member = match parts {
                [_] => Member::Value(value),
                _ => Member::Object(Self(
                    members.iter().map(|(parts, value)| (&parts[1..], *value)).collect(),
                )),
            };
            (parts[0].as_str(), member)
        })
    }
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.entries())
    }
}

impl Serialize for Member<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(serializer),
            Self::Object(object) => object.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests;
