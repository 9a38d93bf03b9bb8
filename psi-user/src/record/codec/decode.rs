//! From the content of frames to snapshots: no length is trusted.

use psi_common::layout::MAX_SLOTS;

use super::{
    super::varint::{Malformed, Reader},
    Cgroup, Line, State,
};
use crate::{
    fields::{Figure, Stall},
    model::{MemstallSource, Snapshot, Source},
};

/// All paths of a snapshot together, bytes: no more is read.
const MAX_PATHS: usize = 64 << 20;
/// Fewest bytes of a new cgroup: its place, its path's two lengths, id, level, what is measured, and the figures.
const MIN_CGROUP: usize = 6;

/// Reads what [`Encoder`](super::Encoder) wrote.
#[derive(Debug, Default)]
pub(in crate::record) struct Decoder {
    before: State,
}

impl Decoder {
    /// Decodes a frame's content; all of it, or it is malformed, and then the next has to be a key frame.
    pub(in crate::record) fn decode(&mut self, is_key: bool, content: &[u8]) -> Result<(), Malformed> {
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

    /// A figure of one cgroup of the snapshot that was decoded last, or the highest of all; none where it is not there.
    pub(in crate::record) fn highest(&self, cgroup: Option<&str>, figure: Figure, interval_ns: u64) -> Option<f64> {
        let Figure { stall, measure } = figure;
        let n = stall.place()?;
        let is_meant = |path: &str| cgroup.is_none_or(|cgroup| cgroup == path);
        let cgroups = self.before.cgroups.iter();
        let cgroups = cgroups.filter(|cgroup| cgroup.measured >> n & 1 != 0 && is_meant(&cgroup.path));
        let values = cgroups.map(|cgroup| measure.of(&cgroup.figures[n].pressure(interval_ns)));
        values.reduce(f64::max)
    }

    /// The snapshot that was decoded last.
    pub(in crate::record) fn snapshot(&self, time_ns: u64, interval_ns: u64) -> Option<Snapshot> {
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
    let flush = match reader.bytes(1)? {
        [0] => None,
        [1] => {
            let mut numbers = before.flush.unwrap_or_default();
            for number in &mut numbers {
                *number = number.wrapping_add_signed(reader.signed()?);
            }
            Some(numbers)
        }
        _ => return Err(Malformed("whether there is a flush is neither 0 nor 1")),
    };
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
        flush,
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
