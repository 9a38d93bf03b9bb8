//! A released cgroup's slot is emptied while an event that is late still counts there.
//!
//! psi-user keeps the two apart by time: a slot rests for 20 ms before it is emptied. These tests tell what happens if
//! an event is later than that.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use loom::{sync::Arc, thread};
use psi_common::{
    account::{Stamp, walk},
    word::{class, contribution},
};

use crate::memory::{Memory, Order};

const TREE: [Option<u32>; 2] = [None, Some(0)];
const SLOT: u32 = 1;

/// Empties the slot if it counts nothing, against a late event; then the event's counterpart. Says whether the counts
/// are right in every order.
fn race(clear: fn(&Memory, u32)) -> bool {
    let wrong = std::sync::Arc::new(AtomicBool::new(false));
    let seen = std::sync::Arc::clone(&wrong);
    loom::model(move || {
        let memory = Arc::new(Memory::new(&TREE, 1, true, Order::Full));
        let delta = contribution(class::waiting(false));
        let late = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || _ = walk(&&*memory, 0, SLOT, delta, Stamp::UNREAD))
        };
        if memory.word(0, SLOT) == 0 {
            clear(&memory, SLOT);
        }
        late.join().expect("no panic");
        walk(&&*memory, 0, SLOT, delta.wrapping_neg(), Stamp::UNREAD);
        wrong.fetch_or(!memory.is_right(|_, _| 0), Relaxed);
    });
    !seen.load(Relaxed)
}

/// Without the rest one late event would leave a count below zero for good.
#[test]
fn what_is_overwritten_loses_a_late_event() {
    assert!(!race(Memory::overwrite));
}

/// As psi-user does it: an emptied slot's word is 0 already and left alone.
#[test]
fn what_is_taken_off_keeps_it() {
    assert!(race(Memory::take_off));
}
