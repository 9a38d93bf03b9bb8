//! When a task woke up, by its run queue's clock.
//!
//! `sched_wakeup` comes after the kernel has told the task's CPU to reschedule (ttwu_do_activate: activate_task,
//! wakeup_preempt, then the tracepoint). To another CPU that is an interrupt, which a virtual machine sends in about 5 us, and
//! that CPU may run the task meanwhile. The kernel's PSI looks at the clock before (psi_enqueue). So does the run queue: its
//! clock was brought up to date just before the task was queued (update_rq_clock), in ns of sched_clock. How far that is from
//! CLOCK_MONOTONIC when no interrupt is sent is learned from wakeups without one: those of tasks on the waking CPU itself;
//! and, since the memory of another CPU's run queue is slower, those on other CPUs that come hardly later. While what was
//! learned is fresh a wakeup's time is the run queue's, and no other clock is read.
//!
//! Where the run queue's clock is read is the task's account of its waits (`sched_info.last_queued`, set by
//! sched_info_enqueue, kernel/sched/stats.h, right after psi_enqueue): the clock itself is two pointers away.

/// A run queue's clock at a wakeup, and whether the task is on the CPU that wakes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueClock(u64);

impl QueueClock {
    /// Not known, or no wakeup.
    pub const UNKNOWN: Self = Self(0);
    /// 2^61 ns are 73 years: a clock past that is not believed.
    const LIMIT: u64 = 1 << 61;
    const LOCAL: u64 = 1;

    /// `clock` in ns, of which the last bit is lost.
    #[inline(always)]
    pub const fn new(clock: u64, is_local: bool) -> Self {
        if clock < Self::LIMIT {
            Self(clock & !Self::LOCAL | is_local as u64)
        } else {
            Self::UNKNOWN
        }
    }

    /// As one number below 2^61: 0 for unknown.
    #[inline(always)]
    pub const fn into_raw(self) -> u64 {
        self.0
    }

    /// The reverse of [`Self::into_raw`].
    #[inline(always)]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    #[inline(always)]
    const fn is_local(self) -> bool {
        self.0 & Self::LOCAL != 0
    }
}

/// How far CLOCK_MONOTONIC, in a hook, is from run queue clocks, as a CPU knows it. All zero while nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Lag {
    /// The usual difference at a wakeup on the own CPU, ns, wrapping.
    pub usual: u64,
    /// When that was, ns of CLOCK_MONOTONIC.
    pub at: u64,
    /// How much more it usually is at a wakeup on another CPU that is sent no interrupt, ns.
    pub remote: i64,
}

/// ns. What is further from usual is no interrupt: the clocks were set, or a virtual CPU was stopped.
const STEP: i64 = 50_000;
/// ns. A wakeup on another CPU that comes later than this was sent an interrupt: in a virtual machine that takes 4 us or more,
/// and without one 2 us are rare.
const NEAR: i64 = 2_500;
/// ns. What is older is forgotten.
const MEMORY: u64 = 1 << 36;
/// A wakeup's share in what is usual is one of 2^4.
const SHARE: u32 = 4;

/// ns. So long a difference is taken for what it was when it was learned: time keeping bends CLOCK_MONOTONIC by 1 in 2,000 at
/// most, so this is half a microsecond at worst.
const FRESH: u64 = 1_000_000;

/// The time of a wakeup, ns of CLOCK_MONOTONIC, without a look at the clock: as the run queue's clock has it. None where the
/// difference was learned too long ago, or never; or where the clock is not known, or older than that.
#[inline(always)]
pub const fn quick_time(clock: QueueClock, lag: Lag) -> Option<u64> {
    let time = clock.0.wrapping_add(lag.usual);
    if clock.0 == QueueClock::UNKNOWN.0 || time.wrapping_sub(lag.at) >= FRESH {
        return None;
    }
    Some(if clock.is_local() {
        time
    } else {
        time.wrapping_add_signed(lag.remote)
    })
}

