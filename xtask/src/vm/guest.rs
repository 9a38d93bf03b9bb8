//! One guest: its files and its QEMU.

use std::{
    fmt,
    fs::{self, File},
    io::{BufRead as _, BufReader, Write as _},
    mem,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

use super::{kernel::Kernel, report::Report};
use crate::process;

/// A guest that ends no test for so long hangs: each takes it half a minute of a CPU, of which a busy machine gives it a part.
const PATIENCE: Duration = Duration::from_mins(10);
const QEMU: &str = "qemu-system-x86_64";
const DISK_BYTES: u64 = 512 << 20;

/// What a guest's kernel finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) cpus: u32,
    pub(crate) has_psi: bool,
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpus, has_psi } = self;
        write!(f, "{cpus} CPUs, psi={}", u8::from(*has_psi))
    }
}

/// A guest and where its files are.
#[derive(Debug)]
pub(crate) struct Guest {
    /// Of its kernel.
    release: String,
    machine: Machine,
    qemu: PathBuf,
    patience: Duration,
    kernel: PathBuf,
    initramfs: PathBuf,
    disk: PathBuf,
    /// All that it wrote to its console.
    pub(crate) log: PathBuf,
}

impl fmt::Display for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { release, machine, .. } = self;
        write!(f, "{release}, {machine}")
    }
}

impl Guest {
    pub(crate) fn new(folder: &Path, kernel: &Kernel, machine: Machine) -> Self {
        let Machine { cpus, has_psi } = machine;
        let name = format!("{}-{cpus}cpus-psi{}", kernel.release, u8::from(has_psi));
        let file = |kind: &str| folder.join("guests").join(format!("{name}.{kind}"));
        Self {
            release: kernel.release.clone(),
            machine,
            qemu: QEMU.into(),
            patience: PATIENCE,
            kernel: kernel.image.clone(),
            initramfs: file("cpio"),
            disk: file("disk"),
            log: file("log"),
        }
    }

