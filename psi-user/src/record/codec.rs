//! The content of a frame: a snapshot as what changed since the one before.
//!
//! A key frame is the same as any other, on nothing before it.

use std::collections::HashMap;

use psi_common::layout::MAX_SLOTS;

use super::varint::{Malformed, Reader, put, put_signed};
use crate::{
    fields::{Kind, Resource, Stall},
    model::{CgroupPressure, Full, MemstallSource, Pressure, Quality, SCHEMA, Snapshot, SomeFull, Source, share},
};

/// All paths of a snapshot together, bytes: no more is read.
const MAX_PATHS: usize = 64 << 20;
/// Fewest bytes of a new cgroup: its place, its path's two lengths, id, level, what is measured, and the figures.
const MIN_CGROUP: usize = 6;

/// What a frame builds on: the frame before.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct State {
    source: Option<Source>,
    quality: [u64; 9],
    cgroups: Vec<Cgroup>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cgroup {
    path: String,
    id: u64,
    level: u32,
    /// A bit for each of [`Stall::ALL`].
    measured: u8,
    /// In the order of [`Stall::ALL`].
    figures: [Line; Stall::ALL.len()],
}

/// One line of a pressure file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Line {
    /// avg10, avg60 and avg300 in hundredths of a percent.
    averages: [u32; 3],
    total_ns: u64,
    /// Gained in the last interval.
    gained_ns: u64,
}

impl Line {
    /// `before`: the total one frame ago.
    fn new(pressure: &Pressure, before_ns: u64, interval_ns: u64) -> Self {
        let &Pressure {
            avg10,
            avg60,
            avg300,
            total_ns,
            last,
        } = pressure;
        // Which it is but for figures that were hidden for a while.
        let mut gained_ns = total_ns.saturating_sub(before_ns);
        if share(gained_ns, interval_ns).to_bits() != last.to_bits() {
            gained_ns = (last * interval_ns as f64 / 100.0).round() as u64;
        }
        Self {
            averages: [avg10, avg60, avg300].map(|average| (average * 100.0).round() as u32),
            total_ns,
            gained_ns,
        }
    }

    fn pressure(&self, interval_ns: u64) -> Pressure {
        let [avg10, avg60, avg300] = self.averages.map(|hundredths| f64::from(hundredths) / 100.0);
        Pressure {
            avg10,
            avg60,
            avg300,
            total_ns: self.total_ns,
            last: share(self.gained_ns, interval_ns),
        }
    }
}

impl State {
    /// What a snapshot says; `before` is of the one before.
    fn of(snapshot: &Snapshot, before: &Self) -> Self {
        let known: HashMap<u64, &Cgroup> = before.cgroups.iter().map(|cgroup| (cgroup.id, cgroup)).collect();
        let cgroups = snapshot.cgroups.iter().map(|cgroup| {
            let mut measured = 0;
            let mut figures = [Line::default(); Stall::ALL.len()];
            for (n, stall) in Stall::ALL.into_iter().enumerate() {
                let Some(pressure) = stall.of(cgroup) else { continue };
                let before_ns = known.get(&cgroup.id).map_or(0, |known| known.figures[n].total_ns);
                measured |= 1 << n;
                figures[n] = Line::new(pressure, before_ns, snapshot.interval_ns);
            }
            Cgroup {
                path: cgroup.path.clone(),
                id: cgroup.id,
                level: cgroup.level,
                measured,
                figures,
            }
        });
        Self {
            source: Some(snapshot.source.clone()),
            quality: snapshot.quality.counters().map(|(_, count)| count),
            cgroups: cgroups.collect(),
        }
    }

    fn snapshot(&self, time_ns: u64, interval_ns: u64) -> Option<Snapshot> {
        Some(Snapshot {
            schema: SCHEMA,
            time_ns,
            interval_ns,
            source: self.source.clone()?,
            quality: Quality::from_counters(self.quality),
            cgroups: self.cgroups.iter().map(|cgroup| cgroup.pressure(interval_ns)).collect(),
        })
    }
}

