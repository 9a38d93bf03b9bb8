//! The packed words: task counts per CPU and cgroup, a parked task's contribution, a CPU's running task.

use crate::layout::State;

/// Bits of a count, without its guard bit.
const WIDE: u32 = 13;
/// Bits of the counts that one CPU can hold at one at most (transiently more).
const NARROW: u32 = 3;

const SHIFT_W: u32 = 0;
const SHIFT_I: u32 = 14;
const SHIFT_M: u32 = 28;
const SHIFT_P: u32 = 42;
const SHIFT_O: u32 = 56;
const SHIFT_Q: u32 = 60;

const WIDE_GUARDS: u64 = 1 << (SHIFT_W + WIDE) | 1 << (SHIFT_I + WIDE) | 1 << (SHIFT_M + WIDE) | 1 << (SHIFT_P + WIDE);
const NARROW_GUARDS: u64 = 1 << (SHIFT_O + NARROW) | 1 << (SHIFT_Q + NARROW);

/// The guard bit above each count.
pub const GUARDS: u64 = WIDE_GUARDS | NARROW_GUARDS;
/// All count bits.
pub const FIELDS: u64 = !GUARDS;

/// Largest number of tasks that one field counts on one CPU.
pub const MAX_COUNT: u64 = (1 << WIDE) - 1;

/// What a task contributes, one bit a field of the packed word.
pub mod class {
    /// Waiting, runnable.
    pub const W: u64 = 1;
    /// Sleeping in iowait.
    pub const I: u64 = 1 << 1;
    /// In a memory stall.
    pub const M: u64 = 1 << 2;
    /// Runnable and not in a memory stall.
    pub const P: u64 = 1 << 3;
    /// On the CPU.
    pub const O: u64 = 1 << 4;
    /// On the CPU and in a memory stall.
    pub const Q: u64 = 1 << 5;
    /// All of them.
    pub const MASK: u64 = 0x3f;

    /// The class of a running task.
    #[inline(always)]
    pub const fn running(memstall: bool) -> u64 {
        if memstall { O | Q | M } else { O | P }
    }

    /// The class of a task that is runnable but not running.
    #[inline(always)]
    pub const fn waiting(memstall: bool) -> u64 {
        if memstall { W | M } else { W | P }
    }

    /// The class of a task that sleeps.
    #[inline(always)]
    pub const fn sleeping(iowait: bool, memstall: bool) -> u64 {
        (if iowait { I } else { 0 }) | (if memstall { M } else { 0 })
    }
}

/// The packed word's increment for one task of `class` (bits outside of [`class::MASK`] are ignored).
#[inline(always)]
pub const fn contribution(class: u64) -> u64 {
    (class & 1)
        | (class >> 1 & 1) << SHIFT_I
        | (class >> 2 & 1) << SHIFT_M
        | (class >> 3 & 1) << SHIFT_P
        | (class >> 4 & 1) << SHIFT_O
        | (class >> 5 & 1) << SHIFT_Q
}

/// The guard bits of all fields of `word` that are not zero. A set guard is a count past the limit, so not zero.
#[inline(always)]
pub const fn occupied(word: u64) -> u64 {
    ((word & FIELDS).wrapping_add(FIELDS) | word) & GUARDS
}

/// Whether a count is past its limit. One that is below zero is not: that is what a decrement gives that overtook its
/// increment, for nanoseconds, and has all its high bits set.
#[inline(always)]
pub const fn is_past_limit(word: u64) -> bool {
    word & !(word << 1) & GUARDS != 0
}

/// One unit of each field whose guard bit is set in `guards`.
#[inline(always)]
const fn units(guards: u64) -> u64 {
    (guards & WIDE_GUARDS) >> WIDE | (guards & NARROW_GUARDS) >> NARROW
}

/// What the parent's word gains when a child's occupied fields go from `before` to `after` (wrapping).
#[inline(always)]
pub const fn parent_delta(before: u64, after: u64) -> u64 {
    units(after & !before).wrapping_sub(units(before & !after))
}

/// The counts of a word: W, I, M, P, O, Q. One below zero, or past its limit, reads as below zero.
pub const fn counts(word: u64) -> [i64; 6] {
    const fn field(word: u64, shift: u32, bits: u32) -> i64 {
        // With the guard bit as the sign.
        (word << (63 - shift - bits)).cast_signed() >> (63 - bits)
    }
    [
        field(word, SHIFT_W, WIDE),
        field(word, SHIFT_I, WIDE),
        field(word, SHIFT_M, WIDE),
        field(word, SHIFT_P, WIDE),
        field(word, SHIFT_O, NARROW),
        field(word, SHIFT_Q, NARROW),
    ]
}

