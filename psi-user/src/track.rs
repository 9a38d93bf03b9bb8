//! Which cgroups are tracked: all, or those that patterns name and their ancestors.

use std::collections::HashSet;

use globset::GlobMatcher;

use crate::hierarchy::Directory;

/// Which cgroups get a slot. The others are charged to their nearest ancestor with one.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    globs: Vec<GlobMatcher>,
}

impl Filter {
    /// All cgroups whose path matches one of `globs`, and their ancestors; simply all where there are no globs.
    pub const fn new(globs: Vec<GlobMatcher>) -> Self {
        Self { globs }
    }

    /// Whether it leaves any out.
    pub const fn is_on(&self) -> bool {
        !self.globs.is_empty()
    }

    /// Whether a cgroup is tracked for its own sake.
    pub fn names(&self, path: &str) -> bool {
        self.globs.is_empty() || self.globs.iter().any(|glob| glob.is_match(path))
    }

    /// Ids of those among `directories` that are tracked. Parents must come before their children.
    pub(crate) fn tracked(&self, directories: &[Directory]) -> HashSet<u64> {
        let mut tracked = HashSet::new();
        for directory in directories.iter().rev() {
            let is_root = directory.parent.is_none();
            if is_root || tracked.contains(&directory.id) || self.names(&directory.path) {
                tracked.insert(directory.id);
                tracked.extend(directory.parent);
            }
        }
        tracked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(globs: &[&str]) -> Filter {
        let matcher = |glob: &&str| {
            let glob = globset::GlobBuilder::new(glob).literal_separator(true).build();
            glob.expect("a glob").compile_matcher()
        };
        Filter::new(globs.iter().map(matcher).collect())
    }

    /// The root is 1.
    fn tree() -> Vec<Directory> {
        let paths = [
            ("/", None),
            ("/a", Some(1)),
            ("/b", Some(1)),
            ("/a/x", Some(2)),
            ("/a/x/y", Some(4)),
        ];
        let directory = |(id, (path, parent)): (u64, (&str, Option<u64>))| Directory {
            id,
            parent,
            level: 0,
            path: path.to_owned(),
        };
        (1..).zip(paths).map(directory).collect()
    }

    #[test]
    fn what_is_named_is_tracked_with_its_ancestors() {
        let ids = |globs: &[&str]| {
            let mut ids: Vec<u64> = filter(globs).tracked(&tree()).into_iter().collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(ids(&["/a/x/y"]), [1, 2, 4, 5]);
        assert_eq!(ids(&["/b"]), [1, 3]);
        assert_eq!(ids(&["/b", "/*/x"]), [1, 2, 3, 4]);
        assert_eq!(ids(&["/no-such"]), [1]);
        assert_eq!(ids(&[]), [1, 2, 3, 4, 5]);
    }
}