    pub(crate) fn prepare(&self, initramfs: &[u8]) -> Result<()> {
        let Self {
            initramfs: file, disk, ..
        } = self;
        file.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(file, initramfs))
            .with_context(|| format!("cannot write {}", file.display()))?;
        File::create(disk)
            .and_then(|disk| disk.set_len(DISK_BYTES))
            .with_context(|| format!("cannot make {}", disk.display()))
    }

    /// All but the log.
    pub(crate) fn clean_up(&self) {
        // Files that stay are no more than a waste of space.
        let _ = fs::remove_file(&self.initramfs);
        let _ = fs::remove_file(&self.disk);
    }

    /// Boots it and reads its console to the end; `show` is given the lines that the user is to see at once. An error is
    /// one of this machine: what went wrong in the guest is in the report.
    pub(crate) fn run(&self, show: impl Fn(&str)) -> Result<Report> {
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut log = File::create(&self.log).with_context(|| format!("cannot write {}", self.log.display()))?;
        // QEMU's own messages.
        command.stderr(log.try_clone()?);
        let mut qemu = command.spawn().context("cannot start QEMU")?;
        let console = qemu.stdout.take().context("QEMU has no console")?;

        let (sender, lines) = channel();
        thread::spawn(move || {
            let mut console = BufReader::new(console);
            let mut line = Vec::new();
            // An error is an end too.
            while console.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
                // Nobody listens to a guest that was killed.
                let _ = sender.send(mem::take(&mut line));
            }
        });

        let mut report = Report::default();
        let mut since = Instant::now();
        loop {
            match lines.recv_timeout(self.patience.saturating_sub(since.elapsed())) {
                Ok(line) => {
                    log.write_all(&line)?;
                    if let Some(line) = report.line(&String::from_utf8_lossy(&line)) {
                        show(line);
                        since = Instant::now();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    report.end(qemu.wait().context("cannot wait for QEMU")?);
                    return Ok(report);
                }
                Err(RecvTimeoutError::Timeout) => {
                    qemu.kill().and_then(|()| qemu.wait()).context("cannot end QEMU")?;
                    report.hang(self.patience);
                    return Ok(report);
                }
            }
        }
    }

    /// For a shell.
    pub(crate) fn command_line(&self) -> String {
        let command = self.command();
        let words = [command.get_program()].into_iter().chain(command.get_args());
        let quoted = words.map(|word| match word.to_string_lossy() {
            word if word.contains([' ', '\'']) => format!("'{}'", word.replace('\'', r"'\''")),
            word => word.into_owned(),
        });
        quoted.collect::<Vec<_>>().join(" ")
    }

    fn command(&self) -> Command {
        let Self {
            machine,
            qemu,
            kernel,
            initramfs,
            disk,
            ..
        } = self;
        let Machine { cpus, has_psi } = machine;
        // A guest must end even if this process is killed.
        let mut command = Command::new("setpriv");
        command.env("PATH", process::search_path());
        command.args(["--pdeathsig", "KILL"]).arg(qemu);
        // One thread: with more, guests crash while fentry programs attach (QEMU 7.2).
        command.args(["-accel", "tcg,thread=single", "-cpu", "max", "-M", "q35", "-m", "1G"]);
        // The guest's clock counts its instructions, 2 ns each: what else the machine does costs the guest no time, and
        // cannot come between two readings. It goes on while the guest idles.
        command.args(["-icount", "shift=1"]);
        command.args(["-smp", &cpus.to_string()]);
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        command.args(["-serial", "stdio"]);
        command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
        let disk = disk.display().to_string().replace(',', ",,");
        command.args([
            "-drive",
            &format!("file={disk},if=none,id=disk,format=raw,cache=unsafe"),
        ]);
        command.args(["-device", "virtio-blk-pci,drive=disk"]);
        command.arg("-kernel").arg(kernel).arg("-initrd").arg(initramfs);
        let mut words = vec!["console=ttyS0", "quiet", "panic=-1", "oops=panic"];
        // One thread has one TSC, but 6.1 does not believe it: PSI and BPF would then run on different clocks.
        words.push("tsc=reliable");
        // The others: see init.
        words.push("maxcpus=1");
        // These fire when it is the emulator that stands still.
        words.extend(["nowatchdog", "rcupdate.rcu_cpu_stall_suppress=1"]);
        words.push(if *has_psi { "psi=1" } else { "psi=0" });
        command.args(["-append", &words.join(" ")]);
        command
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Runs a guest whose QEMU is this shell script.
    fn run(script: &str) -> Report {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = |name| folder.path().join(name);
        let qemu = file("qemu");
        fs::write(&qemu, format!("#!/bin/sh\n{script}\n")).expect("a script can be written");
        fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).expect("it can be made a program");
        let guest = Guest {
            release: "6.1.0".to_owned(),
            machine: Machine { cpus: 2, has_psi: true },
            qemu,
            patience: Duration::from_secs(1),
            kernel: file("vmlinuz"),
            initramfs: file("cpio"),
            disk: file("disk"),
            log: file("log"),
        };
        let report = guest.run(|_| ()).expect("the script starts");
        let log = fs::read_to_string(&guest.log).expect("a log");
        for line in report.last_lines() {
            assert!(log.contains(line), "expected {line:?} in the log, saw {log:?}");
        }
        report
    }

    #[test]
    fn a_guest_that_comes_to_its_end_has_the_result_that_it_tells() {
        let report = run("echo ok a; echo 'FAIL b: no'; exit 35");
        assert_eq!((report.counts.passed, report.counts.failed), (1, 1));
        assert_eq!(report.complaint, None);
    }

    #[test]
    fn a_guest_that_hangs_has_failed() {
        let report = run("echo ok a; echo waiting for nothing; while sleep 0.2; do echo still waiting; done");
        assert_eq!((report.counts.passed, report.counts.failed), (1, 1));
        let complaint = report.complaint.as_deref().unwrap_or_default();
        assert!(
            complaint.contains("hung"),
            "expected that it says so, saw {complaint:?}"
        );
        assert_eq!(report.last_lines().last(), Some("still waiting"));
    }

    #[test]
    fn a_guest_that_panics_has_failed() {
        let report = run("echo ok a; echo Kernel panic - not syncing: no init; exit 0");
        assert_eq!((report.counts.passed, report.counts.failed), (1, 1));
        let complaint = report.complaint.as_deref().unwrap_or_default();
        assert!(
            complaint.contains("panicked"),
            "expected that it says so, saw {complaint:?}"
        );
        assert_eq!(report.last_lines().last(), Some("Kernel panic - not syncing: no init"));
    }

    #[test]
    fn a_qemu_that_fails_is_a_failed_guest() {
        let report = run("echo no such machine; exit 1");
        assert_eq!((report.counts.passed, report.counts.failed), (0, 1));
        let complaint = report.complaint.as_deref().unwrap_or_default();
        assert!(
            complaint.contains("QEMU"),
            "expected that it says so, saw {complaint:?}"
        );
    }
}
