//! The running kernel's types: member offsets for the BPF programs, which hooks exist.

use std::fs;

use btf_rs::{Btf, Type};

use crate::error::Error;

/// Where the kernel exports its type information.
pub const VMLINUX_BTF: &str = "/sys/kernel/btf/vmlinux";
const ABSENT: u32 = u32::MAX;

/// A global of the BPF object and the value for this kernel.
pub type Global = (&'static str, u32);

/// The running kernel's release, as `uname -r` has it; empty without /proc.
pub fn release() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    text.trim().to_owned()
}

/// The running kernel's types.
pub struct Kernel {
    btf: Btf,
}

#[derive(Clone, Copy)]
struct Member {
    bits: u32,
}

impl Member {
    const fn byte(self) -> u32 {
        self.bits / 8
    }

    /// The bit within its byte, for a bitfield of one bit. Bitfields count from the low end on little-endian
    /// machines, the only ones that the object serves.
    const fn mask(self) -> u32 {
        1 << (self.bits % 8)
    }
}

impl Kernel {
    /// Reads the running kernel's types.
    ///
    /// # Errors
    /// When it exports none.
    pub fn running() -> Result<Self, Error> {
        let failed = |error: &dyn std::fmt::Display| Error::Btf(format!("{VMLINUX_BTF}: {error}"));
        // Read at once: parsing it from the file would take a system call for each type.
        let bytes = fs::read(VMLINUX_BTF).map_err(|error| failed(&error))?;
        let btf = Btf::from_bytes(&bytes).map_err(|error| failed(&error))?;
        Ok(Self { btf })
    }

    /// Whether the kernel has the tracepoint.
    pub fn has_tracepoint(&self, name: &str) -> bool {
        self.btf
            .resolve_types_by_name(&format!("btf_trace_{name}"))
            .is_ok_and(|types| !types.is_empty())
    }

    /// Whether the kernel has the function.
    pub fn has_function(&self, name: &str) -> bool {
        self.btf
            .resolve_types_by_name(name)
            .is_ok_and(|types| types.iter().any(|found| matches!(found, Type::Func(_))))
    }

    /// Whether a task says that it is in a memory stall: only with CONFIG_PSI.
    pub fn has_memstall_bit(&self) -> bool {
        self.member("task_struct", "in_memstall").is_ok()
    }

    /// The offsets that the BPF programs need, for the v2 hierarchy or a v1 `controller`'s.
    ///
    /// # Errors
    /// When the kernel lacks one that the accounting cannot do without.
    pub fn globals(&self, controller: Option<&str>) -> Result<Vec<Global>, Error> {
        let offset = |structure, member| self.member(structure, member).map(Member::byte);
        let iowait = self.member("task_struct", "in_iowait")?;
        let memstall = self.member("task_struct", "in_memstall").ok();
        let entity = offset("task_struct", "se")?;
        let delayed = offset("sched_entity", "sched_delayed").map_or(ABSENT, |delayed| entity + delayed);
        let last_queued = has_one_sched_clock()
            .then(|| Some(offset("task_struct", "sched_info").ok()? + offset("sched_info", "last_queued").ok()?));
        // Since 5.16 the CPU is in thread_info where that is part of the task; before, in the task itself.
        let cpu = match offset("thread_info", "cpu") {
            Ok(cpu) => offset("task_struct", "thread_info")? + cpu,
            Err(_) => offset("task_struct", "cpu")?,
        };
        let css_cgroup = offset("cgroup_subsys_state", "cgroup")?;
        let (css_set_cgroup, css_set_cgroup_css) = match controller {
            None => (offset("css_set", "dfl_cgrp")?, ABSENT),
            Some(name) => (
                offset("css_set", "subsys")? + 8 * self.controller_index(name)?,
                css_cgroup,
            ),
        };
        Ok(vec![
            ("TASK_STORAGE_FLAGS", u32::from(self.allocates_storage_anywhere())),
            (
                "CPUHP_TEARDOWN_CPU",
                self.enumerator("cpuhp_state", "CPUHP_TEARDOWN_CPU").unwrap_or(ABSENT),
            ),
            ("TASK_PID", offset("task_struct", "pid")?),
            ("TASK_CPU", cpu),
            ("TASK_ON_CPU", offset("task_struct", "on_cpu")?),
            ("TASK_ON_RQ", offset("task_struct", "on_rq")?),
            ("TASK_SCHED_DELAYED", delayed),
            ("TASK_LAST_QUEUED", last_queued.flatten().unwrap_or(ABSENT)),
            ("TASK_CGROUPS", offset("task_struct", "cgroups")?),
            ("TASK_IN_IOWAIT", iowait.byte()),
            ("TASK_IN_IOWAIT_MASK", iowait.mask()),
            ("TASK_IN_MEMSTALL", memstall.map_or(ABSENT, Member::byte)),
            ("TASK_IN_MEMSTALL_MASK", memstall.map_or(0, Member::mask)),
            ("CSS_SET_CGROUP", css_set_cgroup),
            ("CSS_SET_CGROUP_CSS", css_set_cgroup_css),
            ("CGROUP_KN", offset("cgroup", "kn")?),
            ("CGROUP_LEVEL", offset("cgroup", "level")?),
            ("CGROUP_ROOT", offset("cgroup", "root")?),
            (
                "CGROUP_SELF_PARENT",
                offset("cgroup", "self")? + offset("cgroup_subsys_state", "parent")?,
            ),
            ("CSS_CGROUP", css_cgroup),
            ("KERNFS_NODE_ID", offset("kernfs_node", "id")?),
            ("CGROUP_ROOT_HIERARCHY_ID", offset("cgroup_root", "hierarchy_id")?),
        ])
    }

