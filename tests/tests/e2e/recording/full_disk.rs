//! A disk that is full, and has room again.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::Duration,
};

use rustix::process::Signal;
use tempfile::TempDir;
use tests::{PATIENCE, eventually, program::run, recording::frames, running::Dump, session::Session};

#[test]
fn a_full_disk_is_outlived() {
    let Some(session) = Session::start("a_full_disk_is_outlived") else {
        return;
    };
    let Some(disk) = SmallDisk::mount() else {
        return session.skip("no tmpfs can be mounted");
    };
    let path = disk.folder().join("recording");
    let name = path.to_str().expect("temporary names are UTF-8").to_owned();
    let recorder = Dump::start_command(&["record", "--output", &name, "--interval", "20ms"]);
    // It takes its files' room first.
    eventually("frames", PATIENCE, || {
        (path.exists() && frames(&path).len() > 3).then_some(())
    });
    // What is left of a page takes a few frames.
    let stuck = || {
        eventually("no more frames", PATIENCE, || {
            let before = frames(&path).len();
            sleep(Duration::from_millis(500));
            (frames(&path).len() == before).then_some(before)
        })
    };
    let filler = disk.fill();
    let before = stuck();
    fs::remove_file(filler).expect("the filler can be removed");
    eventually("more frames", PATIENCE, || {
        (frames(&path).len() > before + 3).then_some(())
    });
    let filler = disk.fill();
    stuck();
    recorder.signal(Signal::TERM);
    let finished = recorder.wait();
    assert_eq!(
        finished.code,
        Some(2),
        "the last snapshots are missing: {}",
        finished.stderr
    );
    let lines: Vec<&str> = finished.stderr.lines().collect();
    assert_eq!(lines.len(), 4, "full, again room, full, the end: {lines:?}");
    assert!(
        lines[0].contains("No space left") && lines[0].contains(&name),
        "{lines:?}"
    );
    assert!(lines[1].contains("there is room again"), "{lines:?}");
    assert!(lines[3].contains("full"), "{lines:?}");
    fs::remove_file(filler).expect("the filler can be removed");
    // Whole frames only.
    let finished = run(&["dump", "--replay", &name, "--fields", "time_ns"]);
    assert_eq!(finished.expect_success().stdout.lines().count(), frames(&path).len());
}

/// A tmpfs with little room.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(folder.path())
            .status()
            .expect("mount runs");
        status.success().then_some(Self(folder))
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Takes all the room that is left.
    fn fill(&self) -> PathBuf {
        let path = self.folder().join("filler");
        let _ = fs::write(&path, vec![1; 2 << 20]);
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.folder()).status();
    }
}
