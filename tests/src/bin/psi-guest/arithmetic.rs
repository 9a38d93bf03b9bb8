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
    suite::{Guest, ahead_on, load_cpu},
};

/// What may differ, in % of the time.
const POINTS: f64 = 2.0;
/// What a load must reach to prove anything, in % of the time. What a read takes, beside what it costs, is the host's
/// business.
const PRESSURE: f64 = 10.0;
const IO_PRESSURE: f64 = 2.5;

/// Three tasks share a CPU: two in `a`, one in `b`.
pub(crate) fn spinners(guest: &mut Guest) {
    let parent = Cgroup::new("spinners");
    let (a, b) = (parent.child("a"), parent.child("b"));
    let spinner = |cgroup| Load::new(PSI_LOAD).within(cgroup).on_cpu(load_cpu()).start(&["spin"]);
    let _in_a = [spinner(&a), spinner(&a)];
    let in_b = spinner(&b);

    let measured = measure(guest, &parent, &in_b);
    let mut figures = Figures::new(guest, "three spinners");
    for (name, cgroup, kind, expected) in [
        ("a", &a, "some", 100.0),
        ("a", &a, "full", 100.0 / 3.0),
        ("b", &b, "some", 200.0 / 3.0),
        ("b", &b, "full", 200.0 / 3.0),
        ("parent", &parent, "some", 100.0),
        ("parent", &parent, "full", 0.0),
    ] {
        let seen = measured.growth(cgroup, "cpu", kind);
        figures.near(&format!("cpu {kind} of {name}"), seen, expected, POINTS);
    }
    let seen = measured.growth(&b, "cpu", "some");
    figures.near("cpu some of b, by schedstat", seen, measured.waiting(), POINTS);
    figures.finish();
}

/// The load waits for nothing but memory: all its sleep is a stall, and most of what it runs in the kernel.
pub(crate) fn throttled(guest: &mut Guest) {
    let (load, cgroup) = too_little_memory("throttled", "0");
    let measured = measure(guest, &cgroup, &load);
    let mut figures = Figures::new(guest, "memory.high, no swap");
    for kind in ["some", "full"] {
        let seen = measured.growth(&cgroup, "memory", kind);
        let least = measured.asleep().max(PRESSURE);
        figures.between(&format!("memory {kind}"), seen, least, measured.not_in_user_space());
    }
    figures.finish();
}

/// The load sleeps for memory, for io, or for both at once.
pub(crate) fn swapping(guest: &mut Guest) {
    let (load, cgroup) = too_little_memory("swapping", "max");
    let measured = measure(guest, &cgroup, &load);
    let mut figures = Figures::new(guest, "memory.high, swap");
    for kind in ["some", "full"] {
        let memory = measured.growth(&cgroup, "memory", kind);
        let io = measured.growth(&cgroup, "io", kind);
        figures.between(
            &format!("memory {kind}"),
            memory,
            PRESSURE,
            measured.not_in_user_space(),
        );
        figures.between(&format!("io {kind}"), io, 0.0, measured.asleep());
        figures.between(
            &format!("memory + io {kind}"),
            memory + io,
            measured.asleep(),
            measured.asleep() + measured.not_in_user_space(),
        );
    }
    // One task: when it stalls, all do.
    let [some, full] = ["some", "full"].map(|kind| measured.growth(&cgroup, "memory", kind));
    figures.near("memory full, as some", full, some, 0.1);
    figures.finish();
}

/// The load sleeps for nothing but io.
pub(crate) fn io(guest: &mut Guest) {
    let (load, cgroup) = reading(guest, "io");
    let measured = measure(guest, &cgroup, &load);
    let mut figures = Figures::new(guest, "direct reads");
    for kind in ["some", "full"] {
        let seen = measured.growth(&cgroup, "io", kind);
        figures.near(&format!("io {kind}"), seen, measured.asleep(), POINTS);
        figures.between(&format!("io {kind}, at all"), seen, IO_PRESSURE, 100.0);
    }
    figures.finish();
}

/// What psitrace and the scheduler say of the same time.
#[derive(Debug)]
struct Measured {
    before: Record,
    after: Record,
    /// By one of the loads.
    spent: Spent,
}

/// Six seconds of a cgroup and its children.
fn measure(guest: &mut Guest, cgroup: &Cgroup, load: &Working) -> Measured {
    // Out of the loads' way: this is about their shares of a CPU.
    let measured = ahead_on(0, || {
        let mut dump = Dump::start(&["--cgroup", &cgroup.glob()]);
        // The first second is the tracer's own start.
        dump.record();
        let before = dump.fresh();
        let clocks = Clocks::of(load.pid());
        let after = dump.fresh_after(6);
        let spent = clocks.until(Clocks::of(load.pid()));
        dump.finish();
        Measured { before, after, spent }
    });
    guest.note_quality(&measured.after.json["quality"]);
    measured
}

/// All in % of the time.
impl Measured {
    fn growth(&self, cgroup: &Cgroup, resource: &str, kind: &str) -> f64 {
        self.before.growth(&self.after, cgroup.path(), resource, kind)
    }

    fn waiting(&self) -> f64 {
        self.percent(self.spent.waiting)
    }

    fn asleep(&self) -> f64 {
        self.percent(self.spent.asleep)
    }

    fn not_in_user_space(&self) -> f64 {
        100.0 - self.percent(self.spent.in_user_space)
    }

    fn percent(&self, part: Duration) -> f64 {
        part.as_secs_f64() * 100.0 / self.spent.elapsed.as_secs_f64()
    }
}

/// The figures of one workload. All are looked at before the test fails.
struct Figures<'a> {
    guest: &'a mut Guest,
    workload: &'static str,
    wrong: Vec<String>,
}

impl<'a> Figures<'a> {
    fn new(guest: &'a mut Guest, workload: &'static str) -> Self {
        Self {
            guest,
            workload,
            wrong: Vec::new(),
        }
    }

    fn near(&mut self, figure: &str, seen: f64, expected: f64, points: f64) {
        self.look(figure, seen, &format!("{expected:.1} %"), seen - expected, points);
    }

    fn between(&mut self, figure: &str, seen: f64, low: f64, high: f64) {
        let outside = (seen - high).max(0.0) + (seen - low).min(0.0);
        self.look(figure, seen, &format!("{low:.1} to {high:.1} %"), outside, POINTS);
    }

    fn look(&mut self, figure: &str, seen: f64, expected: &str, difference: f64, points: f64) {
        let Self { guest, workload, wrong } = self;
        let (saw, differs) = (format!("{seen:.1} %"), format!("{difference:+.1} points"));
        guest.row(workload, figure, expected, &saw, &differs);
        if difference.abs() > points {
            wrong.push(format!("{figure}: expected {expected} +- {points}, saw {saw}"));
        }
    }

    #[track_caller]
    fn finish(self) {
        let Self { wrong, .. } = self;
        assert!(wrong.is_empty(), "{}", wrong.join("; "));
    }
}
