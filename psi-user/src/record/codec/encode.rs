//! From snapshots to the content of frames.

use std::collections::HashMap;

use super::{
    super::varint::{put, put_signed},
    Line, State,
};
use crate::{
    fields::Stall,
    model::{MemstallSource, Snapshot, Source},
};

/// Writes snapshots, each on the one before.
#[derive(Debug, Default)]
pub(in crate::record) struct Encoder {
    before: State,
}

/// A frame's content before it is compressed, and what the next may build on once it is written.
#[derive(Debug)]
pub(in crate::record) struct Encoded {
    pub(in crate::record) is_key: bool,
    pub(in crate::record) bytes: Vec<u8>,
    state: State,
}

impl Encoder {
    /// Encodes a snapshot; as a key frame if so wanted, or if it cannot build on the one before.
    pub(in crate::record) fn encode(&self, snapshot: &Snapshot, is_key_wanted: bool) -> Encoded {
        let after = State::of(snapshot, &self.before);
        let delta = (!is_key_wanted && self.before.source == after.source)
            .then(|| encode(&self.before, &after))
            .flatten();
        let is_key = delta.is_none();
        let bytes = delta.unwrap_or_else(|| {
            let mut bytes = Vec::new();
            put_source(&mut bytes, &snapshot.source);
            // Nothing is before it: all are new, in their order.
            bytes.extend(encode(&State::default(), &after).unwrap_or_default());
            bytes
        });
        Encoded {
            is_key,
            bytes,
            state: after,
        }
    }

    /// The frame has been written.
    pub(in crate::record) fn accept(&mut self, encoded: Encoded) {
        self.before = encoded.state;
    }
}

fn put_source(bytes: &mut Vec<u8>, source: &Source) {
    let Source {
        memstall,
        irq,
        hierarchy,
    } = source;
    let memstall = memstall.and_then(|wanted| MemstallSource::ALL.iter().position(|known| *known == wanted));
    bytes.push(memstall.map_or(0, |n| n as u8 + 1));
    put(bytes, irq.len() as u64);
    for text in irq.iter().chain([hierarchy]) {
        put(bytes, text.len() as u64);
        bytes.extend(text.as_bytes());
    }
}

/// None if the cgroups that stayed are in another order.
fn encode(before: &State, after: &State) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for (before, after) in before.quality.iter().zip(after.quality) {
        put_signed(&mut bytes, after.wrapping_sub(*before).cast_signed());
    }
    bytes.push(after.flush.is_some().into());
    let before_flush = before.flush.unwrap_or_default();
    for (before, after) in before_flush.iter().zip(after.flush.iter().flatten()) {
        put_signed(&mut bytes, after.wrapping_sub(*before).cast_signed());
    }
    // Of those that are in both: where they were.
    let places: HashMap<u64, usize> = before
        .cgroups
        .iter()
        .enumerate()
        .map(|(n, cgroup)| (cgroup.id, n))
        .collect();
    let stayed: Vec<Option<usize>> = after
        .cgroups
        .iter()
        .map(|cgroup| {
            places
                .get(&cgroup.id)
                .copied()
                .filter(|&n| before.cgroups[n].is(cgroup))
        })
        .collect();
    let kept: Vec<usize> = stayed.iter().flatten().copied().collect();
    if !kept.is_sorted_by(|a, b| a < b) {
        return None;
    }
    put_gone(&mut bytes, before.cgroups.len(), &kept);
    put_new(&mut bytes, after, &stayed);

    let nothing = Line::default();
    for n in 0..Stall::ALL.len() {
        let lines: Vec<(&Line, &Line)> = after
            .cgroups
            .iter()
            .zip(&stayed)
            .filter(|(cgroup, _)| cgroup.measured >> n & 1 != 0)
            .map(|(cgroup, place)| {
                let line = place.map_or(&nothing, |place| &before.cgroups[place].figures[n]);
                (line, &cgroup.figures[n])
            })
            .collect();
        // Column by column: what is alike stands together, and packs well.
        for (_, line) in &lines {
            put(&mut bytes, line.gained_ns);
        }
        for (before, line) in &lines {
            let expected = before.total_ns.wrapping_add(line.gained_ns);
            put_signed(&mut bytes, line.total_ns.wrapping_sub(expected).cast_signed());
        }
        for average in 0..3 {
            for (before, line) in &lines {
                let change = i64::from(line.averages[average]) - i64::from(before.averages[average]);
                put_signed(&mut bytes, change);
            }
        }
    }
    Some(bytes)
}

/// Which of `count` cgroups are not among the kept: how many, then how many kept ones are before each.
fn put_gone(bytes: &mut Vec<u8>, count: usize, kept: &[usize]) {
    put(bytes, (count - kept.len()) as u64);
    let mut kept = kept.iter().peekable();
    let mut between = 0;
    for n in 0..count {
        if kept.next_if(|place| **place == n).is_some() {
            between += 1;
        } else {
            put(bytes, std::mem::take(&mut between));
        }
    }
}

/// The cgroups that are new: how many, then how many kept ones are before each, and what it is.
fn put_new(bytes: &mut Vec<u8>, after: &State, stayed: &[Option<usize>]) {
    put(bytes, stayed.iter().filter(|place| place.is_none()).count() as u64);
    let mut between = 0;
    let mut last_id = 0;
    for (n, cgroup) in after.cgroups.iter().enumerate() {
        if stayed[n].is_some() {
            between += 1;
            continue;
        }
        put(bytes, std::mem::take(&mut between));
        let above = n.checked_sub(1).map_or("", |n| &after.cgroups[n].path);
        let shared = shared_prefix(above, &cgroup.path);
        put(bytes, shared as u64);
        put(bytes, (cgroup.path.len() - shared) as u64);
        bytes.extend(&cgroup.path.as_bytes()[shared..]);
        put_signed(bytes, cgroup.id.wrapping_sub(last_id).cast_signed());
        last_id = cgroup.id;
        put(bytes, cgroup.level.into());
        bytes.push(cgroup.measured);
    }
}

/// Length of what two texts begin with, in whole characters.
fn shared_prefix(a: &str, b: &str) -> usize {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    b.floor_char_boundary(same)
}
