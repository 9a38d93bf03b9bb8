//! Running averages exactly as the kernel computes them (kernel/sched/psi.c, update_averages and calc_avgs;
//! include/linux/sched/loadavg.h, calc_load).

const FSHIFT: u32 = 11;
const FIXED_1: u64 = 1 << FSHIFT;
/// EXP_10s, EXP_60s, EXP_300s: 1/exp(2s/10s) and so on, as fixed point.
const EXP: [u64; 3] = [1677, 1981, 2034];

/// Length of an averaging period in ns: 2 s and one jiffy (PSI_FREQ), for a jiffy of `tick_ns`.
pub const fn period_ns(tick_ns: u64) -> u64 {
    let hz = 1_000_000_000 / tick_ns;
    (2 * hz + 1) * tick_ns
}

/// avg10, avg60 and avg300 of one state, with the total that they have seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Averages {
    avg: [u64; 3],
    seen_ns: u64,
}

/// When one group's averages were brought up to date, and when they are due.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "the unit belongs into each name")]
pub struct Schedule {
    last_ns: u64,
    next_ns: u64,
    period_ns: u64,
}

/// One update that is due.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    missed: u64,
    span_ns: u64,
    period_ns: u64,
}

impl Schedule {
    /// A group that exists since `now_ns`.
    pub const fn new(now_ns: u64, period_ns: u64) -> Self {
        Self {
            last_ns: now_ns,
            next_ns: now_ns + period_ns,
            period_ns,
        }
    }

    /// What is due at `now_ns`, if anything; then it counts as done.
    pub fn due(&mut self, now_ns: u64) -> Option<Due> {
        if now_ns < self.next_ns {
            return None;
        }
        let mut missed = 0;
        if now_ns - self.next_ns >= self.period_ns {
            missed = (now_ns - self.next_ns) / self.period_ns;
        }
        self.next_ns += (1 + missed) * self.period_ns;
        let span_ns = now_ns - (self.last_ns + missed * self.period_ns);
        self.last_ns = now_ns;
        Some(Due {
            missed,
            span_ns,
            period_ns: self.period_ns,
        })
    }
}

impl Averages {
    /// Brings the averages up to date with the state's total.
    pub fn update(&mut self, total_ns: u64, due: Due) {
        let Due { missed, span_ns, .. } = due;
        let gained = total_ns.saturating_sub(self.seen_ns);
        if missed != 0 && gained != 0 {
            self.catch_up(gained, due);
            return;
        }
        // The sample may exceed the period where the total was taken later: the overage is carried over.
        let sample = gained.min(span_ns);
        self.seen_ns += sample;
        for (avg, exp) in self.avg.iter_mut().zip(EXP) {
            if missed != 0 {
                *avg = calc_load(*avg, fixed_power(exp, missed), 0);
            }
            *avg = calc_load(*avg, exp, percent_of(sample, span_ns));
        }
    }

    /// The kernel misses periods only while nothing runs. Here this process was kept from running while others went
    /// on: the stall time is spread over the periods that it came from.
    fn catch_up(&mut self, gained: u64, due: Due) {
        // What is further back has no part in any average.
        const PERIODS: u64 = 1024;
        let Due { missed, span_ns, .. } = due;
        let span_ns = span_ns + missed * due.period_ns;
        let sample = gained.min(span_ns);
        self.seen_ns += sample;
        for (avg, exp) in self.avg.iter_mut().zip(EXP) {
            for _ in 0..(missed + 1).min(PERIODS) {
                *avg = calc_load(*avg, exp, percent_of(sample, span_ns));
            }
        }
    }

    /// avg10, avg60 and avg300 in %, with the kernel's two decimals.
    pub fn percent(&self) -> [f64; 3] {
        self.avg.map(|avg| {
            let hundredths = (avg >> FSHIFT) * 100 + (((avg & (FIXED_1 - 1)) * 100) >> FSHIFT);
            hundredths as f64 / 100.0
        })
    }
}

/// A sample's share of its time in whole %, as fixed point.
fn percent_of(sample: u64, span_ns: u64) -> u64 {
    (u128::from(sample) * 100 / u128::from(span_ns.max(1))) as u64 * FIXED_1
}

fn calc_load(load: u64, exp: u64, active: u64) -> u64 {
    let mut new = load * exp + active * (FIXED_1 - exp);
    if active >= load {
        new += FIXED_1 - 1;
    }
    new / FIXED_1
}

/// fixed_power_int (kernel/sched/loadavg.c): `x` to the power of `n`, rounding each product.
fn fixed_power(x: u64, n: u64) -> u64 {
    let (mut x, mut n, mut result) = (x, n, FIXED_1);
    while n != 0 {
        if n & 1 != 0 {
            result = (result * x + (1 << (FSHIFT - 1))) >> FSHIFT;
        }
        n >>= 1;
        if n != 0 {
            x = (x * x + (1 << (FSHIFT - 1))) >> FSHIFT;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: u64 = 4_000_000;

    fn run(periods: u64, share_percent: u64) -> Averages {
        let period = period_ns(TICK);
        let mut schedule = Schedule::new(0, period);
        let mut averages = Averages::default();
        let mut total = 0;
        for n in 1..=periods {
            total += period * share_percent / 100;
            averages.update(total, schedule.due(n * period).expect("a period has passed"));
        }
        averages
    }

    #[test]
    fn half_for_five_periods_prints_31_59() {
        assert!(
            (run(5, 50).percent()[0] - 31.59).abs() < 1e-9,
            "got {:?}",
            run(5, 50).percent()
        );
    }

    #[test]
    fn all_the_time_converges_to_100() {
        let [avg10, avg60, _] = run(600, 100).percent();
        assert!(
            (avg10 - 100.0).abs() < 1e-9 && (avg60 - 100.0).abs() < 1e-9,
            "got {avg10} {avg60}"
        );
    }

    #[test]
    fn nothing_is_due_before_a_period_has_passed() {
        let period = period_ns(TICK);
        assert_eq!(period, 2_004_000_000);
        let mut schedule = Schedule::new(7, period);
        assert!(schedule.due(7 + period - 1).is_none());
        assert!(schedule.due(7 + period).is_some());
        assert!(schedule.due(7 + period).is_none());
    }

    #[test]
    fn missed_periods_decay_like_idle_ones() {
        let period = period_ns(TICK);
        let mut late = run(5, 50);
        let mut schedule = Schedule::new(5 * period, period);
        late.update(late.seen_ns, schedule.due(10 * period).expect("due"));
        let mut each = run(5, 50);
        let mut schedule = Schedule::new(5 * period, period);
        for n in 6..=10 {
            each.update(each.seen_ns, schedule.due(n * period).expect("due"));
        }
        let (late, each) = (late.percent()[0], each.percent()[0]);
        // The kernel's power by squaring rounds differently from five single steps.
        assert!((late - each).abs() < 0.05, "at once {late}, one by one {each}");
    }

    #[test]
    fn a_tracer_that_was_held_up_spreads_what_it_missed() {
        let period = period_ns(TICK);
        let mut late = run(5, 50);
        let mut schedule = Schedule::new(5 * period, period);
        late.update(
            late.seen_ns + 100 * period / 2,
            schedule.due(105 * period).expect("due"),
        );
        assert_eq!(late.avg, run(105, 50).avg, "at once, and period by period");
    }

    #[test]
    fn a_sample_never_exceeds_its_period() {
        let period = period_ns(TICK);
        let mut schedule = Schedule::new(0, period);
        let mut averages = Averages::default();
        averages.update(3 * period, schedule.due(period).expect("due"));
        assert_eq!(averages.seen_ns, period);
    }
}
