//! Cgroups: which slot a task is charged to; cgroups made, moved into and released.

use core::intrinsics::{AtomicOrdering::SeqCst, atomic_xadd, atomic_xchg};
use core::ptr;

use aya_ebpf::{helpers::generated::bpf_probe_read_kernel_str, macros::btf_tracepoint, programs::BtfTracePointContext};
use psi_common::layout::{
    ANCESTORS_SLOT, Counter, EXTRA_IDS, MAX_LEVEL, NEW_PATH, NO_SLOT, NewCgroup, SLOT_OF_ID, Shared, Task, UNTRACKED,
    slot_state,
};

use crate::{
    kernel::{self, Object, member},
    maps::{CGROUP_IDS, CGROUPS, FREE_SLOTS, NEW_CGROUPS, SHARED, WAKEUPS},
    memory::count,
};

/// How many ancestors are tried for one with a slot.
const ANCESTORS_TRIED: u32 = 8;
const ROOT_SLOT: u32 = 0;

/// The slot of a task's cgroup. The task's css_set is compared with the one of the last look-up: two loads.
///
/// The pair (css_set, slot) is not read at once: a benign race with a move of the task, which charges one event to
/// the cgroup that it comes from.
#[inline(always)]
pub(crate) fn slot_of(task: Object, storage: *mut Task) -> u32 {
    // SAFETY: a task; a map value.
    unsafe {
        let css_set: Object = member(task, &kernel::TASK_CGROUPS);
        if ptr::read_volatile(&raw const (*storage).css_set) == css_set as u64 {
            return ptr::read_volatile(&raw const (*storage).slot);
        }
        look_up(css_set, storage)
    }
}

/// # Safety
/// `css_set` must be a css_set that the verifier knows, `storage` a task's storage.
#[inline(always)]
unsafe fn look_up(css_set: Object, storage: *mut Task) -> u32 {
    // SAFETY: the caller's promise.
    unsafe {
        let mut cgroup: Object = member(css_set, &kernel::CSS_SET_CGROUP);
        if kernel::CSS_SET_CGROUP_CSS.load() != kernel::ABSENT {
            cgroup = member(cgroup, &kernel::CSS_SET_CGROUP_CSS);
        }
        let Some(slot) = slot_by_id(id(cgroup)) else {
            // Not remembered: while the tracer is being attached the cgroup may get its slot only after this.
            count(Counter::ChargedToAncestor);
            return ancestors_slot(cgroup);
        };
        ptr::write_volatile(&raw mut (*storage).css_set, 0);
        ptr::write_volatile(&raw mut (*storage).slot, slot);
        ptr::write_volatile(&raw mut (*storage).css_set, css_set as u64);
        slot
    }
}

#[inline(always)]
fn slot_by_id(id: u64) -> Option<u32> {
    // SAFETY: the value is copied at once; values are only ever replaced whole.
    unsafe { CGROUP_IDS.get(&id) }.map(|slot| *slot & SLOT_OF_ID)
}

/// # Safety
/// `cgroup` must be a cgroup that the verifier knows.
#[inline(always)]
unsafe fn id(cgroup: Object) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        let kn: Object = member(cgroup, &kernel::CGROUP_KN);
        member(kn, &kernel::KERNFS_NODE_ID)
    }
}

/// # Safety
/// As for [`id`].
#[inline(always)]
unsafe fn ancestors_slot(cgroup: Object) -> u32 {
    let mut cgroup = cgroup;
    for _ in 0..ANCESTORS_TRIED {
        // SAFETY: the caller's promise; each step's pointer is one to a parent, or null.
        unsafe {
            let css: Object = member(cgroup, &kernel::CGROUP_SELF_PARENT);
            if css.is_null() {
                return ROOT_SLOT;
            }
            cgroup = member(css, &kernel::CSS_CGROUP);
            if cgroup.is_null() {
                return ROOT_SLOT;
            }
            if let Some(slot) = slot_by_id(id(cgroup)) {
                return slot;
            }
        }
    }
    ROOT_SLOT
}

