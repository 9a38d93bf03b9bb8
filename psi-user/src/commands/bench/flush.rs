//! `psitrace bench flush`: three ways to hold the updated lists, under the same load, in the bins of the rstat series.
//!
//! The load: threads that begin and end waits in cgroups, with the very accounting of the BPF programs, on memory of the
//! maps' shape. A flush every 200 us. For what interrupts do to any two looks at the clock there is a column in which
//! nothing is held.

use std::{
    process::ExitCode,
    sync::atomic::{
        AtomicBool, AtomicU64,
        Ordering::{Relaxed, SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use psi_user::{
    flush::HoldTimes,
    synthetic::{Hold, LockedFlusher, Locks, Met, Synthetic},
};
use serde::Serialize;

use super::machine::{Interruptions, Machine};
use crate::{
    cli::BenchFlushArgs,
    commands::{
        Failure,
        holds::{Column, table, thousands},
        print_report,
    },
};

/// Hold times of the seed: before the series, with its first patch, with all three. A parallel kernel build on a
/// two-socket server.
const SERIES: [(&str, [u64; 14]); 3] = [
    (
        "before",
        [
            804_139, 9_772_767, 4_595_028, 303_481, 78_971, 24_583, 6_908, 8_015, 2_192, 316, 43, 7, 2, 3,
        ],
    ),
    (
        "patch 1",
        [13_738_708, 1_177_194, 4_984, 3_562, 1_314, 18, 12, 0, 0, 0, 0, 0, 0, 0],
    ),
    (
        "patches 1-3",
        [15_484_707, 207_382, 3_174, 3_006, 1_066, 15, 10, 0, 0, 0, 0, 0, 0, 0],
    ),
];

/// Time between two flushes.
const PAUSE: Duration = Duration::from_micros(200);
/// CPUs that the updaters play.
const PLAYED_CPUS: usize = 8;

#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    machine: Machine,
    cgroups: u32,
    updaters: usize,
    ways: Vec<Way>,
    /// Two looks at the clock with nothing between: what interrupts do.
    control: Control,
}

/// One way to hold.
#[derive(Debug, Serialize)]
struct Way {
    name: &'static str,
    updates: u64,
    hold_us: HoldTimes,
    longest_hold_ns: u64,
    /// Of the holds, shorter than 1 us, %.
    within_1_us_percent: f64,
    past_10_us: u64,
    updates_delayed: u64,
    longest_delay_ns: u64,
    flusher: Interruptions,
}

#[derive(Debug, Serialize)]
struct Control {
    hold_us: HoldTimes,
    longest_ns: u64,
    past_10_us: u64,
    thread: Interruptions,
}

/// How the lists are held.
#[derive(Clone, Copy)]
enum Strategy {
    Locked(Hold),
    Exchange,
}

const WAYS: [(&str, Strategy); 3] = [
    ("walk", Strategy::Locked(Hold::Walk)),
    ("chain", Strategy::Locked(Hold::Chain)),
    ("exchange", Strategy::Exchange),
];

pub(crate) fn run(args: &BenchFlushArgs) -> Result<ExitCode, Failure> {
    let machine = Machine::here();
    // The flusher needs a CPU too.
    let updaters = machine.cpus.saturating_sub(1).clamp(1, PLAYED_CPUS);
    let ways = WAYS
        .iter()
        .map(|&(name, strategy)| measure(name, strategy, args, updaters))
        .collect::<Result<Vec<_>, _>>()?;
    let looks = ways.last().map_or(0, |way| way.hold_us.total());
    let report = Report {
        schema: "psitrace-bench-flush/1",
        machine,
        cgroups: args.cgroups,
        updaters,
        ways,
        control: control(args, updaters, looks)?,
    };
    print_report(&report, args.json, lines)?;
    Ok(ExitCode::SUCCESS)
}

fn synthetic(args: &BenchFlushArgs) -> Result<Synthetic, Failure> {
    Synthetic::new(PLAYED_CPUS, args.cgroups as usize + 1)
        .map_err(|error| Failure::Cannot(format!("memory for {} cgroups: {error}", args.cgroups)))
}

/// Runs `flusher` until there were enough updates; says how many there were.
fn under_load(
    args: &BenchFlushArgs,
    updaters: usize,
    update: impl Fn(usize, u32, bool) + Sync,
    mut flusher: impl FnMut() -> bool,
) -> u64 {
    let updates = AtomicU64::new(0);
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        for first in 0..updaters {
            let (updates, ends, update) = (&updates, &ends, &update);
            scope.spawn(move || {
                // Which cgroup is next: Knuth's MMIX generator.
                let mut seed = first as u64;
                while !ends.load(Relaxed) {
                    for cpu in (first..PLAYED_CPUS).step_by(updaters) {
                        seed = seed
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        let slot = ((seed >> 33) % u64::from(args.cgroups)) as u32 + 1;
                        update(cpu, slot, true);
                        update(cpu, slot, false);
                        updates.fetch_add(2, Relaxed);
                    }
                }
            });
        }
        loop {
            let enough = updates.load(Relaxed) >= args.updates;
            if !flusher() && enough {
                break;
            }
            thread::sleep(PAUSE);
        }
        ends.store(true, Relaxed);
    });
    updates.load(Relaxed)
}