/// The states that hold for a word's occupied fields: bit `State as usize` for each.
///
/// The tests are those of the kernel's `test_states` (kernel/sched/psi.c), in terms of the packed counts:
/// RUNNING is W or O, and RUNNING == MEMSTALL_RUNNING is no P.
#[inline(always)]
#[expect(clippy::many_single_char_names, reason = "the counts' own names")]
pub const fn states(occupied: u64) -> u64 {
    let w = occupied >> (SHIFT_W + WIDE);
    let i = occupied >> (SHIFT_I + WIDE);
    let m = occupied >> (SHIFT_M + WIDE);
    let p = occupied >> (SHIFT_P + WIDE);
    let o = occupied >> (SHIFT_O + NARROW);
    let q = occupied >> (SHIFT_Q + NARROW);
    let runnable = w | o;
    (w & 1) << State::CpuSome as u32
        | (w & !o & 1) << State::CpuFull as u32
        | ((runnable | i | m) & 1) << State::Nonidle as u32
        | (i & 1) << State::IoSome as u32
        | (i & !runnable & 1) << State::IoFull as u32
        | (m & 1) << State::MemSome as u32
        | (m & (!p | q) & 1) << State::MemFull as u32
}

const KNOWN: u64 = 1 << 6;
const SLOT_BITS: u32 = 19;
const CPU_BITS: u32 = 13;
const SHIFT_SLOT: u32 = 8;
const SHIFT_CPU: u32 = SHIFT_SLOT + SLOT_BITS;
const SHIFT_PID: u32 = 32;

/// What a task contributes while it is not running, and where: one word, changed by exchange only, so that
/// whoever takes a value out is the one who takes its contribution back.
///
/// Zero is "unknown": a task that neither an event nor the seeding walk has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parked(pub u64);

impl Parked {
    /// The word of a task that runs: it contributes nothing itself, its CPU does.
    pub const ON_CPU: Self = Self(KNOWN | 1 << 7);
    /// The word of a known task that contributes nothing.
    pub const NOTHING: Self = Self(KNOWN);

    /// A contribution of `class` on `cpu` to the cgroup in `slot`.
    #[inline(always)]
    pub const fn new(class: u64, cpu: u32, slot: u32) -> Self {
        Self(
            class
                | KNOWN
                | (slot as u64 & ((1 << SLOT_BITS) - 1)) << SHIFT_SLOT
                | (cpu as u64 & ((1 << CPU_BITS) - 1)) << SHIFT_CPU,
        )
    }

    /// The class bits.
    #[inline(always)]
    pub const fn class(self) -> u64 {
        self.0 & class::MASK
    }

    /// The CPU that counts it.
    #[inline(always)]
    pub const fn cpu(self) -> u32 {
        (self.0 >> SHIFT_CPU) as u32 & ((1 << CPU_BITS) - 1)
    }

    /// The slot that counts it.
    #[inline(always)]
    pub const fn slot(self) -> u32 {
        (self.0 >> SHIFT_SLOT) as u32 & ((1 << SLOT_BITS) - 1)
    }
}

/// What a CPU's running task contributes: one word, changed by exchange only. Zero is "unknown".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running(pub u64);

impl Running {
    /// A task of `class` in `slot`; `pid` 0 and class 0 for the idle task.
    #[inline(always)]
    pub const fn new(class: u64, slot: u32, pid: u32) -> Self {
        Self(class | KNOWN | (slot as u64 & ((1 << SLOT_BITS) - 1)) << SHIFT_SLOT | (pid as u64) << SHIFT_PID)
    }

    /// Whether an event has told what runs.
    #[inline(always)]
    pub const fn is_known(self) -> bool {
        self.0 & KNOWN != 0
    }

    /// The class bits.
    #[inline(always)]
    pub const fn class(self) -> u64 {
        self.0 & class::MASK
    }

    /// The slot that counts it.
    #[inline(always)]
    pub const fn slot(self) -> u32 {
        (self.0 >> SHIFT_SLOT) as u32 & ((1 << SLOT_BITS) - 1)
    }

