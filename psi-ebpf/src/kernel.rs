//! Members of kernel structures.
//!
//! There is no CO-RE from Rust: userspace finds each member's offset in the running kernel's BTF and sets it here
//! before load. The verifier knows these values, so each access is one direct load, and what depends on a member
//! that the kernel lacks is removed as dead code.

use core::ptr;

use aya_ebpf::Global;

/// Offset of a member that this kernel does not have.
pub(crate) const ABSENT: u32 = u32::MAX;

macro_rules! globals {
    ($($(#[$doc:meta])* $name:ident: $ty:ty = $value:expr;)*) => {
        $($(#[$doc])* #[unsafe(no_mangle)] pub(crate) static $name: Global<$ty> = Global::new($value);)*
    };
}

globals! {
    TASK_PID: u32 = 0;
    TASK_CPU: u32 = 0;
    TASK_ON_CPU: u32 = 0;
    TASK_ON_RQ: u32 = 0;
    /// `se.sched_delayed`, since 6.12.
    TASK_SCHED_DELAYED: u32 = ABSENT;
    /// `sched_info.last_queued`: only with CONFIG_SCHED_INFO, and only where sched_clock is the same on all CPUs.
    TASK_LAST_QUEUED: u32 = ABSENT;
    TASK_CGROUPS: u32 = 0;
    /// Byte and bit of a bitfield, here and below.
    TASK_IN_IOWAIT: u32 = 0;
    TASK_IN_IOWAIT_MASK: u32 = 0;
    /// Only with CONFIG_PSI.
    TASK_IN_MEMSTALL: u32 = ABSENT;
    TASK_IN_MEMSTALL_MASK: u32 = 0;
    /// `css_set.dfl_cgrp`, or `css_set.subsys[controller]` for a v1 hierarchy.
    CSS_SET_CGROUP: u32 = 0;
    /// `cgroup_subsys_state.cgroup` for a v1 hierarchy, else [`ABSENT`].
    CSS_SET_CGROUP_CSS: u32 = ABSENT;
    CGROUP_KN: u32 = 0;
    CGROUP_LEVEL: u32 = 0;
    CGROUP_ROOT: u32 = 0;
    /// `cgroup.self.parent`.
    CGROUP_SELF_PARENT: u32 = 0;
    CSS_CGROUP: u32 = 0;
    KERNFS_NODE_ID: u32 = 0;
    CGROUP_ROOT_HIERARCHY_ID: u32 = 0;

    /// The step after which a CPU is dead (enum cpuhp_state).
    CPUHP_TEARDOWN_CPU: u32 = ABSENT;

    /// The hierarchy that is traced: 0 for v2.
    HIERARCHY_ID: u32 = 0;
    /// Slots in `CGROUPS`, and for each CPU in `STATE`.
    SLOTS: u32 = 1;
    /// Entries of `TASKS` less one; a power of two less one.
    TASK_MASK: u32 = 0;
    /// Flags for looking up a task's storage in any event: 0, or to create it.
    TASK_STORAGE_FLAGS: u32 = 0;
    /// One of [`memstall_source`].
    MEMSTALL_SOURCE: u32 = 0;
    /// Not 0 if each cgroup counts its own tasks only.
    ONLY_LEAF: u32 = 0;
    /// Cgroups without a slot that are remembered by id where only some are tracked; 0 where all are.
    UNTRACKED_IDS: u32 = 0;
    /// For tests: every so many context switches one is ignored; 0 for never.
    DROP_SWITCHES: u32 = 0;
}

/// `task_struct.on_rq` of a task on a run queue (TASK_ON_RQ_QUEUED).
pub(crate) const ON_RQ_QUEUED: u32 = 1;

/// Where memory stalls are learned from.
pub(crate) mod memstall_source {
    /// `psi_memstall_enter` and `psi_memstall_leave`.
    pub(crate) const FENTRY: u32 = 0;
    /// The kernel's `in_memstall` bit when a task is not running, reclaim tracepoints when it is.
    pub(crate) const TASK_BIT: u32 = 1;
    /// Nowhere: they are not asked for.
    pub(crate) const NONE: u32 = 3;
    // Anything else: reclaim tracepoints alone.
}

/// A pointer that the verifier knows as one to a kernel structure.
pub(crate) type Object = *const u8;

/// # Safety
/// `object` must be a pointer that the verifier knows, to a structure with a `T` at `offset`.
#[inline(always)]
pub(crate) unsafe fn member<T: Copy>(object: Object, offset: &Global<u32>) -> T {
    // SAFETY: the caller's promise; the verifier checks it, and a fault reads as 0.
    // Volatile: the kernel changes these at any time, so a load must be neither repeated nor merged.
    unsafe { ptr::read_volatile(object.add(offset.load() as usize).cast()) }
}

/// # Safety
/// As for [`member`], with the bitfield's byte at `offset`.
#[inline(always)]
pub(crate) unsafe fn bit(object: Object, offset: &Global<u32>, mask: &Global<u32>) -> bool {
    // SAFETY: the caller's promise.
    u32::from(unsafe { member::<u8>(object, offset) }) & mask.load() != 0
}