/// # Safety
/// As for [`id`].
#[inline(always)]
unsafe fn is_traced(cgroup: Object) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let root: Object = member(cgroup, &kernel::CGROUP_ROOT);
        member::<u32>(root, &kernel::CGROUP_ROOT_HIERARCHY_ID) == kernel::HIERARCHY_ID.load()
    }
}

#[inline(always)]
fn shared() -> Option<*mut Shared> {
    SHARED.get_ptr_mut(0)
}

/// `cgroup_mkdir(cgrp, path)`: under cgroup_mutex, so one at a time.
#[btf_tracepoint(function = "cgroup_mkdir")]
pub(crate) fn cgroup_mkdir(ctx: BtfTracePointContext) -> i32 {
    let cgroup: Object = ctx.arg(0);
    let Some(shared) = shared() else { return 0 };
    // SAFETY: a cgroup that the verifier knows; map values.
    unsafe {
        if !is_traced(cgroup) {
            return 0;
        }
        let id = id(cgroup);
        let level: u32 = member(cgroup, &kernel::CGROUP_LEVEL);
        let above = ancestors_slot(cgroup);
        if kernel::UNTRACKED_IDS.load() != 0 {
            tell_of_new(shared, id, level, above, ctx.arg(1));
            return 0;
        }
        let slot = if level <= MAX_LEVEL {
            FREE_SLOTS.pop().ok().flatten()
        } else {
            None
        };
        // Without an id there the cgroup is found through its ancestors; but its release finds nothing then, so nothing may
        // be taken or counted for it.
        match slot {
            Some(slot) => {
                let Some(entry) = CGROUPS.get_ptr_mut(slot) else {
                    return 0;
                };
                (*entry).id = id;
                (*entry).parent = if kernel::ONLY_LEAF.load() == 0 { above } else { NO_SLOT };
                (*entry).above = above;
                (*entry).level = level;
                if CGROUP_IDS.insert(&id, &slot, 0).is_err() {
                    let _ = FREE_SLOTS.push(&slot, 0);
                    return 0;
                }
                ptr::write_volatile(&raw mut (*entry).state, slot_state::LIVE);
            }
            None => {
                if ptr::read_volatile(&raw const (*shared).without_slot) >= EXTRA_IDS.into() {
                    return 0;
                }
                if CGROUP_IDS.insert(&id, &(above | ANCESTORS_SLOT), 0).is_err() {
                    return 0;
                }
                atomic_xadd::<u64, u64, { SeqCst }>(&raw mut (*shared).without_slot, 1);
            }
        }
        atomic_xadd::<u64, u64, { SeqCst }>(&raw mut (*shared).cgroup_changes, 1);
    }
    0
}

/// Where only some cgroups are tracked: a pattern is nothing for a program, so userspace decides.
///
/// # Safety
/// `path` must be the tracepoint's.
#[inline(always)]
unsafe fn tell_of_new(shared: *mut Shared, id: u64, level: u32, slot: u32, path: *const u8) {
    // SAFETY: map values; the helper checks the address of the path.
    unsafe {
        let has_id = ptr::read_volatile(&raw const (*shared).untracked) < kernel::UNTRACKED_IDS.load().into()
            && CGROUP_IDS.insert(&id, &(slot | ANCESTORS_SLOT | UNTRACKED), 0).is_ok();
        if has_id {
            atomic_xadd::<u64, u64, { SeqCst }>(&raw mut (*shared).untracked, 1);
        }
        let Some(mut entry) = NEW_CGROUPS.reserve::<NewCgroup>(0) else {
            wake(&raw mut (*shared).rescan_wanted);
            return;
        };
        let new = entry.as_mut_ptr();
        (*new).id = id;
        (*new).level = level;
        (*new).slot = slot;
        (*new).has_id = has_id.into();
        let into = (&raw mut (*new).path).cast();
        (*new).length = bpf_probe_read_kernel_str(into, NEW_PATH as u32, path.cast()) as i32;
        entry.submit(0);
    }
}

