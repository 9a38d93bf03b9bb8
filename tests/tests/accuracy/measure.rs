//! One comparison: its cgroups, its bounds, its lines for docs/accuracy.md.

use std::{
    env,
    fs::OpenOptions,
    io::Write as _,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tests::{cgroup::Cgroup, machine, program, session::Session};

use crate::model::{Circumstances, allowed_us, goal_us};

/// How long loads run before they are measured.
const SETTLE: Duration = Duration::from_secs(1);
/// psitrace or the whole machine may be stopped between two readings. Wrong figures are wrong each time.
const TRIES: u32 = 4;
/// A comparison that takes so much longer than it should is not used. The kernel keeps a CPU's times in 32 bits, 4.3 s.
const MOST_LATE_S: u64 = 3;

/// A workload's place.
#[derive(Debug)]
pub(crate) struct Place {
    /// The workload's own cgroup.
    pub(crate) own: Cgroup,
    pub(crate) parent: Cgroup,
    /// CPUs of the machine, while all are there.
    cpus: usize,
    pub(crate) session: Session,
}

/// One figure.
struct Figure {
    line: Value,
    text: String,
    is_beyond_goal: bool,
    is_wrong: bool,
}

impl Place {
    /// None, and a skip, where there is nothing to compare with.
    pub(crate) fn new(name: &'static str) -> Option<Self> {
        let session = Session::start(name)?;
        if !machine::has_kernel_psi() {
            session.skip("the kernel keeps no PSI to compare with");
            return None;
        }
        let parent = Cgroup::new(name);
        Some(Self {
            own: parent.child("own"),
            parent,
            cpus: machine::cpus().len(),
            session,
        })
    }

    /// Compares the workload's cgroup, its parent and the root. `made_for` names the figures that must have grown, `cpu
    /// some` say, so that there is something to compare.
    pub(crate) fn check(&self, made_for: &[&str]) {
        thread::sleep(SETTLE);
        let mut wrong = Vec::new();
        for remaining in (0..TRIES).rev() {
            let Some(figures) = self.compare(seconds(), made_for) else {
                wrong.push("the machine stood still".to_owned());
                continue;
            };
            for Figure { text, .. } in figures.iter().filter(|figure| figure.is_beyond_goal) {
                println!("beyond the goal: {text}");
            }
            let found: Vec<_> = figures.iter().filter(|figure| figure.is_wrong).collect();
            if found.is_empty() || remaining == 0 {
                write(&figures);
            }
            if found.is_empty() {
                return;
            }
            wrong.extend(found.iter().map(|figure| figure.text.clone()));
        }
        panic!("expected the kernel's figures, saw in each of {TRIES} runs others: {wrong:#?}");
    }

    /// As [`Self::check`], with `step` over and over meanwhile.
    pub(crate) fn check_while(&self, made_for: &[&str], mut step: impl FnMut() + Send) {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            // Also when the check panics: or the scope would wait forever.
            let _end = OnDrop(|| is_over.store(true, Relaxed));
            let steps = scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    step();
                }
            });
            self.check(made_for);
            assert!(!steps.is_finished(), "expected steps to the end: their panic is above");
        });
    }

    /// None when the machine, a virtual one, stood still meanwhile: the kernel's own figures lose time then.
    fn compare(&self, seconds: u64, made_for: &[&str]) -> Option<Vec<Figure>> {
        let duration = format!("{seconds}s");
        let cgroups = [("own", self.own.path()), ("parent", self.parent.path()), ("root", "/")];
        let mut arguments = vec!["compare", "--json", "--duration", &duration];
        arguments.extend(cgroups.iter().flat_map(|(_, path)| ["--cgroup", *path]));
        let counts = || (machine::context_switches(), machine::disk_requests());
        let before = counts();
        let finished = program::run(&arguments);
        let after = counts();
        let comparison = finished.expect_success().json();
        let quality = &comparison["quality"];
        let circumstances = Circumstances {
            missed_switches: quality["missed_switches"].as_u64().expect("a count"),
            switches: after.0 - before.0,
            disk_requests: after.1 - before.1,
            has_all_memory_stalls: comparison["source"]["memstall"] == "fentry",
        };
        println!("{}: {circumstances:?}, {quality}", self.session.name());
        assert!(
            self.parent.is_populated(),
            "expected the load at work after psitrace has gone, saw its end"
        );
        let rows = comparison["rows"].as_array().expect("rows");
        let figure = |row: &Value| {
            let (cgroup, _) = cgroups
                .iter()
                .find(|(_, path)| row["cgroup"] == *path)
                .expect("a cgroup that was asked for");
            self.figure(row, cgroup, seconds, made_for, circumstances)
        };
        let took_s = comparison["interval_ns"].as_f64().expect("a number") / 1e9;
        if took_s > (seconds + MOST_LATE_S) as f64 {
            println!("not used: {took_s:.1} s instead of {seconds} s");
            return None;
        }
        Some(rows.iter().map(figure).collect())
    }

    fn figure(
        &self,
        row: &Value,
        cgroup: &str,
        seconds: u64,
        made_for: &[&str],
        circumstances: Circumstances,
    ) -> Figure {
        let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("expected {key}, saw {row}"));
        let name = |key: &str| row[key].as_str().unwrap_or_else(|| panic!("expected {key}, saw {row}"));
        let (resource, kind) = (name("resource"), name("kind"));
        let (kernel_us, difference_us) = (number("kernel_us"), number("difference_us"));
        let allowed_us = allowed_us(resource, kernel_us, number("skew_us"), circumstances);
        let text = format!(
            "{cgroup} {resource} {kind}: kernel {:.1} ms, difference {:+.1} ms ({:+.2} %), allowed {:.1} ms",
            kernel_us / 1e3,
            difference_us / 1e3,
            difference_us * 100.0 / kernel_us.max(1.0),
            allowed_us / 1e3
        );
        println!("{text}");
        // A twentieth of the time: or it was the wrong load.
        let is_made_for = cgroup == "own" && made_for.contains(&format!("{resource} {kind}").as_str());
        assert!(
            !is_made_for || kernel_us > seconds as f64 * 50_000.0,
            "expected pressure from this load, saw {text}"
        );
        Figure {
            line: json!({
                "kernel": machine::kernel(),
                "cpus": self.cpus,
                "workload": self.session.name(),
                "cgroup": cgroup,
                "resource": resource,
                "kind": kind,
                "kernel_us": kernel_us,
                "psitrace_us": number("psitrace_us"),
                "seconds": seconds,
                "missed_switches": circumstances.missed_switches,
                "switches": circumstances.switches,
                "disk_requests": circumstances.disk_requests,
            }),
            text,
            is_beyond_goal: difference_us.abs() > goal_us(kernel_us),
            is_wrong: difference_us.abs() > allowed_us,
        }
    }
}

/// How long a comparison is: PSITRACE_ACCURACY_SECONDS, or 20 s, the time that the goal is for.
fn seconds() -> u64 {
    env::var("PSITRACE_ACCURACY_SECONDS").map_or(20, |seconds| seconds.parse().expect("a number of seconds"))
}

/// Appends the figures to the file that PSITRACE_ACCURACY_OUTPUT names.
fn write(figures: &[Figure]) {
    let Some(path) = env::var_os("PSITRACE_ACCURACY_OUTPUT") else {
        return;
    };
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .expect("the file that PSITRACE_ACCURACY_OUTPUT names can be written");
    for Figure { line, .. } in figures {
        writeln!(file, "{line}").expect("room for the figures");
    }
}

/// Does something at the end of a scope, however it ends.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