    /// Whether task storage comes from an allocator that is safe under any lock: since 6.4 from bpf_mem_alloc, later
    /// from kmalloc_nolock (kernel/bpf/bpf_local_storage.c).
    fn allocates_storage_anywhere(&self) -> bool {
        ["bpf_ma", "use_kmalloc_nolock"]
            .iter()
            .any(|member| self.member("bpf_local_storage_map", member).is_ok())
    }

    fn controller_index(&self, name: &str) -> Result<u32, Error> {
        self.enumerator("cgroup_subsys_id", &format!("{name}_cgrp_id"))
    }

    fn enumerator(&self, enumeration: &str, enumerator: &str) -> Result<u32, Error> {
        let lacking = || Error::Member(format!("enumerator {enumerator}"));
        let types = self.btf.resolve_types_by_name(enumeration).map_err(|_| lacking())?;
        for found in &types {
            let Type::Enum(found) = found else { continue };
            for member in &found.members {
                if self.btf.resolve_name(member).is_ok_and(|name| name == enumerator) {
                    return Ok(member.val());
                }
            }
        }
        Err(lacking())
    }

    /// Finds `member` in a structure, also within its unnamed members.
    fn member(&self, structure: &str, member: &str) -> Result<Member, Error> {
        let lacking = || Error::Member(format!("member {structure}.{member}"));
        let types = self.btf.resolve_types_by_name(structure).map_err(|_| lacking())?;
        types
            .iter()
            .find_map(|found| self.member_of(found, member, 0))
            .ok_or_else(lacking)
    }

    fn member_of(&self, structure: &Type, name: &str, base: u32) -> Option<Member> {
        let (Type::Struct(structure) | Type::Union(structure)) = structure else {
            return None;
        };
        for member in &structure.members {
            let bits = base + member.bit_offset();
            let found = self.btf.resolve_name(member).unwrap_or_default();
            if found == name {
                return Some(Member { bits });
            }
            if found.is_empty()
                && let Ok(inner) = self.btf.resolve_chained_type(member)
                && let Some(member) = self.member_of(&inner, name, bits)
            {
                return Some(member);
            }
        }
        None
    }
}

/// Whether sched_clock is one clock for all CPUs. On x86 a TSC that is not leaves these clocksources
/// (arch/x86/kernel/tsc.c, mark_tsc_unstable); elsewhere there is but one counter.
fn has_one_sched_clock() -> bool {
    let current = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    !current.is_ok_and(|name| ["acpi_pm", "hpet", "jiffies", "refined-jiffies"].contains(&name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_members_of_the_running_kernel() {
        let Ok(kernel) = Kernel::running() else {
            eprintln!("SKIP finds_members_of_the_running_kernel: no {VMLINUX_BTF}");
            return;
        };
        let globals = kernel.globals(None).expect("every member that is needed");
        let value = |name| globals.iter().find(|(global, _)| *global == name).expect("a global").1;
        assert_ne!(value("TASK_PID"), 0);
        assert!(value("TASK_IN_IOWAIT_MASK").is_power_of_two());
        assert!(kernel.has_tracepoint("sched_switch") && !kernel.has_tracepoint("no_such_thing"));
        assert!(matches!(kernel.globals(Some("no_such")), Err(Error::Member(_))));
    }
}
