//! Memory stalls: the kernel's own enter and leave, or reclaim tracepoints where those cannot be had.

use aya_ebpf::{
    bindings::task_struct,
    helpers::generated::bpf_get_current_task_btf,
    macros::{btf_tracepoint, fentry},
    programs::{BtfTracePointContext, FEntryContext},
};
use psi_common::event;

use crate::{
    kernel::Object,
    memory::{Maps, current_cpu, on_record, running, this_cpu},
    task::{self, Tracked},
};

/// `psi_memstall_enter(flags)`, called by the task that stalls, preemptible.
///
/// Only the outermost pair counts. The kernel keeps the nesting in `*flags`, but not where PSI is off at boot; so
/// the address tells the pair: `flags` is on the caller's stack, the same for enter and leave, and lower for
/// stalls within. A lost leave heals with the next stall of an outer or equal frame.
#[fentry(function = "psi_memstall_enter")]
pub(crate) fn psi_memstall_enter(ctx: FEntryContext) -> i32 {
    let flags: u64 = ctx.arg(0);
    if let Some(this) = current() {
        let outermost = this.memstall();
        if outermost == 0 || flags >= outermost {
            this.set_memstall(flags);
            tell(this);
        }
    }
    0
}

/// `psi_memstall_leave(flags)`.
#[fentry(function = "psi_memstall_leave")]
pub(crate) fn psi_memstall_leave(ctx: FEntryContext) -> i32 {
    let flags: u64 = ctx.arg(0);
    if let Some(this) = current() {
        let outermost = this.memstall();
        if outermost != 0 && flags >= outermost {
            this.set_memstall(0);
            tell(this);
        }
    }
    0
}

#[inline(always)]
fn current() -> Option<Tracked> {
    // SAFETY: the helper has no arguments.
    let current: *const task_struct = unsafe { bpf_get_current_task_btf() };
    let current: Object = current.cast();
    task::find(current, task::pid(current))
}

#[inline(always)]
fn tell(this: Tracked) {
    let cpu = current_cpu();
    if let Some(record) = this_cpu(cpu) {
        event::stall_changed(&Maps, cpu, running(record), on_record(record), this);
    }
}

#[inline(always)]
fn reclaim(active: bool) -> i32 {
    if let Some(this) = current() {
        this.set_in_reclaim(active);
        tell(this);
    }
    0
}

macro_rules! reclaims {
    ($($begin_name:literal $begin:ident, $end_name:literal $end:ident;)*) => {
        $(
            #[btf_tracepoint(function = $begin_name)]
            pub(crate) fn $begin(_ctx: BtfTracePointContext) -> i32 {
                reclaim(true)
            }

            #[btf_tracepoint(function = $end_name)]
            pub(crate) fn $end(_ctx: BtfTracePointContext) -> i32 {
                reclaim(false)
            }
        )*
    };
}

reclaims! {
    "mm_vmscan_direct_reclaim_begin" mm_vmscan_direct_reclaim_begin,
        "mm_vmscan_direct_reclaim_end" mm_vmscan_direct_reclaim_end;
    "mm_vmscan_memcg_reclaim_begin" mm_vmscan_memcg_reclaim_begin,
        "mm_vmscan_memcg_reclaim_end" mm_vmscan_memcg_reclaim_end;
    "mm_vmscan_node_reclaim_begin" mm_vmscan_node_reclaim_begin,
        "mm_vmscan_node_reclaim_end" mm_vmscan_node_reclaim_end;
    "mm_vmscan_kswapd_wake" mm_vmscan_kswapd_wake, "mm_vmscan_kswapd_sleep" mm_vmscan_kswapd_sleep;
    "mm_compaction_begin" mm_compaction_begin, "mm_compaction_end" mm_compaction_end;
    "mm_compaction_kcompactd_wake" mm_compaction_kcompactd_wake,
        "mm_compaction_kcompactd_sleep" mm_compaction_kcompactd_sleep;
}
