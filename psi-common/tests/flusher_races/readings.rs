//! What the flusher takes from a record while others change it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use loom::{sync::Arc, thread};
use psi_common::{
    account::{Stamp, total_at, walk},
    layout::State,
    word::{class, contribution},
};

use crate::{
    flush::Flusher,
    mapped::{MappedMaps, now_ns},
    memory::{Memory, Order, some_preemptions},
    slots::Slots,
};

const CPU_SOME: usize = 0;
const TICK_NS: u64 = 4_000_000;

/// A task begins to wait or stops, beside one that runs: one state changes.
fn wait(memory: &Memory, begins: bool) {
    let delta = contribution(class::waiting(false));
    let delta = if begins { delta } else { delta.wrapping_neg() };
    walk(&memory, 0, 0, delta, Stamp::UNREAD);
}

type Script = fn(&Memory);

/// Updaters at one time with a flush; then more flushes. `before` of the tasks wait at the start.
///
/// Says whether a reading was rejected in some order.
fn race(before: u64, updaters: &'static [Script], preemptions: Option<usize>) -> bool {
    let some_rejected = std::sync::Arc::new(AtomicBool::new(false));
    let rejects = std::sync::Arc::clone(&some_rejected);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        let memory = Arc::new(Memory::new(&[None], 1, true, Order::Full));
        let slots = Slots(vec![None]);
        let maps = MappedMaps {
            memory: Arc::clone(&memory),
            slots: 1,
        };
        walk(&&*memory, 0, 0, contribution(class::running(false)), Stamp::UNREAD);
        let start = maps.tell_time();
        let mut flusher = Flusher::new(&maps, start, TICK_NS);
        for _ in 0..before {
            wait(&memory, true);
        }
        let total = |flusher: &Flusher| flusher.totals(0)[CPU_SOME];
        let truth = |memory: &Memory| total_at(memory.time(0, 0, State::CpuSome), now_ns());

        let updaters: Vec<_> = updaters
            .iter()
            .map(|updater| {
                let memory = Arc::clone(&memory);
                thread::spawn(move || updater(&memory))
            })
            .collect();
        maps.tell_time();
        flusher.flush(&maps, &slots);
        let meanwhile = total(&flusher);
        for updater in updaters {
            updater.join().expect("no panic");
        }

        let end = maps.tell_time();
        assert!(meanwhile <= end - start, "{meanwhile} in {}", end - start);
        flusher.flush(&maps, &slots);
        // What was shown never falls, and each event's clock is off by what passes until it lands.
        let settled = total(&flusher);
        let most = truth(&memory).max(meanwhile) + (end - start);
        assert!(
            settled >= truth(&memory) && settled <= most,
            "{settled} for {}",
            truth(&memory)
        );

        // From here on nothing races, and no reading is out of bounds.
        let rejected = flusher.rejected;
        rejects.fetch_or(rejected != 0, Relaxed);
        for begins in [true, false] {
            wait(&memory, begins);
            maps.tell_time();
            flusher.flush(&maps, &slots);
        }
        assert_eq!(flusher.rejected, rejected);
        assert!(total(&flusher) >= truth(&memory));
    });
    some_rejected.load(Relaxed)
}

const WAITS: Script = |memory| wait(memory, true);
const RUNS: Script = |memory| wait(memory, false);
const WAITS_AND_RUNS: Script = |memory| {
    wait(memory, true);
    wait(memory, false);
};

#[test]
fn a_wait_begins() {
    assert!(!race(0, &[WAITS], None));
}

#[test]
fn a_wait_begins_and_ends() {
    assert!(!race(0, &[WAITS_AND_RUNS], None));
}

#[test]
fn a_wait_ends_as_another_begins() {
    assert!(
        race(1, &[RUNS, WAITS], Some(some_preemptions(3))),
        "the adds never landed the other way round"
    );
}

#[test]
fn two_waits() {
    race(1, &[RUNS, WAITS_AND_RUNS], Some(some_preemptions(3)));
}
