//! What the kernel has loaded, by the ids that it gives to programs, maps and links.

use std::{collections::BTreeSet, fs};

use aya::{
    maps::loaded_maps,
    programs::{loaded_links, loaded_programs},
};

/// Ids of programs, maps and links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Ids {
    /// Of programs.
    pub programs: BTreeSet<u32>,
    /// Of maps.
    pub maps: BTreeSet<u32>,
    /// Of links: what attaches a program.
    pub links: BTreeSet<u32>,
}

impl Ids {
    /// What a process holds open.
    pub fn of_process(pid: u32) -> Self {
        let mut ids = Self::default();
        for entry in fs::read_dir(format!("/proc/{pid}/fdinfo"))
            .expect("the process runs")
            .flatten()
        {
            // Closed meanwhile.
            let Ok(text) = fs::read_to_string(entry.path()) else {
                continue;
            };
            for line in text.lines() {
                let Some((name, id)) = line.split_once(':') else {
                    continue;
                };
                let Ok(id) = id.trim().parse() else { continue };
                match name {
                    "prog_id" => ids.programs.insert(id),
                    "map_id" => ids.maps.insert(id),
                    "link_id" => ids.links.insert(id),
                    _ => continue,
                };
            }
        }
        ids
    }

    /// What the kernel has.
    pub fn of_kernel() -> Self {
        Self {
            // An id whose owner ends while it is looked at is an error, and of no interest.
            programs: loaded_programs().flatten().map(|info| info.id()).collect(),
            maps: loaded_maps().flatten().map(|info| info.id()).collect(),
            links: loaded_links().flatten().map(|info| info.id()).collect(),
        }
    }

    /// Those that `other` has too.
    pub fn common(&self, other: &Self) -> Self {
        Self {
            programs: &self.programs & &other.programs,
            maps: &self.maps & &other.maps,
            links: &self.links & &other.links,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
