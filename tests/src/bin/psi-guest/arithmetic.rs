//! Loads whose pressure is known without PSI: from how many tasks share a CPU, and from the scheduler's account.

use std::time::Duration;

use tests::{
    cgroup::Cgroup,
    load::{Load, Working},
    record::Record,
    running::Dump,
};

use crate::{
    PSI_LOAD,
    comparison::{reading, too_little_memory},
    spent::{Clocks, Spent},
    suite::{Guest, ahead_on, load_cpu, row},
};

/// What may differ, in % of the time: what else runs on the CPU changes the shares, but not the account of one task.
const SHARE: f64 = 6.0;
const ACCOUNT: f64 = 2.0;

/// Three tasks share a CPU: two in `a`, one in `b`.
pub(crate) fn spinners(guest: &mut Guest) {
    let parent = Cgroup::new("spinners");
    let (a, b) = (parent.child("a"), parent.child("b"));
    let spinner = |cgroup| Load::new(PSI_LOAD).within(cgroup).on_cpu(load_cpu()).start(&["spin"]);
    let _in_a = [spinner(&a), spinner(&a)];
    let in_b = spinner(&b);

    let Measured { before, after, spent } = measure(guest, &parent, &in_b);
    let mut wrong = Wrong::default();
    for (name, cgroup, kind, expected) in [
        ("a", &a, "some", 100.0),
        ("a", &a, "full", 100.0 / 3.0),
        ("b", &b, "some", 200.0 / 3.0),
        ("b", &b, "full", 200.0 / 3.0),
        ("parent", &parent, "some", 100.0),
        ("parent", &parent, "full", 0.0),
    ] {
        let seen = before.growth(&after, cgroup.path(), "cpu", kind);
        wrong.within(
            "three spinners",
            &format!("cpu {kind} of {name}"),
            seen,
            expected..=expected,
            SHARE,
        );
    }
    let waiting = percent(spent.waiting, &spent);
    let seen = before.growth(&after, b.path(), "cpu", "some");
    wrong.within(
        "three spinners",
        "cpu some of b by schedstat",
        seen,
        waiting..=waiting,
        ACCOUNT,
    );
    wrong.finish();
}

/// The load waits for nothing but memory, so all its sleep is a stall; so is what it runs in the kernel, mostly.
pub(crate) fn throttled(guest: &mut Guest) {
    let (load, cgroup) = too_little_memory("throttled", "0");
    let Measured { before, after, spent } = measure(guest, &cgroup, &load);
    let (asleep, not_own) = (
        percent(spent.asleep, &spent),
        100.0 - percent(spent.in_user_space, &spent),
    );
    let mut wrong = Wrong::default();
    for kind in ["some", "full"] {
        let seen = before.growth(&after, cgroup.path(), "memory", kind);
        wrong.within(
            "memory.high, no swap",
            &format!("memory {kind}"),
            seen,
            asleep..=not_own,
            ACCOUNT,
        );
        wrong.at_least("memory.high, no swap", &format!("memory {kind}"), seen, 10.0);
    }
    wrong.finish();
}

/// The load sleeps for memory, for io, or for both at once.
pub(crate) fn swapping(guest: &mut Guest) {
    let (load, cgroup) = too_little_memory("swapping", "max");
    let Measured { before, after, spent } = measure(guest, &cgroup, &load);
    let (asleep, not_own) = (
        percent(spent.asleep, &spent),
        100.0 - percent(spent.in_user_space, &spent),
    );
    let growth = |resource, kind| before.growth(&after, cgroup.path(), resource, kind);
    let mut wrong = Wrong::default();
    for kind in ["some", "full"] {
        let (memory, io) = (growth("memory", kind), growth("io", kind));
        wrong.within(
            "memory.high, swap",
            &format!("memory {kind}"),
            memory,
            10.0..=not_own,
            ACCOUNT,
        );
        wrong.within("memory.high, swap", &format!("io {kind}"), io, 0.0..=asleep, ACCOUNT);
        wrong.at_least("memory.high, swap", &format!("memory + io {kind}"), memory + io, asleep);
    }
    // One task: when it stalls, all do.
    let (some, full) = (growth("memory", "some"), growth("memory", "full"));
    wrong.within("memory.high, swap", "memory full as some", full, some..=some, 0.1);
    wrong.finish();
}

/// The load sleeps for nothing but io.
pub(crate) fn io(guest: &mut Guest) {
    let (load, cgroup) = reading(guest, "io");
    let Measured { before, after, spent } = measure(guest, &cgroup, &load);
    let asleep = percent(spent.asleep, &spent);
    let mut wrong = Wrong::default();
    for kind in ["some", "full"] {
        let seen = before.growth(&after, cgroup.path(), "io", kind);
        wrong.within("direct reads", &format!("io {kind}"), seen, asleep..=asleep, ACCOUNT);
        wrong.at_least("direct reads", &format!("io {kind}"), seen, 10.0);
    }
    wrong.finish();
}

struct Measured {
    before: Record,
    after: Record,
    /// By one of the loads, meanwhile.
    spent: Spent,
}

/// Eight seconds of a cgroup and its children.
fn measure(guest: &mut Guest, cgroup: &Cgroup, load: &Working) -> Measured {
    // Out of the loads' way: this is about their shares of a CPU.
    let (before, after, spent) = ahead_on(0, || {
        let mut dump = Dump::start(&["--cgroup", &cgroup.glob()]);
        // The first second is the tracer's own start.
        dump.record();
        let before = dump.fresh();
        let clocks = Clocks::of(load.pid());
        let after = dump.fresh_after(8);
        let spent = clocks.until(Clocks::of(load.pid()));
        dump.finish();
        (before, after, spent)
    });
    guest.note_quality(&after.json["quality"]);
    Measured { before, after, spent }
}

fn percent(part: Duration, spent: &Spent) -> f64 {
    part.as_secs_f64() * 100.0 / spent.elapsed.as_secs_f64()
}

/// Figures that are not as they should be; all are looked at before the test fails.
#[derive(Debug, Default)]
struct Wrong {
    what: Vec<String>,
}

impl Wrong {
    /// `seen` is to be in `range`, give or take some points; all in %.
    fn within(&mut self, workload: &str, figure: &str, seen: f64, range: std::ops::RangeInclusive<f64>, points: f64) {
        let (low, high) = (*range.start(), *range.end());
        let expected = if low == high {
            format!("{low:.1} %")
        } else {
            format!("{low:.1} to {high:.1} %")
        };
        let difference = (seen - high).max(0.0) + (seen - low).min(0.0);
        row(
            workload,
            figure,
            &expected,
            &format!("{seen:.1} %"),
            &format!("{difference:+.1} points"),
        );
        if difference.abs() > points {
            self.what
                .push(format!("{figure}: expected {expected} +- {points}, saw {seen:.1} %"));
        }
    }

    fn at_least(&mut self, workload: &str, figure: &str, seen: f64, low: f64) {
        self.within(workload, figure, seen, low..=f64::INFINITY, ACCOUNT);
    }

    #[track_caller]
    fn finish(self) {
        let Self { what } = self;
        assert!(what.is_empty(), "{}", what.join("; "));
    }
}
