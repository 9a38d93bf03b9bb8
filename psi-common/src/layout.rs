//! The records in the BPF maps, as both sides see them.
//!
//! All fields are plain integers: the BPF side changes them with atomic instructions, userspace views
//! them through atomics over the mapped memory. Every record is valid when all its bytes are zero.

use crate::queue_clock::Lag;

/// Slots one record index can name; the packed task and CPU words give a slot 19 bits.
pub const MAX_SLOTS: u32 = 1 << 19;
/// CPUs one packed task word can name (the kernel's own NR_CPUS limit is 8192).
pub const MAX_CPUS: u32 = 1 << 13;
/// Deepest cgroup level with a slot of its own; deeper cgroups are charged to their ancestor at this level.
/// The walk towards the root is a bounded loop of this many steps plus one.
pub const MAX_LEVEL: u32 = 31;

/// `next` of a record that is not on its CPU's updated list.
pub const NOT_LISTED: u32 = 0;
/// `next` of a record whose updater has claimed it but has not linked it yet.
pub const LINK_PENDING: u32 = u32::MAX;
/// `next` of the last record of a list.
pub const LIST_END: u32 = u32::MAX - 1;

/// A stall state with a time integral; the value is the index into [`CpuCgroup::times`].
///
/// The indices leave a hole so that CPU and NONIDLE share the first cacheline with the word, and io,
/// memory and irq have the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum State {
    /// At least one task waits for the CPU.
    CpuSome = 0,
    /// Tasks wait for the CPU and none of the group runs.
    CpuFull = 1,
    /// The group has a task that is not idle; the weight of a CPU in the aggregation.
    Nonidle = 2,
    /// At least one task sleeps in iowait.
    IoSome = 6,
    /// Tasks sleep in iowait and none is runnable.
    IoFull = 7,
    /// At least one task is in a memory stall.
    MemSome = 8,
    /// Tasks are in a memory stall and none is productive.
    MemFull = 9,
    /// Time interrupts took from the group's tasks; a plain sum, never an active state.
    IrqFull = 10,
}

impl State {
    /// All states, in the order in which per-CPU deltas are kept by the flush.
    pub const ALL: [Self; 8] = [
        Self::CpuSome,
        Self::CpuFull,
        Self::Nonidle,
        Self::IoSome,
        Self::IoFull,
        Self::MemSome,
        Self::MemFull,
        Self::IrqFull,
    ];
}

/// What one CPU keeps about one cgroup: index `cpu * slots + slot` of the map `STATE`.
///
/// Two cachelines of its own, so that two CPUs never write the same line for different records.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(128))]
pub struct CpuCgroup {
    /// Packed task counts, see [`crate::word`].
    pub word: u64,
    /// Link of the CPU's updated list: a slot plus one, or one of [`NOT_LISTED`], [`LINK_PENDING`], [`LIST_END`].
    pub next: u32,
    /// Not 0 while the cgroup is disabled: counts go on, times stand still.
    pub disabled: u32,
    /// Signed time integrals in ns, indexed by [`State`]: the total while the state is off, the total minus the time
    /// of entry and a constant (so far below zero) while it is on. See [`crate::account::total_at`].
    pub times: [u64; 14],
}

/// What one CPU keeps about itself: index `cpu` of the map `CPUS`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(128))]
pub struct Cpu {
    /// What the running task contributes, see [`crate::word::Running`]; 0 while unknown.
    pub running: u64,
    /// Head of the updated list: a slot plus one, or 0 when empty.
    pub updated: u32,
    /// Bits of the interrupt kinds being served, see [`irq_kind`].
    pub irq_active: u32,
    /// When the outermost interrupt began, ns of CLOCK_MONOTONIC.
    pub irq_start: u64,
    /// Pid of this CPU's ksoftirqd, whose work the kernel does not count as interrupt time; 0 if unknown.
    pub ksoftirqd: u32,
    /// Unused.
    pub reserved: u32,
    /// What this CPU knows of run queue clocks.
    pub lag: Lag,
    /// Counters of everything missed or repaired on this CPU, indexed by [`Counter`].
    pub counters: [u64; 8],
}

/// Bits of [`Cpu::irq_active`].
pub mod irq_kind {
    /// A softirq, served with interrupts on.
    pub const SOFTIRQ: u32 = 1;
    /// A device handler (`irq_handler_entry`).
    pub const HANDLER: u32 = 2;
    /// A vector of the architecture (`irq_vectors`, `ipi`).
    pub const VECTOR: u32 = 4;
}

/// Index into [`Cpu::counters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// `sched_switch` events that told of a running task other than the one on record: an earlier event was lost.
    MissedSwitches = 0,
    /// Tasks put right by an event of their own or of their CPU: running ones at an interrupt, dead ones when they are
    /// freed.
    RepairedRunning = 1,
    /// Waiting or sleeping tasks put right by the audit.
    RepairedTasks = 2,
    /// Events on a task about which nothing can be kept.
    StorageFailures = 3,
    /// Tasks refused because a count was at its limit.
    Overflows = 4,
    /// Interrupt entries without the exit before them.
    MissedIrqs = 5,
    /// Tasks whose cgroup has no slot and were charged to an ancestor.
    ChargedToAncestor = 6,
    /// Walks towards the root cut off by the loop's bound: a damaged parent chain.
    BrokenWalks = 7,
}

