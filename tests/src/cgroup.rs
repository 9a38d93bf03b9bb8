//! Cgroups of a test, removed with all that runs in them when they are dropped.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process,
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{PATIENCE, eventually, machine};

/// What the names of all begin with; then comes the pid of the process whose they are.
const PREFIX: &str = "psitrace-e2e-";

/// A cgroup of a test.
#[derive(Debug)]
#[must_use = "it is removed when dropped"]
pub struct Cgroup {
    mount: PathBuf,
    path: String,
}

impl Cgroup {
    /// Makes a cgroup right below the root of the unified hierarchy.
    pub fn new(name: &str) -> Self {
        Self::below(&machine::v2_mount().expect("a cgroup v2 mount"), name)
    }

    /// Makes a cgroup right below the root of a mounted hierarchy. Its name is this process's own.
    pub fn below(mount: &Path, name: &str) -> Self {
        Self::make(mount, format!("/{PREFIX}{}-{name}", process::id()))
    }

    /// Makes one with a name as users have it, for pictures. Panics if there is one.
    pub fn named(name: &str) -> Self {
        Self::make(&machine::v2_mount().expect("a cgroup v2 mount"), format!("/{name}"))
    }

    /// Makes a child.
    pub fn child(&self, name: &str) -> Self {
        Self::make(&self.mount, format!("{}/{name}", self.path))
    }

    fn make(mount: &Path, path: String) -> Self {
        let cgroup = Self {
            mount: mount.to_owned(),
            path,
        };
        fs::create_dir(cgroup.dir()).unwrap_or_else(|error| panic!("making {}: {error}", cgroup.dir().display()));
        cgroup
    }

    /// Path from the root of the hierarchy, as psitrace shows it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its directory.
    pub fn dir(&self) -> PathBuf {
        self.mount.join(self.path.trim_start_matches('/'))
    }

    /// Its id, as the kernel and psitrace number it.
    pub fn id(&self) -> u64 {
        fs::metadata(self.dir()).expect("the cgroup exists").ino()
    }

    /// A pattern for `--cgroup`: this cgroup and its children.
    pub fn glob(&self) -> String {
        let name = self.path.trim_start_matches('/');
        format!("/{{{name},{name}/*}}")
    }

    /// Whether there are processes in it or below.
    pub fn is_populated(&self) -> bool {
        let events = fs::read_to_string(self.dir().join("cgroup.events")).expect("the cgroup exists");
        events.lines().any(|line| line == "populated 1")
    }

    /// Writes one of its files: a limit, say.
    pub fn set(&self, file: &str, value: &str) {
        fs::write(self.dir().join(file), value).unwrap_or_else(|error| panic!("setting {file}: {error}"));
    }

    /// Moves a process here, with all its threads.
    pub fn enter(&self, pid: u32) {
        fs::write(self.dir().join("cgroup.procs"), pid.to_string())
            .unwrap_or_else(|error| panic!("moving {pid} to {}: {error}", self.path));
    }

    /// Waits until no task is in it or below: a killed one needs the CPU once more to go.
    pub fn wait_until_empty(&self) {
        let is_empty = || {
            let events = fs::read_to_string(self.dir().join("cgroup.events")).expect("the cgroup exists");
            events.lines().any(|line| line == "populated 0").then_some(())
        };
        eventually("the cgroup's tasks are gone", PATIENCE, is_empty);
    }

    /// Makes it one that takes single threads of processes that are in its parent. Says whether the kernel lets it.
    pub fn take_threads(&self) -> bool {
        fs::write(self.dir().join("cgroup.type"), "threaded").is_ok()
    }

    /// Moves a single thread here, see [`Self::take_threads`].
    pub fn enter_thread(&self, tid: u32) {
        fs::write(self.dir().join("cgroup.threads"), tid.to_string())
            .unwrap_or_else(|error| panic!("moving thread {tid} to {}: {error}", self.path));
    }

    /// Removes it now, and says so by a panic if that cannot be done.
    pub fn remove(self) {
        let dir = self.dir();
        drop(self);
        assert!(!dir.exists(), "{} could not be removed", dir.display());
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Not a panic: a failed test may be on its way out already.
        if let Err(error) = remove(&self.dir()) {
            eprintln!("removing {}: {error}", self.dir().display());
        }
    }
}

/// Removes cgroups of runs that were killed: their process is gone.
pub fn sweep(mount: &Path) {
    for entry in fs::read_dir(mount).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split_once('-')?.0.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // What another run removes meanwhile is removed as well.
            let _ = remove(&entry.path());
        }
    }
}

/// Ends what runs in a cgroup and below it, and removes them all.
fn remove(dir: &Path) -> io::Result<()> {
    let start = Instant::now();
    loop {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                remove(&entry.path())?;
            }
        }
        let processes = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
        for pid in processes.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
        match fs::remove_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if start.elapsed() > PATIENCE => return Err(error),
            // Busy until the last task has left it for good.
            Err(_) => sleep(Duration::from_millis(5)),
            Ok(()) => return Ok(()),
        }
    }
}
