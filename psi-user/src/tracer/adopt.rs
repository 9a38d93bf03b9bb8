//! Which cgroups get a slot: those that userspace finds, and, where only some are tracked, those that are made.

use std::{collections::HashSet, fs, os::unix::fs::MetadataExt as _, sync::atomic::Ordering::SeqCst};

use psi_common::layout::{
    ANCESTORS_SLOT, Cgroup, EXTRA_IDS, MAX_LEVEL, NEW_PATH, NO_SLOT, NewCgroup, SLOT_OF_ID, UNTRACKED, slot_state,
};

use super::{ROOT_SLOT, Tracer};
use crate::{
    error::Error,
    hierarchy::{Directory, join},
};

/// `bpf_map_update_elem`: only if the key is there (BPF_EXIST).
const IF_THERE: u64 = 2;

/// A cgroup that userspace gave a slot to while the programs may have seen it go.
#[derive(Debug)]
pub(super) struct Unverified {
    id: u64,
    slot: u32,
}

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::Object(format!("cgroup ids: {error}"))
}

impl Tracer {
    /// Gives slots to those of `directories` that are tracked and have none; says whether there were any. Parents must
    /// come before their children.
    pub(super) fn adopt(&mut self, directories: &[Directory]) -> Result<bool, Error> {
        let tracked = self.filter.is_on().then(|| self.filter.tracked(directories));
        let mut adopted = false;
        for directory in directories {
            let value = self.ids.get(&directory.id, 0).ok();
            if value.is_some_and(|value| value & UNTRACKED == 0) {
                continue;
            }
            if tracked.as_ref().is_none_or(|tracked| tracked.contains(&directory.id)) {
                adopted |= self.give_slot(directory, value)?;
            } else {
                self.leave_out(directory, value)?;
            }
        }
        Ok(adopted)
    }

    fn slot_above(&self, directory: &Directory) -> u32 {
        let Some(id) = directory.parent else { return NO_SLOT };
        self.ids.get(&id, 0).map_or(ROOT_SLOT, |value| value & SLOT_OF_ID)
    }

    /// Gives a slot to a directory whose entry in `CGROUP_IDS` is `value`; says whether there was one, and the
    /// directory still is.
    fn give_slot(&mut self, directory: &Directory, value: Option<u32>) -> Result<bool, Error> {
        let above = self.slot_above(directory);
        let slot = if directory.parent.is_none() {
            Some(ROOT_SLOT)
        } else if directory.level <= MAX_LEVEL {
            self.free_slots.pop(0).ok()
        } else {
            None
        };
        let new = if let Some(slot) = slot {
            self.slots.put(&self.maps, slot, directory, above);
            slot
        } else if self.maps.without_slot().load(SeqCst) < EXTRA_IDS.into() {
            self.maps.without_slot().fetch_add(1, SeqCst);
            above | ANCESTORS_SLOT
        } else {
            return Ok(false);
        };
        let flags = if value.is_some() { IF_THERE } else { 0 };
        if let Err(error) = self.ids.insert(directory.id, new, flags) {
            match slot {
                Some(slot) => {
                    self.slots.take_back(&self.maps, slot);
                    let _ = self.free_slots.push(slot, 0);
                }
                None => _ = self.maps.without_slot().fetch_sub(1, SeqCst),
            }
            // Its entry has gone, and so has it.
            return if value.is_some() {
                Ok(false)
            } else {
                Err(failed(&error))
            };
        }
        if value.is_some() {
            self.maps.untracked().fetch_sub(1, SeqCst);
        }
        if let Some(slot) = slot.filter(|_| self.filter.is_on()) {
            self.unverified.push(Unverified { id: directory.id, slot });
        }
        Ok(slot.is_some())
    }

    /// Has a cgroup that is not tracked charged to its nearest ancestor that is. Without an entry of its own it is as well,
    /// by a look at each ancestor.
    fn leave_out(&mut self, directory: &Directory, value: Option<u32>) -> Result<(), Error> {
        let new = self.slot_above(directory) | ANCESTORS_SLOT | UNTRACKED;
        if value == Some(new) {
            return Ok(());
        }
        if value.is_none() {
            if self.maps.untracked().load(SeqCst) >= self.sizes.untracked.into() {
                return Ok(());
            }
            self.maps.untracked().fetch_add(1, SeqCst);
        }
        let flags = if value.is_some() { IF_THERE } else { 0 };
        match self.ids.insert(directory.id, new, flags) {
            Err(error) if value.is_none() => Err(failed(&error)),
            // It has gone.
            _ => Ok(()),
        }
    }

    /// Takes in what the programs tell of new cgroups where only some are tracked.
    pub(super) fn adopt_new(&mut self, is_period_over: bool) -> Result<(), Error> {
        if !self.filter.is_on() {
            return Ok(());
        }
        let mut adopted = false;
        while let Some(new) = self.wakeups.new_cgroup() {
            adopted |= self.adopt_one(&new)?;
        }
        if self.maps.take_rescan() || is_period_over && self.is_rescan_due() {
            self.rescan_soon = false;
            let all = self.hierarchy.walk()?;
            adopted |= self.adopt(&all)?;
        }
        if is_period_over {
            self.verify();
        }
        if adopted {
            // Its tasks were charged to an ancestor until now.
            self.walk_tasks()?;
        }
        Ok(())
    }