fn measure(name: &'static str, strategy: Strategy, args: &BenchFlushArgs, updaters: usize) -> Result<Way, Failure> {
    /// Long enough for rare things.
    const LEAST: Duration = Duration::from_secs(3);
    let machine = synthetic(args)?;
    let (locks, met) = (Locks::new(PLAYED_CPUS), Met::default());
    let before = Interruptions::so_far();
    let start = Instant::now();
    let (updates, hold_us) = match strategy {
        Strategy::Locked(hold) => {
            let mut flusher = LockedFlusher::new(&machine, hold);
            let update = |cpu, slot, begins| machine.wait_locked(cpu, slot, begins, &locks, &met);
            let updates = under_load(args, updaters, update, || {
                flusher.flush(&machine, &locks);
                start.elapsed() < LEAST
            });
            (updates, flusher.hold_times)
        }
        Strategy::Exchange => {
            let mut flusher = machine.flusher();
            let update = |cpu, slot, begins| machine.wait(cpu, slot, begins);
            let updates = under_load(args, updaters, update, || {
                flusher.flush(&machine);
                start.elapsed() < LEAST
            });
            (updates, flusher.hold_times())
        }
    };
    Ok(Way {
        name,
        updates,
        hold_us,
        longest_hold_ns: hold_us.longest_ns,
        within_1_us_percent: hold_us.counts[0] as f64 * 100.0 / hold_us.total().max(1) as f64,
        past_10_us: hold_us.past_10_us(),
        updates_delayed: met.delayed.load(SeqCst),
        longest_delay_ns: met.longest_ns.load(SeqCst),
        flusher: Interruptions::so_far().since(before),
    })
}

/// As many looks at the clock as the exchange was held, as often, under the same load, with nothing in between.
fn control(args: &BenchFlushArgs, updaters: usize, looks: u64) -> Result<Control, Failure> {
    let machine = synthetic(args)?;
    let mut hold_us = HoldTimes::default();
    let before = Interruptions::so_far();
    under_load(
        args,
        updaters,
        |cpu, slot, begins| machine.wait(cpu, slot, begins),
        || {
            for _ in 0..PLAYED_CPUS {
                let start = Instant::now();
                hold_us.add(start.elapsed().as_nanos() as u64);
            }
            hold_us.total() < looks
        },
    );
    Ok(Control {
        hold_us,
        longest_ns: hold_us.longest_ns,
        past_10_us: hold_us.past_10_us(),
        thread: Interruptions::so_far().since(before),
    })
}

fn lines(report: &Report) -> String {
    use std::fmt::Write as _;
    let mut text = format!(
        "{}\n{} cgroups on {PLAYED_CPUS} played CPUs, {} updating threads, a flush every {} us\n\n",
        report.machine.line(),
        thousands(report.cgroups.into()),
        report.updaters,
        PAUSE.as_micros()
    );
    let series = SERIES.iter().map(|&(name, counts)| Column { name, counts });
    let ours = report.ways.iter().map(|way| Column::new(way.name, &way.hold_us));
    let control = Column::new("(nothing)", &report.control.hold_us);
    let columns: Vec<Column<'_>> = series.chain(ours).chain([control]).collect();
    text += &table("Hold time", &columns);
    text += "\nbefore, patch 1, patches 1-3: the kernel's rstat, as its series tells (kernel build, two sockets)\n";
    text +=
        "walk: held while the list is walked and read; chain: while it is taken apart; exchange: what psitrace does\n";
    text += "(nothing): two looks at the clock, for what interrupts do\n\n";
    for way in &report.ways {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>9}: {} updates, {} delayed, longest delay {} ns; {:.3} % of holds within 1 us, longest {} ns, {} past 10 us",
            way.name,
            thousands(way.updates),
            thousands(way.updates_delayed),
            thousands(way.longest_delay_ns),
            way.within_1_us_percent,
            thousands(way.longest_hold_ns),
            way.past_10_us,
        );
        let Interruptions {
            preemptions,
            steal_ticks,
            interrupts,
        } = way.flusher;
        let _ = writeln!(
            text,
            "{:>9}  meanwhile: flusher preempted {preemptions} times, {steal_ticks} ticks stolen, {} interrupts on the machine",
            "",
            thousands(interrupts)
        );
    }
    let _ = writeln!(
        text,
        "(nothing): longest {} ns, {} past 10 us; preempted {} times",
        thousands(report.control.longest_ns),
        report.control.past_10_us,
        report.control.thread.preemptions
    );
    text
}
