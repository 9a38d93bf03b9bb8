//! The kernel's own rstat locks, as its tracepoints show them: how long they are held and waited for.

use aya::{Ebpf, EbpfLoader};
use psi_common::layout::{Rstat as Record, rstat_lock};

use crate::{
    error::Error,
    flush::HoldTimes,
    kernel::Kernel,
    load::{OBJECT, attach_tracepoint, load_object, map_array, possible_cpus},
    mapped::MappedArray,
    privilege,
};

/// A lock: its name, and its tracepoints for a wait that begins, a lock that is taken, one that is given back.
const LOCKS: [(&str, [&str; 3]); rstat_lock::COUNT] = [
    (
        "flush",
        [
            "cgroup_rstat_lock_contended",
            "cgroup_rstat_locked",
            "cgroup_rstat_unlock",
        ],
    ),
    (
        "cpu",
        [
            "cgroup_rstat_cpu_lock_contended",
            "cgroup_rstat_cpu_locked",
            "cgroup_rstat_cpu_unlock",
        ],
    ),
    (
        "updater",
        [
            "cgroup_rstat_cpu_lock_contended_fastpath",
            "cgroup_rstat_cpu_locked_fastpath",
            "cgroup_rstat_cpu_unlock_fastpath",
        ],
    ),
];

/// The attached programs. Dropping it detaches them.
pub struct Rstat {
    _ebpf: Ebpf,
    records: MappedArray<Record>,
    locks: Vec<usize>,
}

/// What was seen of one lock.
#[derive(Clone, Copy, Debug)]
pub struct LockTimes {
    /// `flush`: the lock of the whole flush; `cpu`: a CPU's lock, taken by the flush; `updater`: the same, taken by an
    /// update.
    pub name: &'static str,
    /// How long it was held.
    pub holds: HoldTimes,
    /// How long those waited that did not get it at once.
    pub waits: HoldTimes,
    /// Waits that began and ended on different CPUs, and are in no bin.
    pub lost_waits: u64,
}

impl Rstat {
    /// Attaches to the locks that this kernel tells of.
    ///
    /// # Errors
    /// [`Error::NoRstat`] where it tells of none; see [`Error`] for the others.
    pub fn attach() -> Result<Self, Error> {
        privilege::check()?;
        let kernel = Kernel::running()?;
        let locks: Vec<usize> = (0..LOCKS.len())
            .filter(|&lock| LOCKS[lock].1.iter().all(|name| kernel.has_tracepoint(name)))
            .collect();
        if locks.is_empty() {
            return Err(Error::NoRstat);
        }
        let cpus = possible_cpus()?;
        let (mut ebpf, btf) = load_object(EbpfLoader::new().map_max_entries("RSTAT", cpus), OBJECT)?;
        let records = map_array(&ebpf, "RSTAT", cpus)?;
        for &lock in &locks {
            for name in LOCKS[lock].1 {
                attach_tracepoint(&mut ebpf, name, name, &btf)?;
            }
        }
        Ok(Self {
            _ebpf: ebpf,
            records,
            locks,
        })
    }

    /// What was seen so far.
    pub fn times(&self) -> Vec<LockTimes> {
        self.locks.iter().map(|&lock| self.of(lock)).collect()
    }

    fn of(&self, lock: usize) -> LockTimes {
        let mut times = LockTimes {
            name: LOCKS[lock].0,
            holds: HoldTimes::default(),
            waits: HoldTimes::default(),
            lost_waits: 0,
        };
        for cpu in 0..self.records.len() {
            let Some(record) = self.records.copy(cpu) else { continue };
            let seen = record.locks[lock];
            let of = |counts: [u64; 16], longest_ns| {
                let mut holds = HoldTimes {
                    longest_ns,
                    ..HoldTimes::default()
                };
                for (count, seen) in holds.counts.iter_mut().zip(counts) {
                    *count = seen;
                }
                holds
            };
            times.holds.merge(&of(seen.holds, seen.longest_hold));
            times.waits.merge(&of(seen.waits, seen.longest_wait));
            times.lost_waits += seen.lost_waits;
        }
        times
    }
}