/// What is known of one cgroup: index `slot` of the map `CGROUPS`. Read-mostly, so apart from the records.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Cgroup {
    /// The cgroup's id: the inode number of its directory.
    pub id: u64,
    /// Slot that counts it in turn: the parent's; [`NO_SLOT`] for the root, and for all where cgroups count their own
    /// tasks only.
    pub parent: u32,
    /// Depth below the root, 0 for the root.
    pub level: u32,
    /// One of the values in [`slot_state`].
    pub state: u32,
    /// Grows each time the slot is given out again.
    pub generation: u32,
    /// Slot of the cgroup above it in the tree; [`NO_SLOT`] for the root.
    pub above: u32,
    /// Unused.
    pub reserved: u32,
}

/// The slot of no cgroup.
pub const NO_SLOT: u32 = u32::MAX;

/// Cgroups without a slot whose ancestor is remembered by id, so that `CGROUP_IDS` always has room for those with one. The
/// rest is found by walking up at each new task.
pub const EXTRA_IDS: u32 = 4096;

/// Set in a value of the map `CGROUP_IDS` when the slot belongs to an ancestor.
pub const ANCESTORS_SLOT: u32 = 1 << 31;
/// Set beside [`ANCESTORS_SLOT`] for a cgroup that is not to have a slot of its own.
pub const UNTRACKED: u32 = 1 << 30;
/// The slot in a value of the map `CGROUP_IDS`.
pub const SLOT_OF_ID: u32 = !(ANCESTORS_SLOT | UNTRACKED);

/// Values of [`Cgroup::state`].
pub mod slot_state {
    /// On the free list.
    pub const FREE: u32 = 0;
    /// Belongs to a cgroup that exists.
    pub const LIVE: u32 = 1;
    /// Its cgroup has been removed, but a dead task may still be charged to it.
    pub const REMOVED: u32 = 2;
    /// Its cgroup is gone; userspace flushes it once more and frees it.
    pub const RELEASED: u32 = 3;
}

/// What both sides share beyond the arrays: index 0 of the map `SHARED`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Shared {
    /// Grows with every change in `CGROUPS`.
    pub cgroup_changes: u64,
    /// Cgroups that exist without a slot of their own.
    pub without_slot: u64,
    /// Not 0 while userspace has been told of a task move and has not begun the walk for it.
    pub resync_wanted: u64,
    /// Not 0 while userspace has been told of a released cgroup and has not looked for it.
    pub recycle_wanted: u64,
    /// Tasks that walks have seen.
    pub walked: u64,
    /// By how much CLOCK_MONOTONIC gets ahead of run queue clocks, see [`crate::queue_clock::wakeup_time`].
    pub drift: i64,
    /// Entries of `CGROUP_IDS` for cgroups that are not to have a slot, see [`UNTRACKED`].
    pub untracked: u64,
    /// Not 0 while userspace has been told of a cgroup that it did not get a [`NewCgroup`] of.
    pub rescan_wanted: u64,
}

/// A cgroup that has been made while only some are tracked: an entry of the ring `NEW_CGROUPS`. Userspace decides
/// whether it gets a slot.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct NewCgroup {
    /// Its id.
    pub id: u64,
    /// Depth below the root.
    pub level: u32,
    /// The slot that it is charged to until then: its nearest tracked ancestor's.
    pub slot: u32,
    /// Not 0 if `CGROUP_IDS` has it.
    pub has_id: u32,
    /// Bytes of `path` with the 0 at its end; not above 0 if it could not be read.
    pub length: i32,
    /// Path from the hierarchy's root, as the kernel tells it.
    pub path: [u8; NEW_PATH],
}

/// Bytes of a path that the kernel tells at most (TRACE_CGROUP_PATH_LEN), with the 0 at its end.
pub const NEW_PATH: usize = 1024;

/// What is kept about one task: index `pid & mask` of the map `TASKS`, or, for a task whose place there is taken, the
/// value of the task storage map `CROWDED_OUT`. A cacheline of its own.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Task {
    /// The task_struct that has this entry; 0 for none. Unused in task storage.
    pub owner: u64,
    /// What the task contributes while it is not running, see [`crate::word::Parked`]; 0 while unknown.
    pub parked: u64,
    /// The css_set for which `slot` was looked up.
    pub css_set: u64,
    /// Slot of the task's cgroup.
    pub slot: u32,
    /// Not 0 while a reclaim tracepoint says that the task is in a memory stall.
    pub in_reclaim: u32,
    /// Stack address of the outermost memory stall's flags word, 0 outside of a stall.
    pub memstall: u64,
    /// The parked word that the last audit disagreed with.
    pub suspect: u64,
    /// Unused.
    pub reserved: [u64; 2],
}

const _: () = {
    assert!(size_of::<CpuCgroup>() == 128);
    assert!(size_of::<Cpu>() == 128);
    assert!(size_of::<Cgroup>() == 32);
    assert!(size_of::<Shared>() == 64);
    assert!(size_of::<NewCgroup>() == 24 + NEW_PATH);
    assert!(size_of::<Task>() == 64);
};