impl Cgroup {
    /// Whether it is the same cgroup, of which the same is measured.
    fn is(&self, other: &Self) -> bool {
        (self.id, self.level, self.measured) == (other.id, other.level, other.measured) && self.path == other.path
    }

    fn pressure(&self, interval_ns: u64) -> CgroupPressure {
        let line = |resource, kind| {
            let n = Stall::ALL
                .iter()
                .position(|stall| (stall.resource, stall.kind) == (resource, kind))?;
            (self.measured >> n & 1 != 0).then(|| self.figures[n].pressure(interval_ns))
        };
        let both = |resource| {
            Some(SomeFull {
                some: line(resource, Kind::Some)?,
                full: line(resource, Kind::Full)?,
            })
        };
        CgroupPressure {
            path: self.path.clone(),
            id: self.id,
            level: self.level,
            cpu: both(Resource::Cpu).unwrap_or_default(),
            memory: both(Resource::Memory),
            io: both(Resource::Io).unwrap_or_default(),
            irq: line(Resource::Irq, Kind::Full).map(|full| Full { full }),
            counts: None,
        }
    }
}

/// Writes snapshots, each on the one before.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    before: State,
}

/// A frame's content before it is compressed, and what the next may build on once it is written.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) is_key: bool,
    pub(super) bytes: Vec<u8>,
    state: State,
}

impl Encoder {
    /// Encodes a snapshot; as a key frame if so wanted, or if it cannot build on the one before.
    pub(super) fn encode(&self, snapshot: &Snapshot, is_key_wanted: bool) -> Encoded {
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
    pub(super) fn accept(&mut self, encoded: Encoded) {
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

/// Reads what [`Encoder`] wrote.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    before: State,
}

impl Decoder {
    /// Decodes a frame's content; all of it, or it is malformed, and then the next has to be a key frame.
    pub(super) fn decode(&mut self, is_key: bool, content: &[u8]) -> Result<(), Malformed> {
        let mut reader = Reader(content);
        let before = std::mem::take(&mut self.before);
        let (source, before) = if is_key {
            (Some(source(&mut reader)?), State::default())
        } else {
            (before.source.clone(), before)
        };
        if source.is_none() {
            return Err(Malformed("it builds on nothing"));
        }
        let mut after = decode(&mut reader, before)?;
        if !reader.is_empty() {
            return Err(Malformed("it does not end where it should"));
        }
        after.source = source;
        self.before = after;
        Ok(())
    }

    /// The snapshot that was decoded last.
    pub(super) fn snapshot(&self, time_ns: u64, interval_ns: u64) -> Option<Snapshot> {
        self.before.snapshot(time_ns, interval_ns)
    }
}

fn source(reader: &mut Reader<'_>) -> Result<Source, Malformed> {
    let memstall = match reader.byte()? {
        0 => None,
        n => Some(
            *MemstallSource::ALL
                .get(usize::from(n) - 1)
                .ok_or(Malformed("an unknown source of memory stalls"))?,
        ),
    };
    let text = |reader: &mut Reader<'_>| {
        let length = reader.count(1)?;
        text(reader.bytes(length)?)
    };
    let count = reader.count(1)?;
    Ok(Source {
        memstall,
        irq: (0..count).map(|_| text(reader)).collect::<Result<_, _>>()?,
        hierarchy: text(reader)?,
    })
}

fn text(bytes: &[u8]) -> Result<String, Malformed> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Malformed("a text is not UTF-8"))
}

