//! Which cgroup has which slot: given out at load and by the BPF programs at mkdir, taken back here.

use std::{collections::HashMap, time::Duration};

use psi_common::{
    account::{Records as _, Stamp},
    layout::{Cgroup, NO_SLOT, slot_state},
};

use crate::{
    flush::Flusher,
    hierarchy::{Directory, Hierarchy, join},
    mapped::MappedMaps,
};

/// How long a released slot rests: no task can be charged to it any more, but an event may be under way.
const GRACE: Duration = Duration::from_millis(20);
/// How long counts that a lost event left behind may take to heal by themselves.
const PATIENCE: Duration = Duration::from_secs(2);

/// A cgroup that has a slot.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) id: u64,
    /// The slot that counts it in turn; [`NO_SLOT`] for none.
    pub(crate) parent: u32,
    /// The slot of the cgroup above it; [`NO_SLOT`] for the root.
    above: u32,
    pub(crate) level: u32,
    /// Path from the root; none if it had gone before anyone could read its name.
    pub(crate) path: Option<String>,
    /// Whether its directory still exists.
    pub(crate) exists: bool,
    /// When it was seen to be released, ns of CLOCK_MONOTONIC.
    released_ns: Option<u64>,
}

/// All slots, as userspace knows them.
#[derive(Debug)]
pub(crate) struct Slots {
    known: Vec<Option<Known>>,
    hierarchy: Hierarchy,
    only_leaf: bool,
    changes_seen: Option<u64>,
    /// Slots whose cgroup's path is not known yet.
    nameless: Vec<u32>,
    /// Slots that wait to be freed.
    released: Vec<u32>,
}

impl Slots {
    /// With `only_leaf` no cgroup counts for the one above it.
    pub(crate) fn new(hierarchy: Hierarchy, slots: usize, only_leaf: bool) -> Self {
        Self {
            known: vec![None; slots],
            hierarchy,
            only_leaf,
            changes_seen: None,
            nameless: Vec::new(),
            released: Vec::new(),
        }
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&Known> {
        self.known.get(slot as usize)?.as_ref()
    }

    /// All cgroups with a slot.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Known)> {
        (0..)
            .zip(&self.known)
            .filter_map(|(slot, known)| Some((slot, known.as_ref()?)))
    }

    /// Slots in use.
    pub(crate) fn used(&self) -> usize {
        self.known.iter().flatten().count()
    }

    /// The slot that counts `slot` in turn.
    pub(crate) fn parent(&self, slot: u32) -> Option<u32> {
        self.get(slot)
            .map(|known| known.parent)
            .filter(|&parent| parent != NO_SLOT)
    }

    /// Gives a slot to a directory found by userspace's own walk.
    pub(crate) fn put(&mut self, maps: &MappedMaps, slot: u32, directory: &Directory, above: u32) {
        let parent = if self.only_leaf { NO_SLOT } else { above };
        let generation = maps.cgroup(slot).map_or(0, |entry| entry.generation);
        let Directory { id, level, path, .. } = directory;
        maps.set_cgroup(
            slot,
            Cgroup {
                id: *id,
                parent,
                level: *level,
                state: slot_state::LIVE,
                generation,
                above,
                reserved: 0,
            },
        );
        self.known[slot as usize] = Some(Known {
            id: *id,
            parent,
            above,
            level: *level,
            path: Some(path.clone()),
            exists: true,
            released_ns: None,
        });
    }

    /// Takes a slot back that no event has met.
    pub(crate) fn take_back(&mut self, maps: &MappedMaps, slot: u32) {
        self.known[slot as usize] = None;
        set_free(maps, slot);
    }

