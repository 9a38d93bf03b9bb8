//! Which cgroup comes on which line.

use std::collections::{HashMap, HashSet};

use super::{
    columns::{SortKey, Window},
    filter::Filter,
};
use crate::model::CgroupPressure;

/// What decides on the lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order<'a> {
    pub(super) key: SortKey,
    pub(super) window: Window,
    /// Lowest first; names from the last one.
    pub(super) reversed: bool,
    pub(super) filter: &'a Filter,
    /// Ids of the cgroups whose children are not shown. A filter finds them all the same.
    pub(super) folded: &'a HashSet<u64>,
}

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Index of the cgroup in its snapshot.
    pub(super) index: usize,
    /// Lines above that hold an ancestor; 0 in a list.
    pub(super) depth: usize,
    /// Where in its path the name that is shown starts.
    pub(super) name_at: usize,
    /// Whether it has children in the tree.
    pub(super) branch: Branch,
    /// False for those that are there for their children's sake.
    pub(super) is_match: bool,
}

/// A row's children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Branch {
    Leaf,
    Open,
    Folded,
}

/// All cgroups but the root in one list.
pub(super) fn flat(cgroups: &[CgroupPressure], order: Order<'_>) -> Vec<Row> {
    let list = |index: usize| Row {
        index,
        depth: 0,
        name_at: 0,
        branch: Branch::Leaf,
        is_match: true,
    };
    if order.key == SortKey::Cgroup {
        // By name means as a tree: a plain comparison would put /a-b between /a and /a/b.
        let nothing = HashSet::new();
        let order = Order {
            folded: &nothing,
            ..order
        };
        let rows = tree(cgroups, order).into_iter().filter(|row| row.is_match);
        return rows.map(|row| list(row.index)).collect();
    }
    let mut indices = sorted(cgroups, order);
    indices.retain(|&index| order.filter.matches(&cgroups[index].path));
    indices.into_iter().map(list).collect()
}

/// All cgroups but the root, each below its nearest ancestor that is there.
pub(super) fn tree(cgroups: &[CgroupPressure], order: Order<'_>) -> Vec<Row> {
    let Order { filter, folded, .. } = order;
    let parents = parents(cgroups);
    let is_match: Vec<bool> = cgroups.iter().map(|cgroup| filter.matches(&cgroup.path)).collect();
    let mut is_shown = is_match.clone();
    if filter.is_active() {
        for (index, _) in is_match.iter().enumerate().filter(|(_, is_match)| **is_match) {
            let mut parent = parents[index];
            while let Some(above) = parent.filter(|&above| !is_shown[above]) {
                is_shown[above] = true;
                parent = parents[above];
            }
        }
    }

    let mut tops = Vec::new();
    let mut children = vec![Vec::new(); cgroups.len()];
    for index in sorted(cgroups, order)
        .into_iter()
        .rev()
        .filter(|&index| is_shown[index])
    {
        match parents[index] {
            Some(parent) => children[parent].push(index),
            None => tops.push(index),
        }
    }

    let mut rows = Vec::with_capacity(cgroups.len());
    let mut waiting: Vec<_> = tops.into_iter().map(|index| (index, 0)).collect();
    while let Some((index, depth)) = waiting.pop() {
        let branch = if children[index].is_empty() {
            Branch::Leaf
        } else if folded.contains(&cgroups[index].id) && !filter.is_active() {
            Branch::Folded
        } else {
            Branch::Open
        };
        if branch == Branch::Open {
            waiting.extend(children[index].iter().map(|&child| (child, depth + 1)));
        }
        rows.push(Row {
            index,
            depth,
            name_at: parents[index].map_or(0, |parent| cgroups[parent].path.len()) + 1,
            branch,
            is_match: is_match[index],
        });
    }
    rows
}

/// Each cgroup's nearest ancestor that is there, but for the root.
fn parents(cgroups: &[CgroupPressure]) -> Vec<Option<usize>> {
    let by_path: HashMap<&str, usize> = cgroups
        .iter()
        .enumerate()
        .map(|(index, cgroup)| (cgroup.path.as_str(), index))
        .collect();
    let parent = |cgroup: &CgroupPressure| {
        let mut path = cgroup.path.as_str();
        while let Some((above, _)) = path.rsplit_once('/').filter(|(above, _)| !above.is_empty()) {
            if let Some(&parent) = by_path.get(above) {
                return Some(parent);
            }
            path = above;
        }
        None
    };
    cgroups.iter().map(parent).collect()
}