fn decode(reader: &mut Reader<'_>, mut before: State) -> Result<State, Malformed> {
    for counter in &mut before.quality {
        *counter = counter.wrapping_add_signed(reader.signed()?);
    }
    let kept = kept(reader, before.cgroups)?;
    let mut cgroups = with_new(reader, kept)?;
    for n in 0..Stall::ALL.len() {
        let mut each = |set: &mut dyn FnMut(&mut Line) -> Result<(), Malformed>| {
            let measured = cgroups.iter_mut().filter(|cgroup| cgroup.measured >> n & 1 != 0);
            measured.map(|cgroup| &mut cgroup.figures[n]).try_for_each(set)
        };
        each(&mut |line| {
            line.gained_ns = reader.number()?;
            Ok(())
        })?;
        each(&mut |line| {
            let expected = line.total_ns.wrapping_add(line.gained_ns);
            line.total_ns = expected.wrapping_add_signed(reader.signed()?);
            Ok(())
        })?;
        for average in 0..3 {
            each(&mut |line| {
                let now = i64::from(line.averages[average]).checked_add(reader.signed()?);
                line.averages[average] = now
                    .and_then(|now| u32::try_from(now).ok())
                    .ok_or(Malformed("an average is out of range"))?;
                Ok(())
            })?;
        }
    }
    Ok(State {
        source: None,
        quality: before.quality,
        cgroups,
    })
}

/// Those that did not go.
fn kept(reader: &mut Reader<'_>, cgroups: Vec<Cgroup>) -> Result<Vec<Cgroup>, Malformed> {
    let gone = reader.count(1)?;
    let mut cgroups = cgroups.into_iter();
    let mut kept = Vec::with_capacity(cgroups.len());
    for _ in 0..gone {
        let between = reader.small()? as usize;
        if between >= cgroups.len() {
            return Err(Malformed("a cgroup that was not there is gone"));
        }
        kept.extend(cgroups.by_ref().take(between));
        cgroups.next();
    }
    kept.extend(cgroups);
    Ok(kept)
}

/// Those, and the new ones between them.
fn with_new(reader: &mut Reader<'_>, kept: Vec<Cgroup>) -> Result<Vec<Cgroup>, Malformed> {
    let count = reader.count(MIN_CGROUP)?;
    if kept.len() + count > MAX_SLOTS as usize {
        return Err(Malformed("too many cgroups"));
    }
    let mut kept = kept.into_iter();
    let mut cgroups: Vec<Cgroup> = Vec::with_capacity(kept.len() + count);
    let mut path_bytes = 0;
    let mut last_id = 0_u64;
    for _ in 0..count {
        let between = reader.small()? as usize;
        if between > kept.len() {
            return Err(Malformed("a new cgroup comes after the last one"));
        }
        cgroups.extend(kept.by_ref().take(between));
        let above = cgroups.last().map_or("", |above| &above.path);
        let shared = above
            .as_bytes()
            .get(..reader.small()? as usize)
            .ok_or(Malformed("a path shares more than there is"))?;
        let length = reader.count(1)?;
        path_bytes += shared.len() + length;
        if path_bytes > MAX_PATHS {
            return Err(Malformed("the paths are too long"));
        }
        let path = text(&[shared, reader.bytes(length)?].concat())?;
        last_id = last_id.wrapping_add_signed(reader.signed()?);
        cgroups.push(Cgroup {
            path,
            id: last_id,
            level: reader.small()?,
            measured: measured(reader.byte()?)?,
            figures: Default::default(),
        });
    }
    cgroups.extend(kept);
    Ok(cgroups)
}

/// Some and full of a resource are measured together, and cpu and io always.
fn measured(bits: u8) -> Result<u8, Malformed> {
    const CPU: u8 = 0b000_0011;
    const MEMORY: u8 = 0b000_1100;
    const IO: u8 = 0b011_0000;
    const IRQ: u8 = 0b100_0000;
    let memory = bits & MEMORY;
    if bits & (CPU | IO) != CPU | IO || memory != 0 && memory != MEMORY || bits & !(CPU | MEMORY | IO | IRQ) != 0 {
        return Err(Malformed("figures that do not belong together"));
    }
    Ok(bits)
}
