//! One cgroup in detail: what is known of it.

use std::collections::{HashMap, HashSet};

use super::inspect::{Inspection, Task};
use crate::model::CgroupPressure;

/// The cgroup that is shown in detail.
#[derive(Debug)]
pub(super) struct Pane {
    pub(super) id: u64,
    /// As it was last.
    pub(super) cgroup: CgroupPressure,
    pub(super) is_gone: bool,
    pub(super) told: Told,
    /// Tasks with the share of the last interval that each waited for a CPU, %; those that waited most first.
    pub(super) tasks: Vec<(Task, Option<f64>)>,
    /// What the tasks had waited when they were looked at last, and when that was, ns.
    waited: HashMap<u32, u64>,
    at_ns: u64,
    /// First line that is shown, as of the last frame.
    first: usize,
    page: usize,
}

/// What the kernel tells of the cgroup.
#[derive(Debug)]
pub(super) enum Told {
    /// It was not asked since the figures came.
    NotAsked(Inspection),
    /// There is nobody to ask, as in a recording.
    Nothing,
    All(Inspection),
}

impl Pane {
    pub(super) fn new(cgroup: &CgroupPressure) -> Self {
        Self {
            id: cgroup.id,
            cgroup: cgroup.clone(),
            is_gone: false,
            told: Told::NotAsked(Inspection::default()),
            tasks: Vec::new(),
            waited: HashMap::new(),
            at_ns: 0,
            first: 0,
            page: 1,
        }
    }

    /// Takes new figures.
    pub(super) fn updated(&mut self, cgroups: &[CgroupPressure], gone: &HashSet<u64>) {
        let found = cgroups
            .iter()
            .find(|cgroup| cgroup.id == self.id && !gone.contains(&self.id));
        self.is_gone = found.is_none();
        if let Some(found) = found {
            self.cgroup = found.clone();
            // What was told last is shown until there is more.
            if let Told::All(last) = &mut self.told {
                self.told = Told::NotAsked(std::mem::take(last));
            }
        }
    }

    /// Whether the kernel is to be asked.
    pub(super) const fn wants(&self) -> bool {
        !self.is_gone && matches!(self.told, Told::NotAsked(_))
    }

    /// Takes what the kernel told at `at_ns` of any steady clock.
    pub(super) fn inspected(&mut self, inspection: Option<Inspection>, at_ns: u64) {
        let Some(mut inspection) = inspection else {
            self.told = Told::Nothing;
            return;
        };
        let elapsed_ns = at_ns.saturating_sub(self.at_ns);
        let share = |task: &Task| {
            let grown_ns = task.waited_ns?.saturating_sub(*self.waited.get(&task.pid)?);
            (elapsed_ns > 0).then(|| (grown_ns as f64 * 100.0 / elapsed_ns as f64).min(100.0))
        };
        let seen = std::mem::take(&mut inspection.tasks.seen);
        let mut tasks: Vec<_> = seen
            .into_iter()
            .map(|task| {
                let share = share(&task);
                (task, share)
            })
            .collect();
        // As shown, so that rows that look equal keep their places.
        let hundredths = |share: Option<f64>| share.map_or(-1, |share| (share * 100.0).round() as i64);
        tasks.sort_by_key(|(task, share)| (-hundredths(*share), rank(task.state), task.pid));
        self.waited = tasks
            .iter()
            .filter_map(|(task, _)| Some((task.pid, task.waited_ns?)))
            .collect();
        self.at_ns = at_ns;
        self.tasks = tasks;
        self.told = Told::All(inspection);
    }

    /// What was told last.
    pub(super) const fn inspection(&self) -> Option<&Inspection> {
        match &self.told {
            Told::All(inspection) | Told::NotAsked(inspection) => Some(inspection),
            Told::Nothing => None,
        }
    }

    /// Number of tasks in each state, those that stall first.
    pub(super) fn states(&self) -> Vec<(char, usize)> {
        let mut states: Vec<(char, usize)> = Vec::new();
        for (task, _) in &self.tasks {
            match states.iter_mut().find(|(state, _)| *state == task.state) {
                Some((_, count)) => *count += 1,
                None => states.push((task.state, 1)),
            }
        }
        states.sort_unstable_by_key(|(state, _)| (rank(*state), *state));
        states
    }

    pub(super) const fn scroll(&mut self, lines: isize) {
        self.first = self.first.saturating_add_signed(lines);
    }

    /// Lines of a page, as of the last frame.
    pub(super) const fn page(&self) -> isize {
        self.page.cast_signed()
    }

    /// The first of `count` lines that a page of `page` lines shows.
    pub(super) fn visible(&mut self, count: usize, page: usize) -> usize {
        self.page = page.max(1);
        self.first = self.first.min(count.saturating_sub(self.page));
        self.first
    }
}

/// Who stalls comes first: on a CPU or waiting for one, then waiting for a disk.
const fn rank(state: char) -> u8 {
    match state {
        'R' => 0,
        'D' => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::{fixture::cgroup, inspect::Tasks};

    fn task(pid: u32, state: char, waited_ns: Option<u64>) -> Task {
        Task {
            pid,
            state,
            name: format!("task{pid}"),
            waited_ns,
        }
    }

    fn told(seen: Vec<Task>) -> Inspection {
        Inspection {
            tasks: Tasks {
                count: seen.len(),
                seen,
            },
            ..Inspection::default()
        }
    }

    #[test]
    fn those_that_waited_most_come_first() {
        let mut pane = Pane::new(&cgroup("/a", 1, 0.0));
        assert!(pane.wants());
        pane.inspected(
            Some(told(vec![
                task(1, 'S', Some(0)),
                task(2, 'D', None),
                task(3, 'R', Some(500)),
            ])),
            1000,
        );
        let shown = |pane: &Pane| {
            pane.tasks
                .iter()
                .map(|(task, share)| (task.pid, *share))
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(&pane), [(3, None), (2, None), (1, None)]);
        assert!(!pane.wants());
        pane.updated(&[cgroup("/a", 1, 0.0)], &HashSet::new());
        assert!(pane.wants());
        // 3 is another one by now, 4 is new.
        pane.inspected(
            Some(told(vec![
                task(1, 'S', Some(1000)),
                task(2, 'D', None),
                task(3, 'R', Some(0)),
                task(4, 'S', Some(9)),
            ])),
            3000,
        );
        assert_eq!(shown(&pane), [(1, Some(50.0)), (3, Some(0.0)), (2, None), (4, None)]);
        assert_eq!(pane.states(), [('R', 1), ('D', 1), ('S', 2)]);
    }

    #[test]
    fn a_cgroup_that_is_gone_is_not_asked_for() {
        let mut pane = Pane::new(&cgroup("/a", 1, 7.0));
        pane.inspected(Some(told(vec![task(1, 'S', None)])), 1);
        pane.updated(&[cgroup("/a", 1, 7.0)], &HashSet::from([1]));
        assert!(pane.is_gone && !pane.wants());
        assert_eq!(pane.tasks.len(), 1);
    }
}