/// `cgroup_release(cgrp, path)`: the last reference is gone, so no task can be charged to it any more. At
/// `cgroup_rmdir` one still can: a dead task's last switch may come later.
#[btf_tracepoint(function = "cgroup_release")]
pub(crate) fn cgroup_release(ctx: BtfTracePointContext) -> i32 {
    let cgroup: Object = ctx.arg(0);
    let Some(shared) = shared() else { return 0 };
    // SAFETY: a cgroup that the verifier knows; map values.
    unsafe {
        if !is_traced(cgroup) {
            return 0;
        }
        let id = id(cgroup);
        let Some(value) = CGROUP_IDS.get(&id).copied() else {
            return 0;
        };
        let _ = CGROUP_IDS.remove(&id);
        if value & UNTRACKED != 0 {
            atomic_xadd::<u64, u64, { SeqCst }>(&raw mut (*shared).untracked, u64::MAX);
            return 0;
        }
        if value & ANCESTORS_SLOT != 0 {
            atomic_xadd::<u64, u64, { SeqCst }>(&raw mut (*shared).without_slot, u64::MAX);
            return 0;
        }
        if let Some(entry) = CGROUPS.get_ptr_mut(value) {
            ptr::write_volatile(&raw mut (*entry).state, slot_state::RELEASED);
        }
        atomic_xadd::<u64, u64, { SeqCst }>(&raw mut (*shared).cgroup_changes, 1);
        wake(&raw mut (*shared).recycle_wanted);
    }
    0
}

/// `cgroup_rmdir(cgrp, path)`: no longer shown, still charged.
#[btf_tracepoint(function = "cgroup_rmdir")]
pub(crate) fn cgroup_rmdir(ctx: BtfTracePointContext) -> i32 {
    let cgroup: Object = ctx.arg(0);
    let Some(shared) = shared() else { return 0 };
    // SAFETY: a cgroup that the verifier knows; map values.
    unsafe {
        if !is_traced(cgroup) {
            return 0;
        }
        let Some(value) = CGROUP_IDS.get(&id(cgroup)).copied() else {
            return 0;
        };
        if value & ANCESTORS_SLOT == 0
            && let Some(entry) = CGROUPS.get_ptr_mut(value)
        {
            ptr::write_volatile(&raw mut (*entry).state, slot_state::REMOVED);
            atomic_xadd::<u64, u64, { SeqCst }>(&raw mut (*shared).cgroup_changes, 1);
        }
    }
    0
}

/// Wakes userspace unless it has been woken for the same already.
///
/// # Safety
/// `wanted` must point into a map value.
#[inline(always)]
unsafe fn wake(wanted: *mut u64) {
    // SAFETY: the caller's promise.
    if unsafe { atomic_xchg::<u64, { SeqCst }>(wanted, 1) } == 0 {
        // A full ring means that userspace has been woken already.
        let _ = WAKEUPS.output::<u64>(&1u64, 0);
    }
}

/// `cgroup_attach_task(dst, path, task, threadgroup)`: after the move, for the leader only. Running tasks move with
/// their next switch; for sleeping ones and the other threads userspace is woken and walks over the tasks.
#[btf_tracepoint(function = "cgroup_attach_task")]
pub(crate) fn cgroup_attach_task(ctx: BtfTracePointContext) -> i32 {
    let cgroup: Object = ctx.arg(0);
    let Some(shared) = shared() else { return 0 };
    // SAFETY: a cgroup that the verifier knows; a map value.
    unsafe {
        if is_traced(cgroup) {
            wake(&raw mut (*shared).resync_wanted);
        }
    }
    0
}
