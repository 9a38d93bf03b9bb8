//! Cgroup hierarchies: where they are mounted, which one is traced.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::error::Error;

/// The name of the unified hierarchy.
pub const V2: &str = "v2";

/// A mounted cgroup hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// [`V2`], or a v1 controller's name.
    pub name: String,
    /// Where its root is mounted.
    pub mount: PathBuf,
    /// The kernel's number of it, 0 for v2.
    pub id: u32,
}

/// A directory of a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// The cgroup's id: its inode number.
    pub id: u64,
    /// Id of the parent; none for the root.
    pub parent: Option<u64>,
    /// Depth below the root.
    pub level: u32,
    /// Path from the root, `/` for the root itself.
    pub path: String,
}

impl Hierarchy {
    /// All hierarchies that a controller name, or [`V2`], can name; v2 first.
    ///
    /// # Errors
    /// When /proc cannot be read.
    pub fn mounted() -> Result<Vec<Self>, Error> {
        let read = |path: &str| fs::read_to_string(path).map_err(Error::file(path));
        Ok(parse(&read("/proc/self/mountinfo")?, &read("/proc/self/cgroup")?))
    }

    /// The hierarchy called `name`.
    ///
    /// # Errors
    /// When it is not mounted, or /proc cannot be read.
    pub fn find(name: &str) -> Result<Self, Error> {
        let all = Self::mounted()?;
        all.iter()
            .find(|hierarchy| hierarchy.name == name)
            .cloned()
            .ok_or_else(|| Error::Hierarchy {
                name: name.to_owned(),
                mounted: if all.is_empty() {
                    "none".to_owned()
                } else {
                    all.iter().map(|h| h.name.as_str()).collect::<Vec<_>>().join(", ")
                },
            })
    }

    /// Whether it is the unified hierarchy.
    pub fn is_v2(&self) -> bool {
        self.name == V2
    }

    /// A cgroup's directory.
    pub fn directory(&self, path: &str) -> PathBuf {
        self.mount.join(path.trim_start_matches('/'))
    }

    /// All its cgroups, parents before children. Those that vanish meanwhile are left out.
    ///
    /// # Errors
    /// When the root cannot be read.
    pub fn walk(&self) -> Result<Vec<Directory>, Error> {
        let root = fs::metadata(&self.mount).map_err(Error::file(&self.mount))?;
        let mut found = vec![Directory {
            id: root.ino(),
            parent: None,
            level: 0,
            path: "/".to_owned(),
        }];
        let mut next = 0;
        while next < found.len() {
            let parent = found[next].clone();
            found.extend(self.children(&parent.path).map(|(name, id)| Directory {
                id,
                parent: Some(parent.id),
                level: parent.level + 1,
                path: join(&parent.path, &name),
            }));
            next += 1;
        }
        Ok(found)
    }

    /// Names and ids of the cgroups below `path`; none when it has vanished.
    pub fn children(&self, path: &str) -> impl Iterator<Item = (String, u64)> + use<> {
        use std::os::unix::fs::DirEntryExt as _;
        fs::read_dir(self.directory(path))
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            // Not all names are UTF-8: what is not is shown with replacement characters.
            .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.ino()))
    }
}

/// A child's path.
pub fn join(parent: &str, name: &str) -> String {
    format!("{}/{name}", parent.trim_end_matches('/'))
}

fn parse(mountinfo: &str, own_cgroups: &str) -> Vec<Hierarchy> {
    let id_of = |controller: &str| {
        own_cgroups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let id = parts.next()?.parse().ok()?;
            parts.next()?.split(',').any(|name| name == controller).then_some(id)
        })
    };
    let mut found: Vec<Hierarchy> = Vec::new();
    let mut add = |hierarchy: Hierarchy| {
        if Path::new(&hierarchy.mount).is_absolute() && !found.iter().any(|h| h.name == hierarchy.name) {
            found.push(hierarchy);
        }
    };
    for line in mountinfo.lines() {
        let Some((mount, filesystem)) = line.split_once(" - ") else {
            continue;
        };
        let mount: Vec<&str> = mount.split(' ').collect();
        let filesystem: Vec<&str> = filesystem.split(' ').collect();
        // Only mounts of the root: of a bind mount of a subtree the rest could not be named.
        let (Some(&"/"), Some(point), Some(&kind)) = (mount.get(3), mount.get(4), filesystem.first()) else {
            continue;
        };
        let point = PathBuf::from(unescape(point));
        match kind {
            "cgroup2" => add(Hierarchy {
                name: V2.to_owned(),
                mount: point,
                id: 0,
            }),
            "cgroup" => {
                for option in filesystem.get(2).unwrap_or(&"").split(',') {
                    if let Some(id) = id_of(option).filter(|_| !option.starts_with("name=")) {
                        add(Hierarchy {
                            name: option.to_owned(),
                            mount: point.clone(),
                            id,
                        });
                    }
                }
            }
            _ => {}
        }
    }
    found.sort_by_key(|hierarchy| !hierarchy.is_v2());
    found
}

/// mountinfo writes space, tab, newline and backslash as three octal digits.
fn unescape(field: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(field.to_owned(), |field, (code, character)| {
            field.replace(code, character)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_v2_anywhere_and_v1_controllers_by_name() {
        let mountinfo = "\
            30 24 0:26 / /sys/fs/cgroup ro shared:9 - tmpfs tmpfs ro\n\
            31 30 0:27 / /sys/fs/cgroup/my\\040cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
            32 30 0:28 /sub /mnt/bind rw - cgroup2 cgroup2 rw\n\
            33 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";
        let own = "5:name=systemd:/x\n4:cpu,cpuacct:/y\n0::/z\n";
        let found = parse(mountinfo, own);
        let names: Vec<_> = found
            .iter()
            .map(|h| (h.name.as_str(), h.mount.to_str(), h.id))
            .collect();
        assert_eq!(
            names,
            [
                ("v2", Some("/sys/fs/cgroup/unified"), 0),
                ("cpu", Some("/sys/fs/cgroup/my cpu"), 4),
                ("cpuacct", Some("/sys/fs/cgroup/my cpu"), 4),
            ]
        );
    }

    #[test]
    fn paths_join_without_doubled_slashes() {
        assert_eq!(join("/", "a"), "/a");
        assert_eq!(join("/a", "b"), "/a/b");
    }
}