    /// Takes over what the BPF programs have changed; does nothing when they changed nothing.
    pub(crate) fn refresh(&mut self, maps: &MappedMaps, now_ns: u64) {
        let changes = maps.cgroup_changes();
        let mut nameless = std::mem::take(&mut self.nameless);
        if self.changes_seen == Some(changes) && nameless.is_empty() {
            return;
        }
        self.changes_seen = Some(changes);
        for slot in 0..self.known.len() as u32 {
            let Some(entry) = maps.cgroup(slot) else { continue };
            if entry.state == slot_state::FREE {
                continue;
            }
            let known = self.known[slot as usize].get_or_insert_with(|| {
                nameless.push(slot);
                Known {
                    id: entry.id,
                    parent: entry.parent,
                    above: entry.above,
                    level: entry.level,
                    path: None,
                    exists: true,
                    released_ns: None,
                }
            });
            known.exists = entry.state == slot_state::LIVE;
            if entry.state == slot_state::RELEASED && known.released_ns.is_none() {
                known.released_ns = Some(now_ns);
                self.released.push(slot);
            }
        }
        // Parents first, so that a child finds its parent's path; siblings together.
        nameless.sort_by_key(|&slot| self.get(slot).map(|known| (known.level, known.above)));
        self.name(&nameless);
        // The kernel tells of a new cgroup just before its directory can be seen (cgroup_mkdir): look again.
        nameless.retain(|&slot| self.get(slot).is_some_and(|known| known.exists && known.path.is_none()));
        self.nameless = nameless;
    }

    /// Finds the paths of new cgroups: one look into each parent's directory.
    fn name(&mut self, nameless: &[u32]) {
        let mut rest = nameless;
        while let Some(&first) = rest.first() {
            let above = self.get(first).map_or(NO_SLOT, |known| known.above);
            let Some(parent_path) = self.get(above).and_then(|known| known.path.clone()) else {
                rest = &rest[1..];
                continue;
            };
            let names: HashMap<u64, String> = self
                .hierarchy
                .children(&parent_path)
                .map(|(name, id)| (id, name))
                .collect();
            while let Some(&slot) = rest.first()
                && let Some(known) = &mut self.known[slot as usize]
                && known.above == above
            {
                known.path = names.get(&known.id).map(|name| join(&parent_path, name));
                rest = &rest[1..];
            }
        }
    }

    /// Empties slots whose cgroup was released long enough ago and returns them: they are to be freed. `flusher` loses
    /// what it knows of them.
    pub(crate) fn recycle(&mut self, maps: &MappedMaps, flusher: &mut Flusher, now_ns: u64) -> Vec<u32> {
        let mut freed = Vec::new();
        let known = &mut self.known;
        self.released.retain(|&slot| {
            let Some(Known {
                released_ns: Some(since),
                parent,
                ..
            }) = known[slot as usize]
            else {
                return false;
            };
            let rested = Duration::from_nanos(now_ns.saturating_sub(since));
            if rested < GRACE || !emptied(maps, slot, rested) {
                return true;
            }
            if parent != NO_SLOT {
                flusher.hand_up(maps, slot, parent);
            }
            maps.clear(slot);
            flusher.forget(maps, slot);
            set_free(maps, slot);
            known[slot as usize] = None;
            freed.push(slot);
            false
        });
        freed
    }

    /// Whether slots wait to be freed.
    pub(crate) fn is_recycling(&self) -> bool {
        !self.released.is_empty()
    }
}

fn set_free(maps: &MappedMaps, slot: u32) {
    let generation = maps.cgroup(slot).map_or(0, |entry| entry.generation.wrapping_add(1));
    maps.set_cgroup(
        slot,
        Cgroup {
            id: 0,
            parent: NO_SLOT,
            level: 0,
            state: slot_state::FREE,
            generation,
            above: NO_SLOT,
            reserved: 0,
        },
    );
}

/// Whether no count is left in a released slot; what a lost event left behind is taken back after a while.
fn emptied(maps: &MappedMaps, slot: u32, rested: Duration) -> bool {
    let mut empty = true;
    for cpu in 0..maps.cpu_count() {
        let word = maps.word(cpu, slot);
        if word != 0 {
            empty = false;
            if rested >= PATIENCE {
                maps.add(cpu as u32, slot, word.wrapping_neg(), Stamp::UNREAD);
            }
        }
    }
    empty
}
