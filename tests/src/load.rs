//! Loads: `psi-load` at work, until dropped.

use std::{
    env,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::{cgroup::Cgroup, machine};

/// The helper program, if it lies beside the test or one folder up, where cargo puts it.
pub fn program() -> Option<PathBuf> {
    let test = env::current_exe().expect("own path");
    let folders = test.ancestors().skip(1).take(2);
    folders
        .map(|folder| folder.join("psi-load"))
        .find(|program| program.is_file())
}

/// Whether a program is on PATH.
pub fn is_installed(program: &str) -> bool {
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// How to start a load.
#[derive(Debug)]
#[must_use]
pub struct Load {
    command: Command,
}

impl Load {
    /// With `psi_load`, the helper program.
    pub fn new(psi_load: &str) -> Self {
        let mut command = Command::new(psi_load);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        Self { command }
    }

    /// In a cgroup, which it enters before it works. May be called for several hierarchies.
    pub fn within(mut self, cgroup: &Cgroup) -> Self {
        self.command.arg("--enter").arg(cgroup.dir());
        self
    }

    /// On one CPU only.
    pub fn on_cpu(mut self, cpu: usize) -> Self {
        self.command.args(["--cpu", &cpu.to_string()]);
        self
    }

    /// With this niceness, in a session of its own.
    pub fn nice(mut self, nice: i32) -> Self {
        self.command.args(["--nice", &nice.to_string()]);
        self
    }

    /// On [`machine::load_cpu`], before all others that want it.
    pub fn alone(self) -> Self {
        self.nice(machine::load_nice()).on_cpu(machine::load_cpu())
    }

    /// Behind all others: for loads that take all CPUs, so that the tracer has its turn.
    pub fn behind(self) -> Self {
        self.nice(10)
    }

    /// Starts with these words, `spin` say, and waits until it is at work.
    pub fn start(self, work: &[&str]) -> Working {
        self.try_start(work)
            .expect("psi-load comes to work: its error is above")
    }

    /// As [`Self::start`]; none if the kernel does not let it.
    pub fn try_start(mut self, work: &[&str]) -> Option<Working> {
        self.command.args(work);
        let mut child = self.command.spawn().expect("psi-load starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        let working = Working { child };
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("psi-load can be read");
        (line == "ready\n").then_some(working)
    }

    /// Reads a file over and over.
    pub fn start_on(self, work: &[&str], file: &Path) -> Working {
        let file = file.to_str().expect("temporary names are UTF-8");
        self.start(&[work, &[file]].concat())
    }

    /// Becomes another program, `fio` say, which may need a moment to be at work. What it starts may outlive it, but not
    /// its cgroup.
    pub fn start_tool(mut self, words: &[&str]) -> Working {
        self.command.args(["run", "--"]).args(words).stdout(Stdio::null());
        let child = self.command.spawn().expect("psi-load starts");
        Working { child }
    }

    /// Runs it to its end.
    pub fn run(mut self, work: &[&str]) {
        let status = self.command.args(work).status().expect("psi-load starts");
        assert!(status.success(), "psi-load {work:?}: {status}");
    }
}

/// A load at work. It ends when this is dropped.
#[derive(Debug)]
#[must_use = "it ends when dropped"]
pub struct Working {
    child: Child,
}

impl Working {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        // Its children end with it (PR_SET_PDEATHSIG).
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
