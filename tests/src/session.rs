//! One test at a time, and its skips.

use std::{
    env,
    fs::File,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::fs::{FlockOperation, flock};

use crate::{cgroup, machine};

static ONE_TEST: Mutex<()> = Mutex::new(());

/// The right to run, for one test. The tests load CPUs and measure it: two at once would measure each other.
#[derive(Debug)]
pub struct Session {
    name: &'static str,
    _one_test: MutexGuard<'static, ()>,
    /// Other runs of the tests on this machine, too. Ends with the process whatever becomes of it.
    _one_run: File,
}

impl Session {
    /// Waits for the other tests; none when the machine cannot run any, which is reported as a skip of `name`.
    pub fn start(name: &'static str) -> Option<Self> {
        let one_test = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
        if !rustix::process::geteuid().is_root() {
            skip(name, "loading BPF programs needs root");
            return None;
        }
        let Some(mount) = machine::v2_mount() else {
            skip(name, "no cgroup v2 hierarchy is mounted");
            return None;
        };
        // A directory that is there anyway can be locked as well as a file.
        let one_run = File::open(&mount).expect("the cgroup mount opens");
        if flock(&one_run, FlockOperation::NonBlockingLockExclusive).is_err() {
            println!("{name} waits for other tests on this machine");
            flock(&one_run, FlockOperation::LockExclusive).expect("the cgroup mount can be locked");
        }
        cgroup::sweep(&mount);
        Some(Self {
            name,
            _one_test: one_test,
            _one_run: one_run,
        })
    }

    /// The test's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Reports that this test cannot run here; the caller returns. With CI=true nothing may be left out.
    pub fn skip(&self, reason: &str) {
        skip(self.name, reason);
    }
}

fn skip(name: &str, reason: &str) {
    assert!(
        !env::var("CI").is_ok_and(|value| value == "true"),
        "CI=true, but {name} cannot run: {reason}"
    );
    // On a line of its own: libtest has begun one.
    eprintln!("\nSKIP {name}: {reason}");
}