/// The time of a wakeup that is noticed at `now`, ns of CLOCK_MONOTONIC: that, or before it by as much as the run queue's
/// clock tells that it is later than usual. Also what is known from then on.
///
/// `drift` is by how much CLOCK_MONOTONIC gets ahead of the other clock, in 2^-32 of the time that passes.
#[inline(always)]
pub const fn wakeup_time(now: u64, clock: QueueClock, lag: Lag, drift: i64) -> (u64, Lag) {
    let seen = now.wrapping_sub(clock.0);
    let since = now.wrapping_sub(lag.at);
    let moved = (since as i64).wrapping_mul(drift) >> 32;
    let usual = lag.usual.wrapping_add(moved as u64);
    let late = seen.wrapping_sub(usual) as i64;
    let is_known = since < MEMORY && late < STEP && late > -STEP;
    if clock.is_local() {
        let usual = if !is_known || late < -NEAR {
            // A hook is held up at times, but never early: it was the others that were late.
            seen
        } else {
            let late = if late < NEAR { late } else { NEAR };
            usual.wrapping_add((late >> SHARE) as u64)
        };
        (now, Lag { usual, at: now, ..lag })
    } else if !is_known {
        (now, lag)
    } else if late < NEAR {
        let remote = lag.remote + ((late - lag.remote) >> SHARE);
        (now, Lag { remote, ..lag })
    } else {
        (now.wrapping_sub((late - lag.remote) as u64), lag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 10_000_000_000_000;

    /// A wakeup that is noticed `delay` ns after its run queue's clock was read, at `now`.
    fn wakeup(now: u64, apart: u64, delay: u64, is_local: bool, drift: i64, lag: &mut Lag) -> u64 {
        let clock = QueueClock::new(now.wrapping_sub(delay).wrapping_sub(apart), is_local);
        let (time, new) = wakeup_time(now, clock, *lag, drift);
        *lag = new;
        time
    }

    /// But for the bits that the clocks lose.
    #[track_caller]
    fn assert_about(seen: u64, expected: u64, why: &str) {
        assert!(
            seen.abs_diff(expected) <= 2,
            "expected about {expected}, saw {seen}: {why}"
        );
    }

    #[test]
    fn an_interrupt_is_taken_off() {
        for apart in [0, 5_000_000_000, 0_u64.wrapping_sub(7_000_000_000)] {
            let mut lag = Lag::default();
            let mut early = |ms: u64, delay, is_local| {
                let now = START + ms * 1_000_000;
                now - wakeup(now, apart, delay, is_local, 0, &mut lag)
            };
            assert_about(early(0, 5_300, false), 0, "nothing known yet");
            assert_about(early(1, 300, true), 0, "in time");
            assert_about(early(2, 5_300, false), 5_000, "late");
            assert_about(early(3, 1_900, false), 0, "no interrupt");
            assert_about(early(3, 5_300, false), 5_000 - 1_600 / 16, "and is learned from");
            assert_about(early(4, 900_300, false), 0, "no interrupt takes that long");
            assert_about(early(5, 2_300, true), 0, "what was on the own CPU is not late");
            assert_about(early(6, 5_300, false), 4_900 - 2_000 / 16, "and is learned from");
            assert_about(early(7, 900_300, true), 0, "stopped");
            assert_about(early(8, 300, true), 0, "forgotten at once");
            assert_about(early(9, 5_300, false), 4_900, "late");
            assert_about(early(90_000, 5_300, false), 0, "forgotten after a while");
        }
    }

    #[test]
    fn while_it_is_fresh_no_clock_is_read() {
        for apart in [0, 5_000_000_000, 0_u64.wrapping_sub(7_000_000_000)] {
            let mut lag = Lag::default();
            // Queued then, by a clock that is `apart`.
            let queued = |at: u64, is_local| QueueClock::new(at.wrapping_sub(apart), is_local);
            assert_eq!(quick_time(queued(START, true), lag), None, "nothing known yet");
            assert_eq!(quick_time(QueueClock::UNKNOWN, lag), None);
            wakeup(START + 300, apart, 300, true, 0, &mut lag);
            wakeup(START + 1_900, apart, 1_900, false, 0, &mut lag);
            let remote = 1_600 / 16;
            for (later, is_local, expected) in [
                (5_000, true, Some(300)),
                (5_000, false, Some(300 + remote)),
                (999_000, true, Some(300)),
                (1_100_000, true, None),
                (3_600_000_000_000, false, None),
            ] {
                let at = START + later;
                let seen = quick_time(queued(at, is_local), lag);
                assert_eq!(seen.is_some(), expected.is_some(), "{later} ns later");
                assert_about(seen.unwrap_or(at), at + expected.unwrap_or(0), "by the queue's clock");
            }
            assert_eq!(quick_time(queued(START - 5_000, true), lag), None, "queued long before");
            assert_eq!(quick_time(QueueClock::UNKNOWN, lag), None);
        }
    }

    #[test]
    fn a_hook_that_was_held_up_is_forgotten_soon() {
        let mut lag = Lag::default();
        wakeup(START, 0, 40_000, true, 0, &mut lag);
        wakeup(START + 2_000_000, 0, 300, true, 0, &mut lag);
        assert_about(lag.usual, 300, "never early");
        wakeup(START + 4_000_000, 0, 40_000, true, 0, &mut lag);
        assert_about(lag.usual, 300 + 2_500 / 16, "late at times");
    }

    #[test]
    fn drift_and_steps_are_followed() {
        for (parts_in_million, error) in [(500, 0), (-500, 0), (20, 2), (-300, -2), (0, 2)] {
            let drift = ((parts_in_million + error) << 32) / 1_000_000;
            let mut lag = Lag::default();
            let mut now = START;
            let mut apart = 3_000_000_u64;
            for step in 0..10_000 {
                now += 100_000;
                apart = apart.wrapping_add_signed(parts_in_million / 10);
                let is_local = step % 100 == 0;
                let delay = if is_local { 300 } else { 5_300 };
                let time = wakeup(now, apart, delay, is_local, drift, &mut lag);
                let expected = now - delay + 300;
                assert!(
                    time.abs_diff(expected) < 400,
                    "expected about {expected}, saw {time} at step {step} of {parts_in_million} in a million"
                );
            }
            // The machine slept.
            apart += 3_600_000_000_000;
            let mut early = |delay, is_local| {
                now += 10_000;
                now - wakeup(now, apart, delay, is_local, 0, &mut lag)
            };
            assert_about(early(5_300, false), 0, "late");
            assert_about(early(300, true), 0, "in time");
            assert_about(early(5_300, false), 5_000, "late");
        }
    }

    #[test]
    fn no_clock_is_taken_for_unknown() {
        assert_eq!(QueueClock::new(0, false), QueueClock::UNKNOWN);
        assert_eq!(QueueClock::new(1 << 61, true), QueueClock::UNKNOWN);
        assert_ne!(QueueClock::new((1 << 61) - 1, false), QueueClock::UNKNOWN);
    }
}
