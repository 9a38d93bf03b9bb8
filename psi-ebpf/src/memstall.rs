//! Memory stalls: the kernel's own enter and leave, or reclaim tracepoints where those cannot be had.

use core::ptr;

use aya_ebpf::{
    bindings::task_struct,
    helpers::generated::bpf_get_current_task_btf,
    macros::{btf_tracepoint, fentry},
    programs::{BtfTracePointContext, FEntryContext},
};
use psi_common::{
    account::rerun,
    word::{Running, class},
};

use crate::{
    kernel::Object,
    memory::{Maps, current_cpu, running, this_cpu},
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
    let Some(this) = current() else { return 0 };
    // SAFETY: a map value, changed by the task itself only.
    unsafe {
        let memstall = &raw mut (*this.storage).memstall;
        let outermost = ptr::read_volatile(memstall);
        if outermost == 0 || flags >= outermost {
            ptr::write_volatile(memstall, flags);
            rerun_current(this);
        }
    }
    0
}

/// `psi_memstall_leave(flags)`.
#[fentry(function = "psi_memstall_leave")]
pub(crate) fn psi_memstall_leave(ctx: FEntryContext) -> i32 {
    let flags: u64 = ctx.arg(0);
    let Some(this) = current() else { return 0 };
    // SAFETY: as above.
    unsafe {
        let memstall = &raw mut (*this.storage).memstall;
        let outermost = ptr::read_volatile(memstall);
        if outermost != 0 && flags >= outermost {
            ptr::write_volatile(memstall, 0);
            rerun_current(this);
        }
    }
    0
}

#[inline(always)]
fn current() -> Option<Tracked> {
    // SAFETY: the helper has no arguments.
    let current: *const task_struct = unsafe { bpf_get_current_task_btf() };
    task::find(current.cast::<u8>() as Object)
}

/// Tells the CPU's record of the running task's new state. A switch in between has told it already: it looks at the
/// same storage.
#[inline(always)]
fn rerun_current(this: Tracked) {
    let cpu = current_cpu();
    let Some(record) = this_cpu(cpu) else { return };
    // SAFETY: a map value.
    let old = Running(unsafe { ptr::read_volatile(&raw const (*record).running) });
    if old.pid() != task::pid(this.task) || old.class() == 0 {
        return;
    }
    let new = Running::new(class::running(this.stalls_running()), old.slot(), old.pid());
    if new != old {
        rerun(&Maps, cpu, &running(record), old, new);
    }
}

#[inline(always)]
fn reclaim(active: u32) -> i32 {
    if let Some(this) = current() {
        // SAFETY: a map value, changed by the task itself only.
        unsafe { ptr::write_volatile(&raw mut (*this.storage).in_reclaim, active) };
        rerun_current(this);
    }
    0
}

macro_rules! reclaims {
    ($($begin_name:literal $begin:ident, $end_name:literal $end:ident;)*) => {
        $(
            #[btf_tracepoint(function = $begin_name)]
            pub(crate) fn $begin(_ctx: BtfTracePointContext) -> i32 {
                reclaim(1)
            }

            #[btf_tracepoint(function = $end_name)]
            pub(crate) fn $end(_ctx: BtfTracePointContext) -> i32 {
                reclaim(0)
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
