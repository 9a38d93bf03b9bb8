//! Programs that do nothing: what the kernel's way to a program costs, for `psitrace bench`.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};

macro_rules! nothing {
    ($($function:literal $name:ident;)*) => {
        $(
            #[btf_tracepoint(function = $function)]
            pub(crate) fn $name(_ctx: BtfTracePointContext) -> i32 {
                0
            }
        )*
    };
}

nothing! {
    "sched_switch" nothing_sched_switch;
    "sched_wakeup" nothing_sched_wakeup;
    "sched_wakeup_new" nothing_sched_wakeup_new;
    "sched_migrate_task" nothing_sched_migrate_task;
    "sched_process_fork" nothing_sched_process_fork;
    "sched_process_free" nothing_sched_process_free;
    "softirq_entry" nothing_softirq_entry;
    "softirq_exit" nothing_softirq_exit;
}
