//! The maps. Userspace sets their sizes before load.

use core::ptr;

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_F_NO_PREALLOC, bpf_map_type},
    macros::map,
    maps::{Array, HashMap, RingBuf, Stack},
};
use psi_common::layout::{Cgroup, Cpu, CpuCgroup, Shared, Task};

/// Index `cpu * slots + slot`.
#[map]
pub(crate) static STATE: Array<CpuCgroup> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// Index `cpu`.
#[map]
pub(crate) static CPUS: Array<Cpu> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// Index `slot`.
#[map]
pub(crate) static CGROUPS: Array<Cgroup> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// One entry.
#[map]
pub(crate) static SHARED: Array<Shared> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// Cgroup id to slot.
#[map]
pub(crate) static CGROUP_IDS: HashMap<u64, u32> = HashMap::with_max_entries(1, 0);
/// Free slots.
#[map]
pub(crate) static FREE_SLOTS: Stack<u32> = Stack::with_max_entries(1, 0);
/// Wakes userspace for a walk over the tasks.
#[map]
pub(crate) static WAKEUPS: RingBuf = RingBuf::with_byte_size(4096, 0);

/// Cgroups that userspace is to look at, [`psi_common::layout::NewCgroup`].
#[map]
pub(crate) static NEW_CGROUPS: RingBuf = RingBuf::with_byte_size(4096, 0);

/// Index `pid & TASK_MASK`.
#[map]
pub(crate) static TASKS: Array<Task> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// Task storage: aya has no type for it, so this is the map's definition as its BTF describes it.
#[repr(C)]
pub(crate) struct TaskStorage {
    r#type: *const [i32; bpf_map_type::BPF_MAP_TYPE_TASK_STORAGE as usize],
    key: *const i32,
    value: *const Task,
    max_entries: *const [i32; 0],
    map_flags: *const [i32; BPF_F_NO_PREALLOC as usize],
}

// SAFETY: the fields are never read; their types alone define the map.
unsafe impl Sync for TaskStorage {}

#[unsafe(no_mangle)]
#[unsafe(link_section = ".maps")]
pub(crate) static CROWDED_OUT: TaskStorage = TaskStorage {
    r#type: ptr::null(),
    key: ptr::null(),
    value: ptr::null(),
    max_entries: ptr::null(),
    map_flags: ptr::null(),
};
