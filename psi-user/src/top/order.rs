//! Which cgroup comes on which line.

use std::{cmp::Reverse, collections::HashMap};

use super::columns::{SortKey, Window};
use crate::model::CgroupPressure;

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Index of the cgroup in its snapshot.
    pub(super) index: usize,
    /// Lines above that hold an ancestor; 0 in a list.
    pub(super) depth: usize,
    /// Where in its path the name that is shown starts.
    pub(super) name_at: usize,
}

/// All cgroups but the root in one list.
pub(super) fn flat(cgroups: &[CgroupPressure], key: SortKey, window: Window) -> Vec<Row> {
    if key == SortKey::Cgroup {
        // By name means as a tree: a plain comparison would put /a-b between /a and /a/b.
        return tree(cgroups, key, window)
            .into_iter()
            .map(|row| Row {
                depth: 0,
                name_at: 0,
                ..row
            })
            .collect();
    }
    sorted(cgroups, key, window)
        .into_iter()
        .map(|index| Row {
            index,
            depth: 0,
            name_at: 0,
        })
        .collect()
}

/// All cgroups but the root, each below its nearest ancestor that is there.
pub(super) fn tree(cgroups: &[CgroupPressure], key: SortKey, window: Window) -> Vec<Row> {
    let by_path: HashMap<&str, usize> = cgroups
        .iter()
        .enumerate()
        .map(|(index, cgroup)| (cgroup.path.as_str(), index))
        .collect();
    let parent = |index: usize| {
        let mut path = cgroups[index].path.as_str();
        while let Some((above, _)) = path.rsplit_once('/').filter(|(above, _)| !above.is_empty()) {
            if let Some(&parent) = by_path.get(above) {
                return Some(parent);
            }
            path = above;
        }
        None
    };

    let mut tops = Vec::new();
    let mut children = vec![Vec::new(); cgroups.len()];
    for index in sorted(cgroups, key, window).into_iter().rev() {
        match parent(index) {
            Some(parent) => children[parent].push(Row {
                index,
                depth: 0,
                name_at: cgroups[parent].path.len() + 1,
            }),
            None => tops.push(Row {
                index,
                depth: 0,
                name_at: 1,
            }),
        }
    }

    let mut rows = Vec::with_capacity(cgroups.len());
    let mut waiting = tops;
    while let Some(row) = waiting.pop() {
        rows.push(row);
        waiting.extend(children[row.index].iter().map(|&child| Row {
            depth: row.depth + 1,
            ..child
        }));
    }
    rows
}

/// Highest first, those without a figure last, equals as in the snapshot: siblings by name.
fn sorted(cgroups: &[CgroupPressure], key: SortKey, window: Window) -> Vec<usize> {
    let mut keys: Vec<_> = cgroups
        .iter()
        .enumerate()
        .filter(|(_, cgroup)| cgroup.level > 0)
        .map(|(index, cgroup)| {
            // As shown, so that rows which look equal keep their places.
            let hundredths = key
                .figure(cgroup, window)
                .map_or(-1, |percent| (percent * 100.0).round() as i64);
            (Reverse(hundredths), index)
        })
        .collect();
    keys.sort_unstable();
    keys.into_iter().map(|(_, index)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::fixture::{cgroup, unmeasured};

    fn names<'a>(cgroups: &'a [CgroupPressure], rows: &[Row]) -> Vec<(usize, &'a str)> {
        rows.iter()
            .map(|row| (row.depth, &cgroups[row.index].path[row.name_at..]))
            .collect()
    }

    fn some() -> Vec<CgroupPressure> {
        vec![
            cgroup("/", 1, 99.0),
            cgroup("/a", 2, 5.0),
            cgroup("/a/x", 3, 1.0),
            cgroup("/a/y", 4, 7.0),
            cgroup("/a-b", 5, 8.0),
            cgroup("/b", 6, 8.001),
        ]
    }

    #[test]
    fn a_list_is_sorted_as_shown() {
        let cgroups = some();
        let rows = flat(&cgroups, SortKey::CpuSome, Window::Avg10);
        assert_eq!(
            names(&cgroups, &rows),
            [(0, "/a-b"), (0, "/b"), (0, "/a/y"), (0, "/a"), (0, "/a/x")]
        );
        let rows = flat(&cgroups, SortKey::Cgroup, Window::Avg10);
        assert_eq!(
            names(&cgroups, &rows),
            [(0, "/a"), (0, "/a/x"), (0, "/a/y"), (0, "/a-b"), (0, "/b")]
        );
    }

    #[test]
    fn a_tree_sorts_siblings() {
        let cgroups = some();
        let rows = tree(&cgroups, SortKey::CpuSome, Window::Avg10);
        assert_eq!(
            names(&cgroups, &rows),
            [(0, "a-b"), (0, "b"), (0, "a"), (1, "y"), (1, "x")]
        );
    }

    #[test]
    fn a_tree_does_not_need_all_parents() {
        let cgroups = [
            cgroup("/", 1, 0.0),
            cgroup("/a", 2, 1.0),
            cgroup("/a/b/c", 3, 2.0),
            cgroup("/x/y", 4, 3.0),
        ];
        let rows = tree(&cgroups, SortKey::CpuSome, Window::Avg10);
        assert_eq!(names(&cgroups, &rows), [(0, "x/y"), (0, "a"), (1, "b/c")]);
    }

    #[test]
    fn absent_sorts_last() {
        let cgroups = [unmeasured("/n", 2, 50.0), cgroup("/z", 3, 0.0)];
        let rows = flat(&cgroups, SortKey::MemorySome, Window::Avg10);
        assert_eq!(names(&cgroups, &rows), [(0, "/z"), (0, "/n")]);
    }
}
