//! Without root and without capabilities.

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::PathBuf,
    process::Command,
};

use aya::programs::loaded_programs;
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
    let report = finished.json();
    assert_eq!(report["ok"], false, "{report}");
    assert_eq!(
        report["missing_capabilities"],
        serde_json::json!(["CAP_BPF", "CAP_PERFMON"]),
        "{report}"
    );
    let problems = report["problems"].to_string();
    assert!(problems.contains("CAP_BPF") && problems.contains("root"), "{report}");
}

/// Yesterday's incident can be looked at by anybody who may read the file.
#[test]
fn a_recording_is_replayed_without_root() {
    let Some(_session) = Session::start("a_recording_is_replayed_without_root") else {
        return;
    };
    let program = Program::new();
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("own folder");
    let path = folder.path().join("recording");
    let name = path.to_str().expect("temporary names are UTF-8");
    let recorded = program::run(&["record", "-o", name, "--interval", "50ms", "--duration", "200ms"]);
    recorded.expect_success();
    for file in psi_files(name) {
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).expect("own file");
    }
    let finished = program.run(&["dump", "--replay", name]);
    assert!(finished.expect_success().stdout.lines().count() > 1, "{finished:?}");
    let line = program.run(&["record", "-o", name]).expect_failure(1).to_owned();
    assert!(line.contains("CAP_BPF"), "{line}");
}

/// Both files of a recording.
fn psi_files(name: &str) -> [String; 2] {
    [name.to_owned(), format!("{name}.2")]
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