/// Highest first, those without a figure last, equals as in the snapshot: siblings by name.
fn sorted(cgroups: &[CgroupPressure], order: Order<'_>) -> Vec<usize> {
    let Order {
        key, window, reversed, ..
    } = order;
    let mut keys: Vec<_> = cgroups
        .iter()
        .enumerate()
        .filter(|(_, cgroup)| cgroup.level > 0)
        .map(|(index, cgroup)| {
            // As shown, so that rows which look equal keep their places.
            let hundredths = key
                .figure(cgroup, window)
                .map(|percent| (percent * 100.0).round() as i64);
            let rank = if reversed {
                hundredths
            } else {
                hundredths.map(|figure| -figure)
            };
            (hundredths.is_none(), rank, index)
        })
        .collect();
    if reversed && key == SortKey::Cgroup {
        keys.reverse();
    } else {
        keys.sort_unstable();
    }
    keys.into_iter().map(|(_, _, index)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fields::Stall,
        top::fixture::{cgroup, unmeasured},
    };

    fn names<'a>(cgroups: &'a [CgroupPressure], rows: &[Row]) -> Vec<(usize, &'a str)> {
        rows.iter()
            .map(|row| (row.depth, &cgroups[row.index].path[row.name_at..]))
            .collect()
    }

    fn order<'a>(key: SortKey, filter: &'a Filter, folded: &'a HashSet<u64>) -> Order<'a> {
        Order {
            key,
            window: Window::AVG10,
            reversed: false,
            filter,
            folded,
        }
    }

    fn listed(cgroups: &[CgroupPressure], key: SortKey) -> Vec<Row> {
        flat(cgroups, order(key, &Filter::default(), &HashSet::new()))
    }

    fn branched(cgroups: &[CgroupPressure], key: SortKey) -> Vec<Row> {
        tree(cgroups, order(key, &Filter::default(), &HashSet::new()))
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
        let rows = listed(&cgroups, SortKey::Stall(Stall::CPU_SOME));
        assert_eq!(
            names(&cgroups, &rows),
            [(0, "/a-b"), (0, "/b"), (0, "/a/y"), (0, "/a"), (0, "/a/x")]
        );
        let rows = listed(&cgroups, SortKey::Cgroup);
        assert_eq!(
            names(&cgroups, &rows),
            [(0, "/a"), (0, "/a/x"), (0, "/a/y"), (0, "/a-b"), (0, "/b")]
        );
    }

    #[test]
    fn a_tree_sorts_siblings() {
        let cgroups = some();
        let rows = branched(&cgroups, SortKey::Stall(Stall::CPU_SOME));
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
        let rows = branched(&cgroups, SortKey::Stall(Stall::CPU_SOME));
        assert_eq!(names(&cgroups, &rows), [(0, "x/y"), (0, "a"), (1, "b/c")]);
    }

    #[test]
    fn absent_sorts_last() {
        let cgroups = [unmeasured("/n", 2, 50.0), cgroup("/z", 3, 0.0)];
        let rows = listed(&cgroups, SortKey::Stall(Stall::MEMORY_SOME));
        assert_eq!(names(&cgroups, &rows), [(0, "/z"), (0, "/n")]);
    }

    #[test]
    fn reversed_puts_the_lowest_first_and_absent_last() {
        let mut cgroups = some();
        cgroups.push(unmeasured("/n", 7, 1.0));
        let (filter, folded) = (Filter::default(), HashSet::new());
        let order = |key| Order {
            reversed: true,
            ..order(key, &filter, &folded)
        };
        let rows = flat(&cgroups, order(SortKey::Stall(Stall::CPU_SOME)));
        assert_eq!(
            names(&cgroups, &rows).iter().map(|(_, name)| *name).collect::<Vec<_>>(),
            ["/a/x", "/n", "/a", "/a/y", "/a-b", "/b"]
        );
        let rows = flat(&cgroups, order(SortKey::Stall(Stall::MEMORY_SOME)));
        assert_eq!(names(&cgroups, &rows).last(), Some(&(0, "/n")));
        let rows = tree(&cgroups, order(SortKey::Cgroup));
        assert_eq!(names(&cgroups, &rows)[3..], [(0, "a"), (1, "y"), (1, "x")]);
    }

    #[test]
    fn folded_hides_children_unless_they_are_looked_for() {
        let cgroups = some();
        let folded = HashSet::from([2]);
        let none = Filter::default();
        let rows = tree(&cgroups, order(SortKey::Cgroup, &none, &folded));
        assert_eq!(names(&cgroups, &rows), [(0, "a"), (0, "a-b"), (0, "b")]);
        assert_eq!(
            rows.iter().map(|row| row.branch).collect::<Vec<_>>(),
            [Branch::Folded, Branch::Leaf, Branch::Leaf]
        );
        let filter = Filter::new("x").expect("a text");
        let rows = tree(&cgroups, order(SortKey::Cgroup, &filter, &folded));
        assert_eq!(names(&cgroups, &rows), [(0, "a"), (1, "x")]);
        assert_eq!(
            rows.iter().map(|row| (row.branch, row.is_match)).collect::<Vec<_>>(),
            [(Branch::Open, false), (Branch::Leaf, true)]
        );
        let rows = flat(&cgroups, order(SortKey::Stall(Stall::CPU_SOME), &filter, &folded));
        assert_eq!(names(&cgroups, &rows), [(0, "/a/x")]);
    }
}