    /// A look at the whole tree now and then catches what no event told: a cgroup that was renamed, or one with a longer
    /// path than an event can hold.
    fn is_rescan_due(&self) -> bool {
        self.rescan_soon || self.periods.is_multiple_of(super::AUDIT_PERIODS)
    }

    fn adopt_one(&mut self, new: &NewCgroup) -> Result<bool, Error> {
        let Some(path) = path(new) else {
            self.rescan_soon = true;
            return Ok(false);
        };
        if !self.filter.names(&path) {
            return Ok(false);
        }
        let known = self.slots.get(new.slot);
        let Some((nearest, id)) = known.and_then(|known| Some((known.path.clone()?, known.id))) else {
            self.rescan_soon = true;
            return Ok(false);
        };
        let Some(below) = path
            .strip_prefix(nearest.trim_end_matches('/'))
            .and_then(|below| below.strip_prefix('/'))
            .filter(|_| new.has_id != 0)
        else {
            self.rescan_soon = true;
            return Ok(false);
        };
        // The cgroups between the two are tracked from now on, too.
        let names: Vec<&str> = below.split('/').collect();
        let mut chain: Vec<Directory> = Vec::with_capacity(names.len());
        for (n, name) in names.iter().enumerate() {
            let (parent_path, parent) = chain
                .last()
                .map_or((nearest.as_str(), id), |last| (last.path.as_str(), last.id));
            let path = join(parent_path, name);
            let id = if n + 1 == names.len() {
                // It may not be seen in the file system yet.
                new.id
            } else if let Ok(found) = fs::metadata(self.hierarchy.directory(&path)) {
                found.ino()
            } else {
                return Ok(false);
            };
            chain.push(Directory {
                id,
                parent: Some(parent),
                level: new.level - (names.len() - 1 - n) as u32,
                path,
            });
        }
        if chain.len() > 1 {
            // What else lies below these has another nearest ancestor now.
            self.rescan_soon = true;
        }
        let mut adopted = false;
        for directory in chain {
            let value = self.ids.get(&directory.id, 0).ok();
            if value.is_some_and(|value| value & UNTRACKED != 0) {
                adopted |= self.give_slot(&directory, value)?;
            }
        }
        Ok(adopted)
    }

    /// Cgroups that went just as they got their slot: the programs then saw nothing to take back.
    fn verify(&mut self) {
        for Unverified { id, slot } in std::mem::take(&mut self.unverified) {
            let Some(entry) = self.maps.cgroup(slot).filter(|entry| entry.id == id) else {
                continue;
            };
            let state = if self.ids.get(&id, 0).is_err() {
                slot_state::RELEASED
            } else if self.slots.get(slot).is_some_and(|known| {
                let path = known.path.as_deref().unwrap_or_default();
                fs::metadata(self.hierarchy.directory(path)).is_ok_and(|found| found.ino() == id)
            }) {
                continue;
            } else {
                slot_state::REMOVED
            };
            if entry.state == slot_state::LIVE || state == slot_state::RELEASED && entry.state == slot_state::REMOVED {
                self.maps.set_cgroup(slot, Cgroup { state, ..entry });
                self.maps.note_cgroup_change();
            }
        }
    }

    /// Cgroups that were there at the `first` walk and not at the one `after` attachment, whose removal the programs may
    /// not have seen: as if they had seen the release.
    pub(super) fn drop_vanished(&mut self, first: &[Directory], after: &[Directory]) {
        let existing: HashSet<u64> = after.iter().map(|directory| directory.id).collect();
        for id in first
            .iter()
            .map(|directory| directory.id)
            .filter(|id| !existing.contains(id))
        {
            // Who takes the id out is who counts it as gone: it may be the programs after all.
            let Some(value) = self.ids.get(&id, 0).ok().filter(|_| self.ids.remove(&id).is_ok()) else {
                continue;
            };
            if value & UNTRACKED != 0 {
                self.maps.untracked().fetch_sub(1, SeqCst);
            } else if value & ANCESTORS_SLOT != 0 {
                self.maps.without_slot().fetch_sub(1, SeqCst);
            } else if let Some(entry) = self.maps.cgroup(value) {
                self.maps.set_cgroup(
                    value,
                    Cgroup {
                        state: slot_state::RELEASED,
                        ..entry
                    },
                );
                self.maps.note_cgroup_change();
            }
        }
    }
}

/// The path of a new cgroup; none if it did not fit.
fn path(new: &NewCgroup) -> Option<String> {
    let length = usize::try_from(new.length).ok()?;
    if length == 0 || length >= NEW_PATH {
        return None;
    }
    // As a directory's name is shown that is not UTF-8.
    Some(String::from_utf8_lossy(&new.path[..length - 1]).into_owned())
}
