//! Programs that do nothing at the tracer's busiest hooks: what the kernel's own way to a program costs there.

use aya::{Btf, Ebpf, EbpfLoader};

use crate::{
    error::Error,
    load::{OBJECT, attach_tracepoint, chain},
    privilege,
};

/// The hooks; the program at each is `nothing_` and the hook's name.
const HOOKS: [&str; 8] = [
    "sched_switch",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_migrate_task",
    "sched_process_fork",
    "sched_process_free",
    "softirq_entry",
    "softirq_exit",
];

/// The attached programs. Dropping it detaches them.
pub struct Nothing(#[expect(dead_code, reason = "held")] Ebpf);

impl Nothing {
    /// Attaches them.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn attach() -> Result<Self, Error> {
        privilege::check()?;
        let mut ebpf = EbpfLoader::new()
            .allow_unsupported_maps()
            .load(OBJECT)
            .map_err(|error| Error::Object(chain(&error)))?;
        let btf = Btf::from_sys_fs().map_err(|error| Error::Btf(error.to_string()))?;
        for hook in HOOKS {
            attach_tracepoint(&mut ebpf, &format!("nothing_{hook}"), hook, &btf)?;
        }
        Ok(Self(ebpf))
    }
}
