//! Which cgroups and fields `dump` writes, and in which order.

use std::cmp::Ordering;

use psi_user::{
    fields::{Field, UnknownField, Value},
    model::{CgroupPressure, Snapshot},
};

use crate::cli::DumpArgs;

/// `--fields`: comma-separated names.
#[derive(Clone, Debug)]
pub(crate) struct Fields(pub(crate) Vec<Field>);

impl Fields {
    /// Parses the option's value.
    pub(crate) fn parse(list: &str) -> Result<Self, UnknownField> {
        let mut fields: Vec<Field> = Vec::new();
        // A comma at the end is no harm.
        for name in list.trim_end_matches(',').split(',') {
            for field in Field::select(name.trim())? {
                // One that is named twice is written once.
                if !fields.contains(&field) {
                    fields.push(field);
                }
            }
        }
        Ok(Self(fields))
    }
}

/// `--sort`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    field: Field,
    is_descending: bool,
}

impl Order {
    /// What `--top` takes the first of when nothing else is said.
    fn usual() -> Option<Self> {
        Self::parse("cpu.some.avg10").ok()
    }

    /// Parses the option's value: a cgroup's field; figures come highest first, unless `+` is before the name.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (sign, name) = match text.as_bytes() {
            [b'+', ..] => (Some(false), &text[1..]),
            [b'-', ..] => (Some(true), &text[1..]),
            _ => (None, text),
        };
        let field = Field::find(name).map_err(|error| error.to_string())?;
        if !field.is_of_cgroup() {
            return Err(format!(
                "`{name}` is the same for all cgroups; try a figure such as cpu.some.avg10"
            ));
        }
        Ok(Self {
            field,
            is_descending: sign.unwrap_or(field != Field::Path),
        })
    }

    /// What is not measured comes last either way.
    fn compare(self, snapshot: &Snapshot, a: &CgroupPressure, b: &CgroupPressure) -> Ordering {
        let Self { field, is_descending } = self;
        let direct = |order: Ordering| if is_descending { order.reverse() } else { order };
        if field == Field::Path {
            return direct(a.path.split('/').cmp(b.path.split('/')));
        }
        let number = |cgroup| field.value(snapshot, Some(cgroup)).and_then(Value::number);
        match (number(a), number(b)) {
            (Some(a), Some(b)) => direct(a.total_cmp(&b)),
            (a, b) => a.is_none().cmp(&b.is_none()),
        }
    }
}

/// Leaves what is asked for, in the order that is asked for.
pub(super) fn select(snapshot: &mut Snapshot, args: &DumpArgs) {
    snapshot.cgroups.retain(|cgroup| {
        args.depth.is_none_or(|depth| cgroup.level <= depth)
            && args.cgroup.as_ref().is_none_or(|glob| glob.is_match(&cgroup.path))
    });
    if let Some(order) = args.sort.or_else(|| args.top.and_then(|_| Order::usual())) {
        let mut cgroups = std::mem::take(&mut snapshot.cgroups);
        // Stable: equal ones stay in the tree's order.
        cgroups.sort_by(|a, b| order.compare(snapshot, a, b));
        snapshot.cgroups = cgroups;
    }
    if let Some(top) = args.top {
        snapshot.cgroups.truncate(top);
    }
}
