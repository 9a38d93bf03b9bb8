//! How long the kernel's own rstat locks are held and waited for: for `psitrace rstat` alone.
//!
//! `cgroup_rstat_*`(cgroup, cpu, contended), the last telling whether the lock was taken at the first try. Since 6.9 there is
//! the lock of the whole flush (cpu -1, or the CPU at which the flush let go of it); up to 6.14 also the CPUs' locks, for the flush and, as
//! "fastpath", for updaters.

use core::ptr;

use aya_ebpf::{
    EbpfContext as _,
    bindings::BPF_F_MMAPABLE,
    helpers::generated::bpf_ktime_get_ns,
    macros::{btf_tracepoint, map},
    maps::Array,
    programs::BtfTracePointContext,
};
use psi_common::{
    hold::bin,
    layout::{Rstat, RstatLock, rstat_lock},
};

use crate::memory::current_cpu;

/// Index `cpu`.
#[map]
pub(crate) static RSTAT: Array<Rstat> = Array::with_max_entries(1, BPF_F_MMAPABLE);

#[inline(always)]
fn this_lock(lock: usize) -> Option<*mut RstatLock> {
    let this = RSTAT.get_ptr_mut(current_cpu())?;
    // SAFETY: within a map value.
    Some(unsafe { &raw mut (*this).locks[lock] })
}

#[inline(always)]
fn now() -> u64 {
    // SAFETY: the helper has no arguments.
    unsafe { bpf_ktime_get_ns() }
}

/// A try failed: the task begins to wait.
#[inline(always)]
fn contended(ctx: &BtfTracePointContext, lock: usize) -> i32 {
    if let Some(this) = this_lock(lock) {
        // SAFETY: a map value that this CPU alone changes.
        unsafe {
            ptr::write_volatile(&raw mut (*this).wait_pid, ctx.pid());
            ptr::write_volatile(&raw mut (*this).waits_since, now());
        }
    }
    0
}

/// The lock is the task's. Interrupts are off until it is given back.
#[inline(always)]
fn locked(ctx: &BtfTracePointContext, lock: usize) -> i32 {
    let waited: bool = ctx.arg::<u32>(2) as u8 != 0;
    if let Some(this) = this_lock(lock) {
        let now = now();
        // SAFETY: as above.
        unsafe {
            let since = ptr::read_volatile(&raw const (*this).waits_since);
            let pid = ptr::read_volatile(&raw const (*this).wait_pid);
            if waited {
                if since != 0 && pid == ctx.pid() {
                    let ns = now.wrapping_sub(since);
                    count(&raw mut (*this).waits, ns);
                    longest(&raw mut (*this).longest_wait, ns);
                } else {
                    // It began on another CPU.
                    (*this).lost_waits += 1;
                }
                ptr::write_volatile(&raw mut (*this).waits_since, 0);
            }
            ptr::write_volatile(&raw mut (*this).hold_pid, ctx.pid());
            ptr::write_volatile(&raw mut (*this).held_since, now);
        }
    }
    0
}

/// The lock is about to be given back.
#[inline(always)]
fn unlock(ctx: &BtfTracePointContext, lock: usize) -> i32 {
    if let Some(this) = this_lock(lock) {
        // SAFETY: as above.
        unsafe {
            let since = ptr::read_volatile(&raw const (*this).held_since);
            if since != 0 && ptr::read_volatile(&raw const (*this).hold_pid) == ctx.pid() {
                let ns = now().wrapping_sub(since);
                count(&raw mut (*this).holds, ns);
                longest(&raw mut (*this).longest_hold, ns);
            }
            ptr::write_volatile(&raw mut (*this).held_since, 0);
        }
    }
    0
}

/// # Safety
/// `counts` is in a map value that this CPU alone changes.
#[inline(always)]
unsafe fn count(counts: *mut [u64; 16], ns: u64) {
    // Below 16 by construction, which the mask tells the verifier.
    let bin = bin(ns) & 15;
    // SAFETY: within the array; the caller's promise.
    unsafe { *counts.cast::<u64>().add(bin) += 1 };
}

/// # Safety
/// As for [`count`].
#[inline(always)]
unsafe fn longest(longest: *mut u64, ns: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        if ns > *longest {
            *longest = ns;
        }
    }
}

macro_rules! hooks {
    ($($function:literal $name:ident => $does:ident($lock:expr);)*) => {
        $(
            #[btf_tracepoint(function = $function)]
            pub(crate) fn $name(ctx: BtfTracePointContext) -> i32 {
                $does(&ctx, $lock)
            }
        )*
    };
}

hooks! {
    "cgroup_rstat_lock_contended" cgroup_rstat_lock_contended => contended(rstat_lock::FLUSH);
    "cgroup_rstat_locked" cgroup_rstat_locked => locked(rstat_lock::FLUSH);
    "cgroup_rstat_unlock" cgroup_rstat_unlock => unlock(rstat_lock::FLUSH);
    "cgroup_rstat_cpu_lock_contended" cgroup_rstat_cpu_lock_contended => contended(rstat_lock::CPU);
    "cgroup_rstat_cpu_locked" cgroup_rstat_cpu_locked => locked(rstat_lock::CPU);
    "cgroup_rstat_cpu_unlock" cgroup_rstat_cpu_unlock => unlock(rstat_lock::CPU);
    "cgroup_rstat_cpu_lock_contended_fastpath" cgroup_rstat_cpu_lock_contended_fastpath => contended(rstat_lock::UPDATER);
    "cgroup_rstat_cpu_locked_fastpath" cgroup_rstat_cpu_locked_fastpath => locked(rstat_lock::UPDATER);
    "cgroup_rstat_cpu_unlock_fastpath" cgroup_rstat_cpu_unlock_fastpath => unlock(rstat_lock::UPDATER);
}
