//! Tasks: the walk over all of them, and those that the kernel counts otherwise.

use std::{fs, io, io::Read as _};

use aya::programs::{Iter, ProgramError};

use super::Tracer;
use crate::error::Error;

impl Tracer {
    /// Compares what is recorded of each task with what it is, seeds what is unknown, repairs what is wrong.
    /// A difference counts as drift when two walks in a row see it.
    ///
    /// # Errors
    /// When the kernel refuses the iterator.
    pub fn walk_tasks(&mut self) -> Result<(), Error> {
        let other = |error: &dyn std::fmt::Display| Error::Walk(io::Error::other(error.to_string()));
        let program: &mut Iter = self
            .ebpf
            .program_mut("walk_tasks")
            .ok_or_else(|| other(&"not in the object"))?
            .try_into()
            .map_err(|error: ProgramError| other(&error))?;
        let link = program.attach().map_err(|error| other(&error))?;
        let link = program.take_link(link).map_err(|error| other(&error))?;
        let mut file = link.into_file().map_err(|error| other(&error))?;
        // The program prints nothing: reading to the end runs it on each task.
        let mut nothing = Vec::new();
        file.read_to_end(&mut nothing).map_err(Error::Walk)?;
        Ok(())
    }

    /// The pids of the CPUs' ksoftirqd threads, by their names: `ksoftirqd/3`.
    pub(super) fn find_ksoftirqds(&self) {
        let Ok(processes) = fs::read_dir("/proc") else { return };
        for process in processes.flatten() {
            let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // A process that has ended is normal life. Only kernel threads have an empty command line.
            let Ok(name) = fs::read_to_string(process.path().join("comm")) else {
                continue;
            };
            let Some(cpu) = name
                .trim_end()
                .strip_prefix("ksoftirqd/")
                .and_then(|cpu| cpu.parse().ok())
            else {
                continue;
            };
            if fs::read(process.path().join("cmdline")).is_ok_and(|line| line.is_empty()) {
                self.maps.set_ksoftirqd(cpu, pid);
            }
        }
    }
}
