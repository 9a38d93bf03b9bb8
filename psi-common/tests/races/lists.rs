//! Updaters against the flusher on the updated list: no change goes unseen, no chain tears.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use loom::{sync::Arc, thread};
use psi_common::{
    account::{Stamp, walk},
    layout::State,
    list::Next,
    word::{class, contribution},
};

use crate::memory::{Memory, Order, some_preemptions};

/// The root and two cgroups in it.
const TREE: [Option<u32>; 3] = [None, Some(0), Some(0)];
const ONE: u32 = 1;
const OTHER: u32 = 2;

/// What the flusher read last of each record.
#[derive(Debug, Default)]
struct Seen([u64; TREE.len()]);

impl Seen {
    /// One flush.
    fn flush(&mut self, memory: &Memory) {
        let mut next = memory.has_updates(0).then(|| memory.detach(0)).flatten();
        let mut length = 0;
        while let Some(slot) = next {
            next = match memory.unlink(0, slot) {
                Next::Slot(slot) => Some(slot),
                Next::End => None,
                Next::Pending => {
                    thread::yield_now();
                    continue;
                }
            };
            length += 1;
            assert!(length <= TREE.len(), "a chain with a loop");
            Memory::barrier();
            self.0[slot as usize] = memory.time(0, slot, State::CpuSome);
        }
    }

    fn is_complete(&self, memory: &Memory) -> bool {
        (0..TREE.len()).all(|slot| self.0[slot] == memory.time(0, slot as u32, State::CpuSome))
    }
}

/// A task of `slot` begins to wait, or stops.
fn wait(memory: &Memory, slot: u32, begins: bool) {
    let delta = contribution(class::waiting(false));
    let delta = if begins { delta } else { delta.wrapping_neg() };
    walk(&memory, 0, slot, delta, Stamp::UNREAD);
}

type Script = fn(&Memory);

/// Updaters at one time with a flush; then one more flush. At first the records are on the list or not.
fn race(order: Order, updaters: &'static [Script], preemptions: Option<usize>, all_is_seen: fn(bool)) {
    race_from(false, order, updaters, preemptions, all_is_seen);
    race_from(true, order, updaters, preemptions, all_is_seen);
}

fn race_from(
    listed: bool,
    order: Order,
    updaters: &'static [Script],
    preemptions: Option<usize>,
    all_is_seen: fn(bool),
) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        let memory = Arc::new(Memory::new(&TREE, 1, true, order));
        // Each cgroup runs a task: waiting then flips one state only.
        for slot in [ONE, OTHER] {
            walk(&&*memory, 0, slot, contribution(class::running(false)), Stamp::UNREAD);
        }
        let mut seen = Seen::default();
        if !listed {
            seen.flush(&memory);
        }
        let updaters: Vec<_> = updaters
            .iter()
            .map(|updater| {
                let memory = Arc::clone(&memory);
                thread::spawn(move || updater(&memory))
            })
            .collect();
        seen.flush(&memory);
        for updater in updaters {
            updater.join().expect("no panic");
        }
        seen.flush(&memory);
        all_is_seen(seen.is_complete(&memory));
        // Whatever went unseen is seen with the next change.
        wait(&memory, ONE, true);
        wait(&memory, OTHER, true);
        for slot in [ONE, OTHER] {
            wait(&memory, slot, false);
        }
        seen.flush(&memory);
        assert_eq!(memory.detach(0), None);
    });
}

fn must(all_is_seen: bool) {
    assert!(all_is_seen, "a change went unseen");
}

const WAIT: Script = |memory| wait(memory, ONE, true);

#[test]
fn one_updater() {
    race(Order::Full, &[WAIT], None, must);
}

#[test]
fn one_updater_that_comes_again() {
    const TWICE: Script = |memory| {
        wait(memory, ONE, true);
        wait(memory, ONE, false);
    };
    race(Order::Full, &[TWICE], None, must);
}

#[test]
fn two_updaters_of_one_record() {
    race(Order::Full, &[WAIT, WAIT], Some(some_preemptions(3)), must);
}

#[test]
fn two_updaters_of_two_records() {
    let updaters: &[Script] = &[WAIT, |memory| wait(memory, OTHER, true)];
    race(Order::Full, updaters, Some(some_preemptions(3)), must);
}

/// Where adds are no barriers the flusher can miss a change, until the record's next: known, and rare.
#[test]
fn on_arm64_a_change_can_wait_for_the_next() {
    static MISSED: AtomicBool = AtomicBool::new(false);
    race(Order::Weak, &[WAIT], None, |all_is_seen| {
        MISSED.fetch_or(!all_is_seen, Relaxed);
    });
    assert!(
        MISSED.load(Relaxed),
        "it cannot: then the barrier's comment in psi-ebpf is wrong"
    );
}
