//! Cgroups within each other for the loads to run in.

use std::{
    fs,
    path::{Path, PathBuf},
    thread::sleep,
    time::Duration,
};

use psi_user::hierarchy::{Hierarchy, V2};

use crate::commands::Failure;

/// The outermost is called this and the process's id.
const NAME: &str = "psitrace-bench-";

/// The cgroups, outermost first; removed when dropped.
pub(super) struct Nested(Vec<PathBuf>);

impl Nested {
    /// Makes so many.
    pub(super) fn make(levels: usize) -> Result<Self, Failure> {
        super::take_signals()?;
        let mount = Hierarchy::find(V2)?.mount;
        sweep(&mount);
        let mut this = Self(Vec::new());
        let mut path = mount.join(format!("{NAME}{}", std::process::id()));
        for level in 1..=levels {
            if level > 1 {
                path.push(level.to_string());
            }
            fs::create_dir(&path)
                .map_err(|error| Failure::Cannot(format!("making the cgroup {}: {error}", path.display())))?;
            this.0.push(path.clone());
        }
        Ok(this)
    }

    /// The cgroup that is so many levels below the root.
    pub(super) fn at(&self, depth: usize) -> &Path {
        &self.0[depth - 1]
    }

    /// Turns the kernel's PSI on or off in all of them; says whether it can be (since 6.1, and where PSI is on).
    pub(super) fn switch_psi(&self, on: bool) -> bool {
        self.0
            .iter()
            .all(|path| fs::write(path.join("cgroup.pressure"), if on { "1" } else { "0" }).is_ok())
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        for path in self.0.iter().rev() {
            // Busy for a moment after its last task.
            for _ in 0..50 {
                if fs::remove_dir(path).is_ok() {
                    break;
                }
                sleep(Duration::from_millis(20));
            }
        }
    }
}

/// Removes the cgroups of benchmarks that were killed.
fn sweep(mount: &Path) {
    for entry in fs::read_dir(mount).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(NAME));
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            remove_tree(&entry.path());
        }
    }
}

/// What is still in use, or removed by another, stays as it is.
fn remove_tree(path: &Path) {
    for child in fs::read_dir(path).into_iter().flatten().flatten() {
        if child.path().is_dir() {
            remove_tree(&child.path());
        }
    }
    let _ = fs::remove_dir(path);
}
