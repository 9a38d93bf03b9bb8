//! Without root and without capabilities.

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::PathBuf,
    process::Command,
};

use aya::programs::loaded_programs;
use serde_json::Value;
use tempfile::TempDir;
use tests::{
    program::{self, Finished},
    session::Session,
};

/// A user that owns nothing, `nobody` mostly.
const NOBODY: u32 = 65534;

#[test]
fn missing_capabilities_are_named_before_anything_is_loaded() {
    let Some(_session) = Session::start("missing_capabilities_are_named_before_anything_is_loaded") else {
        return;
    };
    let program = Program::new();
    for arguments in [&["dump", "--count", "1"][..], &["compare", "--duration", "100ms"]] {
        let finished = program.run(arguments);
        let line = finished.expect_failure(1);
        for word in ["CAP_BPF", "CAP_PERFMON", "root"] {
            assert!(line.contains(word), "{arguments:?}: expected {word}, saw {line}");
        }
    }
    let loaded = loaded_programs()
        .flatten()
        .filter(|program| program.created_by_uid() == Some(NOBODY))
        .count();
    assert_eq!(loaded, 0, "programs that were loaded without root");
}

#[test]
fn check_tells_the_remedy() {
    let Some(_session) = Session::start("check_tells_the_remedy") else {
        return;
    };
    let program = Program::new();
    let finished = program.run(&["check"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.stdout.contains("CAP_BPF") && finished.stdout.contains("root"),
        "{finished:?}"
    );

    let finished = program.run(&["check", "--json"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let report: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert_eq!(report["ok"], false, "{report}");
    assert_eq!(
        report["missing_capabilities"],
        serde_json::json!(["CAP_BPF", "CAP_PERFMON"]),
        "{report}"
    );
    let problems = report["problems"].to_string();
    assert!(problems.contains("CAP_BPF") && problems.contains("root"), "{report}");
}

/// The program where everybody may run it.
struct Program {
    path: PathBuf,
    _folder: TempDir,
}

impl Program {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("own folder");
        let path = folder.path().join("psitrace");
        fs::copy(program::path(), &path).expect("a copy of psitrace");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("own file");
        Self { path, _folder: folder }
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        let mut command = Command::new(&self.path);
        // This gives up the supplementary groups too.
        command.args(arguments).current_dir("/").uid(NOBODY).gid(NOBODY);
        command.output().map(Finished::from).expect("psitrace starts")
    }
}
