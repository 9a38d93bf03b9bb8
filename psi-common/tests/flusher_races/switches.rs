//! A cgroup is disabled or enabled while others change its record: some of them looked at the flag before that.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use loom::{sync::Arc, thread};
use psi_common::{
    account::{Stamp, is_on, total_at, walk},
    layout::State,
    word::{class, contribution},
};

use crate::{
    enable::Switches,
    mapped::{MappedMaps, now_ns},
    memory::{Memory, Order, some_preemptions},
};

/// What an updater does, and whether its task waits before that.
#[derive(Clone, Copy)]
struct Script {
    waits: bool,
    run: fn(&Memory),
}

type Switch = fn(&mut Switches, &MappedMaps);

/// A task begins to wait or stops, beside one that runs.
fn wait(memory: &Memory, begins: bool) {
    let delta = contribution(class::waiting(false));
    walk(
        &memory,
        0,
        0,
        if begins { delta } else { delta.wrapping_neg() },
        Stamp::UNREAD,
    );
}

const WAITS: Script = Script {
    waits: false,
    run: |memory| wait(memory, true),
};
const RUNS: Script = Script {
    waits: true,
    run: |memory| wait(memory, false),
};
const WAITS_AND_RUNS: Script = Script {
    waits: false,
    run: |memory| {
        wait(memory, true);
        wait(memory, false);
    },
};
const RUNS_AND_WAITS: Script = Script {
    waits: true,
    run: |memory| {
        wait(memory, false);
        wait(memory, true);
    },
};

const DISABLE: Switch = |switches, maps| {
    switches.disable(maps, 0);
};
const ENABLE: Switch = |switches, maps| {
    switches.enable(maps, 0);
};
const DISABLE_AND_ENABLE: Switch = |switches, maps| {
    switches.disable(maps, 0);
    maps.tell_time();
    switches.enable(maps, 0);
};

/// What comes before, the one who switches, the others, and how often it is looked at after that. Says whether the record
/// is right in every order.
fn is_right(before: Switch, switch: Switch, updaters: &'static [Script], settles: usize) -> bool {
    let wrong = std::sync::Arc::new(AtomicBool::new(false));
    let seen = std::sync::Arc::clone(&wrong);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(some_preemptions(3));
    model.max_branches = 10_000;
    model.check(move || {
        let memory = Arc::new(Memory::new(&[None], 1, true, Order::Full).with_switches());
        let maps = MappedMaps {
            memory: Arc::clone(&memory),
            slots: 1,
        };
        let mut switches = Switches::default();
        walk(&&*memory, 0, 0, contribution(class::running(false)), Stamp::UNREAD);
        for _ in updaters.iter().filter(|updater| updater.waits) {
            wait(&memory, true);
        }
        maps.tell_time();
        before(&mut switches, &maps);
        let others: Vec<_> = updaters
            .iter()
            .map(|updater| {
                let memory = Arc::clone(&memory);
                thread::spawn(move || (updater.run)(&memory))
            })
            .collect();
        maps.tell_time();
        switch(&mut switches, &maps);
        for other in others {
            other.join().expect("no panic");
        }
        for _ in 0..settles {
            maps.tell_time();
            switches.settle(&maps);
        }
        let is_wrong = if switches.is_disabled(0) {
            let elapsed = maps.tell_time() - crate::memory::BOOT_NS;
            State::ALL.iter().any(|&state| {
                let time = memory.time(0, 0, state);
                let total = total_at(time, now_ns()) as i64;
                is_on(time) || !(-(elapsed as i64)..=elapsed as i64).contains(&total)
            })
        } else {
            let word = memory.word(0, 0);
            !memory.is_right(|_, _| word)
        };
        wrong.fetch_or(is_wrong, Relaxed);
    });
    !seen.load(Relaxed)
}

const NOTHING: Switch = |_, _| ();
/// As many rounds as a fault takes that one more event has hidden meanwhile.
const ROUNDS: usize = 3;

/// Right in every order, and not so without the settling.
fn settles(before: Switch, switch: Switch, updaters: &'static [Script]) {
    assert!(is_right(before, switch, updaters, ROUNDS), "a time is wrong for good");
    assert!(
        !is_right(before, switch, updaters, 0),
        "nothing to settle: then the test tests nothing"
    );
}

#[test]
fn disabled_as_a_wait_begins() {
    settles(NOTHING, DISABLE, &[WAITS]);
}

#[test]
fn disabled_as_a_wait_ends() {
    settles(NOTHING, DISABLE, &[RUNS]);
}

#[test]
fn disabled_as_one_waits_shortly() {
    settles(NOTHING, DISABLE, &[WAITS_AND_RUNS]);
}

#[test]
fn enabled_as_a_wait_begins() {
    settles(DISABLE, ENABLE, &[WAITS]);
}

#[test]
fn enabled_as_a_wait_ends() {
    settles(DISABLE, ENABLE, &[RUNS]);
}

#[test]
fn enabled_as_one_waits_shortly_and_one_runs_shortly() {
    settles(DISABLE, ENABLE, &[WAITS_AND_RUNS]);
    settles(DISABLE, ENABLE, &[RUNS_AND_WAITS]);
}

#[test]
fn enabled_as_two_change_it() {
    settles(DISABLE, ENABLE, &[WAITS, RUNS]);
}

#[test]
fn disabled_and_enabled_again_at_once() {
    for updaters in [&[WAITS][..], &[RUNS], &[WAITS_AND_RUNS], &[RUNS_AND_WAITS]] {
        assert!(is_right(NOTHING, DISABLE_AND_ENABLE, updaters, ROUNDS));
    }
}
