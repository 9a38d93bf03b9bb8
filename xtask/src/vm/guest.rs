//! One guest: its files and its QEMU.

use std::{
    fmt,
    fs::{self, File},
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};

use super::{kernel::Kernel, report::Report};
use crate::process;

/// A guest that takes longer hangs: on an idle machine it is a minute or two.
const SECONDS: &str = "900";
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
    machine: Machine,
    kernel: PathBuf,
    initramfs: PathBuf,
    disk: PathBuf,
    /// All that it wrote to its console.
    pub(crate) log: PathBuf,
}

impl Guest {
    pub(crate) fn new(folder: &Path, kernel: &Kernel, machine: Machine) -> Self {
        let Machine { cpus, has_psi } = machine;
        let name = format!("{}-{cpus}cpus-psi{}", kernel.release, u8::from(has_psi));
        let file = |kind: &str| folder.join("guests").join(format!("{name}.{kind}"));
        Self {
            machine,
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

    /// Boots it and reads its console to the end.
    pub(crate) fn run(&self) -> Result<Report> {
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut log = File::create(&self.log).with_context(|| format!("cannot write {}", self.log.display()))?;
        // QEMU's own messages.
        command.stderr(log.try_clone()?);
        let mut qemu = command.spawn().context("cannot start QEMU")?;
        let console = qemu.stdout.take().context("QEMU has no console")?;

        let mut report = Report::default();
        let mut console = BufReader::new(console);
        let mut line = Vec::new();
        while console.read_until(b'\n', &mut line)? > 0 {
            log.write_all(&line)?;
            if let Some(line) = report.line(&String::from_utf8_lossy(&line)) {
                println!("  {line}");
            }
            line.clear();
        }
        let status = qemu.wait().context("cannot wait for QEMU")?;
        if let Some(complaint) = report.end(status) {
            println!("  FAIL guest: {complaint}");
        }
        Ok(report)
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
            kernel,
            initramfs,
            disk,
            ..
        } = self;
        let Machine { cpus, has_psi } = machine;
        // Not in here: a guest that hangs must end even if this process is killed.
        let mut command = Command::new("timeout");
        command.env("PATH", process::search_path());
        command.args(["--foreground", "--signal=KILL", SECONDS, "qemu-system-x86_64"]);
        // One thread: with more, guests crash while fentry programs attach (QEMU 7.2).
        command.args(["-accel", "tcg,thread=single", "-cpu", "max", "-M", "q35", "-m", "1G"]);
        command.args(["-smp", &cpus.to_string()]);
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        command.args(["-serial", "stdio"]);
        command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
        // In Debian's cloud kernels this disk needs no module.
        let disk = disk.display().to_string().replace(',', ",,");
        command.args([
            "-drive",
            &format!("file={disk},if=none,id=disk,format=raw,cache=unsafe"),
        ]);
        command.args(["-device", "nvme,serial=disk,drive=disk"]);
        command.arg("-kernel").arg(kernel).arg("-initrd").arg(initramfs);
        let mut words = vec!["console=ttyS0", "quiet", "panic=-1", "oops=panic"];
        // One thread has one TSC, but 6.1 does not believe it: PSI and BPF would then run on different clocks.
        words.push("tsc=reliable");
        // These fire when it is the emulator that stands still.
        words.extend(["nowatchdog", "rcupdate.rcu_cpu_stall_suppress=1"]);
        words.push(if *has_psi { "psi=1" } else { "psi=0" });
        command.args(["-append", &words.join(" ")]);
        command
    }
}
