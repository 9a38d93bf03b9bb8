//! The `psitrace` program under test.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{
        OnceLock,
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{PATIENCE, load, machine};

/// The program: the one that PSITRACE_BIN names, else a fresh build, else the newest one beside this test.
pub fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        if let Some(path) = env::var_os("PSITRACE_BIN") {
            return PathBuf::from(path).canonicalize().expect("PSITRACE_BIN names a file");
        }
        let test = env::current_exe().expect("own path");
        // target/PROFILE/deps/e2e-HASH
        let profile = test.ancestors().nth(2).expect("a build folder");
        match env::var_os("CARGO") {
            Some(cargo) => build(&PathBuf::from(cargo), profile),
            None => built(profile),
        }
    })
}

/// Words that start `psitrace`, with the object that PSITRACE_TEST_OBJECT names.
pub fn words(arguments: &[&str]) -> Vec<OsString> {
    let mut words = vec![path().into()];
    words.extend(arguments.iter().map(OsString::from));
    let attaches = ["check", "dump", "record", "top", "compare", "stats"];
    if let Some(object) = env::var_os("PSITRACE_TEST_OBJECT")
        && arguments.first().is_some_and(|command| attaches.contains(command))
        && !arguments.contains(&"--replay")
    {
        words.extend(["--bpf-object".into(), object]);
    }
    words
}

/// `psitrace` before all others, apart from the loads' CPU, and only as long as the test: psi-load becomes it. On a busy
/// machine it would otherwise wait for its turn behind the loads, and the test for it.
pub fn command(arguments: &[&str]) -> Command {
    let mut words = words(arguments);
    if let Some(load) = load::program() {
        let mut first = vec![load.into(), "--nice".into(), machine::load_nice().to_string().into()];
        if machine::cpus().len() > 1 {
            first.extend(["--not-cpu".into(), machine::load_cpu().to_string().into()]);
        }
        first.extend(["run".into(), "--".into()]);
        words.splice(..0, first);
    }
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    // Whoever runs the tests may have defaults of their own.
    command.env("XDG_CONFIG_HOME", "/no/such/folder");
    command
}

/// Runs `psitrace` to its end, or kills it when it does not come to one.
pub fn run(arguments: &[&str]) -> Finished {
    let mut command = command(arguments);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("psitrace starts");
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a pid is not 0");
    let (ended, end) = channel::<()>();
    thread::spawn(move || {
        if end.recv_timeout(2 * PATIENCE) == Err(RecvTimeoutError::Timeout) {
            // It may have ended at this moment.
            let _ = kill_process(pid, Signal::KILL);
        }
    });
    let output = child.wait_with_output().expect("psitrace can be waited for");
    drop(ended);
    output.into()
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl Finished {
    /// Panics unless it ended with exit code 0 and wrote nothing to standard error.
    #[track_caller]
    pub fn expect_success(&self) -> &Self {
        let Self { code, stderr, .. } = self;
        assert!(
            *code == Some(0) && stderr.is_empty(),
            "expected exit code 0 and no message, saw {code:?} and: {stderr}"
        );
        self
    }

    /// Panics unless it ended with this exit code and wrote exactly one line, to standard error; returns that.
    #[track_caller]
    pub fn expect_failure(&self, expected: i32) -> &str {
        let Self { code, stdout, stderr } = self;
        let is_line = stderr.ends_with('\n') && stderr.lines().count() == 1 && stderr.trim().len() > "psitrace:".len();
        assert!(
            *code == Some(expected) && is_line && stdout.is_empty(),
            "expected exit code {expected} and one line, saw {code:?}, stderr {stderr:?}, stdout {stdout:?}"
        );
        stderr.trim_end()
    }

    /// What it wrote to standard output, one JSON object.
    #[track_caller]
    pub fn json(&self) -> Value {
        let Self { stdout, .. } = self;
        serde_json::from_str(stdout).unwrap_or_else(|error| panic!("expected one JSON object: {error}: {stdout:?}"))
    }
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("all output is UTF-8");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

fn build(cargo: &Path, profile: &Path) -> PathBuf {
    // What cargo sets for a test it runs: build scripts that watch it would make all be built again.
    const SET_BY_CARGO: [&str; 5] = [
        "CARGO_BIN_EXE_",
        "CARGO_CRATE_",
        "CARGO_MANIFEST_",
        "CARGO_PKG_",
        "CARGO_PRIMARY_",
    ];
    let mut command = Command::new(cargo);
    for (name, _) in env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| SET_BY_CARGO.iter().any(|prefix| name.starts_with(prefix)))
        {
            command.env_remove(name);
        }
    }
    let name = profile
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a profile's folder");
    let target = profile.parent().expect("a target folder");
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["build", "--quiet", "--package", "psi-user", "--bin", "psitrace"])
        .args(["--profile", if name == "debug" { "dev" } else { name }])
        .arg("--target-dir")
        .arg(target);
    let status = command.status().expect("cargo starts");
    assert!(status.success(), "psitrace does not build: {status}");
    profile.join("psitrace")
}

fn built(profile: &Path) -> PathBuf {
    let target = profile.parent().expect("a target folder");
    ["release", "debug"]
        .iter()
        .map(|profile| target.join(profile).join("psitrace"))
        .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
        .max()
        .map(|(_, path)| path)
        .expect("PSITRACE_BIN is set, or psitrace is built")
}
