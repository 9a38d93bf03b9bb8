//! Programs that do nothing at the tracer's busiest hooks: what the kernel's own way to a program costs there.

use aya::{Ebpf, EbpfLoader};

use crate::{
    error::Error,
    load::{OBJECT, attach_tracepoint, load_object},
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
        let (mut ebpf, btf) = load_object(&mut EbpfLoader::new(), OBJECT)?;
        for hook in HOOKS {
            attach_tracepoint(&mut ebpf, &format!("nothing_{hook}"), hook, &btf)?;
        }
        Ok(Self(ebpf))
    }
}