    /// The task's pid, 0 for the idle task.
    #[inline(always)]
    pub const fn pid(self) -> u32 {
        (self.0 >> SHIFT_PID) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(list: &[State]) -> u64 {
        list.iter().fold(0, |mask, &state| mask | 1 << state as u32)
    }

    #[test]
    fn occupied_sees_every_field_and_limit() {
        for bit in 0..6 {
            let one = contribution(1 << bit);
            let guard = occupied(one);
            assert_eq!(guard.count_ones(), 1, "field {bit}");
            assert_eq!(units(guard), one, "field {bit}");
        }
        assert_eq!(occupied(0), 0);
        assert_eq!(occupied(contribution(class::W) * MAX_COUNT), 1 << 13);
        // One past the limit: the count's bits are zero again, the guard says that it is not.
        assert_eq!(occupied(contribution(class::W) * (MAX_COUNT + 1)), 1 << 13);
    }

    #[test]
    fn counts_are_told_one_by_one() {
        let all = contribution(class::MASK);
        assert_eq!(counts(all), [1; 6]);
        assert_eq!(counts(all.wrapping_mul(5)), [5; 6]);
        assert_eq!(counts(0), [0; 6]);
        // Fields below borrow from those above, as in the adds themselves.
        assert_eq!(counts(contribution(class::O).wrapping_neg())[4], -1);
        assert_eq!(counts(contribution(class::W) * MAX_COUNT)[0], 8191);
    }

    #[test]
    fn below_zero_is_not_past_the_limit() {
        for bit in 0..6 {
            let one = contribution(1 << bit);
            let limit = if bit < 4 { MAX_COUNT } else { 7 };
            assert!(!is_past_limit(one * limit), "field {bit}");
            assert!(is_past_limit(one * (limit + 1)), "field {bit}");
            assert!(!is_past_limit(one.wrapping_neg()), "field {bit}");
        }
    }

    #[test]
    fn states_follow_the_kernel() {
        use State::{CpuFull, CpuSome, IoFull, IoSome, MemFull, MemSome, Nonidle};
        let states_of = |tasks: &[u64]| states(occupied(tasks.iter().map(|&c| contribution(c)).sum()));
        let (run, run_mem) = (class::running(false), class::running(true));
        let (wait, wait_mem) = (class::waiting(false), class::waiting(true));
        let (io, mem) = (class::sleeping(true, false), class::sleeping(false, true));
        for (tasks, want) in [
            (&[][..], mask(&[])),
            (&[run], mask(&[Nonidle])),
            (&[wait], mask(&[CpuSome, CpuFull, Nonidle])),
            (&[run, wait], mask(&[CpuSome, Nonidle])),
            (&[io], mask(&[IoSome, IoFull, Nonidle])),
            (&[io, run], mask(&[IoSome, Nonidle])),
            (&[io, wait], mask(&[IoSome, CpuSome, CpuFull, Nonidle])),
            (&[mem], mask(&[MemSome, MemFull, Nonidle])),
            (&[mem, run], mask(&[MemSome, Nonidle])),
            (&[run_mem], mask(&[MemSome, MemFull, Nonidle])),
            // The running task reclaims while a productive one waits: full by the ONCPU rule.
            (&[run_mem, wait], mask(&[MemSome, MemFull, CpuSome, Nonidle])),
            (&[run, wait_mem], mask(&[MemSome, CpuSome, Nonidle])),
            (&[wait_mem], mask(&[MemSome, MemFull, CpuSome, CpuFull, Nonidle])),
        ] {
            assert_eq!(states_of(tasks), want, "tasks {tasks:x?}");
        }
    }

    #[test]
    fn packed_words_keep_their_parts() {
        let parked = Parked::new(class::waiting(true), 8191, (1 << 19) - 1);
        assert_eq!(
            (parked.class(), parked.cpu(), parked.slot()),
            (class::W | class::M, 8191, (1 << 19) - 1)
        );
        let running = Running::new(class::running(false), 77, 4_194_303);
        assert_eq!(
            (running.class(), running.slot(), running.pid()),
            (class::O | class::P, 77, 4_194_303)
        );
        assert!(running.is_known() && !Running(0).is_known());
        assert_eq!(Parked::ON_CPU.class(), 0);
        assert_ne!(Parked::ON_CPU, Parked::NOTHING);
    }
}
