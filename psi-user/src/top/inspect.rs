//! What the kernel tells of one cgroup: its tasks, and its own pressure figures.

use std::{fs, path::Path};

use crate::{
    fields::Resource,
    pressure_file::{self, Lines},
};

/// Tasks that are looked at each time, at most: each costs two small files.
const MOST_TASKS: usize = 500;

/// One cgroup, as the kernel tells of it.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// The tasks of the cgroup itself, not of those below it.
    pub tasks: Tasks,
    /// The kernel's own figures, by [`Resource::ALL`]; absent where it has none.
    pub kernel: [Option<Lines>; Resource::ALL.len()],
}

/// Tasks of a cgroup.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    /// How many there are.
    pub count: usize,
    /// Those that were looked at and have not ended meanwhile.
    pub seen: Vec<Task>,
}

/// A task: a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its id (the kernel's pid, which people call tid).
    pub pid: u32,
    /// As ps(1) shows it: R, S, D, T, Z, I, ...
    pub state: char,
    /// Its name; bytes that are not UTF-8 are U+FFFD.
    pub name: String,
    /// Time that it has waited for a CPU since it began, ns; absent where the kernel does not count it.
    pub waited_ns: Option<u64>,
}

/// Reads what there is now. What vanishes meanwhile is left out.
pub fn inspect(directory: &Path, is_root: bool) -> Inspection {
    Inspection {
        tasks: tasks(directory),
        // A file that cannot be read is as good as none: ENODEV, the cgroup has just gone.
        kernel: Resource::ALL.map(|resource| {
            pressure_file::read_lines(&pressure_file::path(directory, is_root, resource))
                .ok()
                .flatten()
        }),
    }
}

fn tasks(directory: &Path) -> Tasks {
    // v2, v1, and threads of v1 have their own file each.
    let ids = ["cgroup.threads", "tasks", "cgroup.procs"]
        .into_iter()
        .find_map(|file| fs::read_to_string(directory.join(file)).ok())
        .unwrap_or_default();
    let ids: Vec<u32> = ids.lines().filter_map(|line| line.parse().ok()).collect();
    Tasks {
        count: ids.len(),
        seen: ids.into_iter().take(MOST_TASKS).filter_map(task).collect(),
    }
}

fn task(pid: u32) -> Option<Task> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let (name, state) = name_and_state(&String::from_utf8_lossy(&stat))?;
    // proc(5): time on the CPU, time waiting for it, times on it.
    let schedstat = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok();
    Some(Task {
        pid,
        state,
        name,
        waited_ns: schedstat.and_then(|text| text.split_whitespace().nth(1)?.parse().ok()),
    })
}

/// From `12 (name) S ...`; the name may have brackets and blanks.
fn name_and_state(stat: &str) -> Option<(String, char)> {
    let (before, after) = stat.rsplit_once(") ")?;
    let (_, name) = before.split_once(" (")?;
    Some((name.to_owned(), after.chars().next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_brackets() {
        let parsed = name_and_state("12 (a) (b) c) D 1 2 3");
        assert_eq!(parsed, Some(("a) (b) c".to_owned(), 'D')));
        assert_eq!(name_and_state(""), None);
        assert_eq!(name_and_state("12 (a) "), None);
    }

    #[test]
    fn tasks_that_ended_are_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = std::process::id();
        // No pid is as high as the second.
        fs::write(folder.path().join("cgroup.threads"), format!("{own}\n4294967294\n")).expect("written");
        let tasks = tasks(folder.path());
        assert_eq!(tasks.count, 2);
        assert_eq!(tasks.seen.iter().map(|task| task.pid).collect::<Vec<_>>(), [own]);
        let nothing = inspect(Path::new("/nonexistent"), false);
        assert_eq!(nothing.tasks.count, 0);
        assert_eq!(nothing.kernel, [None; 4]);
    }
}
