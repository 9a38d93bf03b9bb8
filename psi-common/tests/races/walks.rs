//! Two updaters on one record and its ancestors.

use loom::{sync::Arc, thread};
use psi_common::{
    account::{Stamp, walk},
    word::{class, contribution},
};

use crate::memory::{Memory, Order, is_thorough};

/// What a task can contribute.
const CLASSES: [u64; 8] = [
    0,
    class::waiting(false),
    class::waiting(true),
    class::sleeping(true, false),
    class::sleeping(true, true),
    class::sleeping(false, true),
    class::running(false),
    class::running(true),
];
/// How many of them are not running: a task on another CPU's record.
const NOT_RUNNING: usize = 6;

/// The root, a cgroup, and two in that.
const TREE: [Option<u32>; 4] = [None, Some(0), Some(1), Some(1)];
const PARENT: u32 = 1;
const ONE: u32 = 2;
const OTHER: u32 = 3;

/// A task of a slot goes from one class to another.
#[derive(Clone, Copy, Debug)]
struct Change {
    slot: u32,
    from: u64,
    to: u64,
}

impl Change {
    fn delta(self) -> u64 {
        contribution(self.to).wrapping_sub(contribution(self.from))
    }

    fn walk(self, memory: &Memory) {
        walk(&memory, 0, self.slot, self.delta(), Stamp::UNREAD);
    }
}

/// Two changes at one time, beside a task of class `bystander` in [`ONE`].
fn race(changes: [Change; 2], bystander: u64) {
    loom::model(move || {
        let memory = Arc::new(Memory::new(&TREE, 1, false, Order::Full));
        let word = |slot, class_of: fn(&Change) -> u64| {
            let own = changes.iter().filter(|change| change.slot == slot);
            own.map(|change| contribution(class_of(change))).sum::<u64>()
                + if slot == ONE { contribution(bystander) } else { 0 }
        };
        for slot in 0..TREE.len() as u32 {
            walk(&&*memory, 0, slot, word(slot, |change| change.from), Stamp::UNREAD);
        }
        let other = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || changes[1].walk(&memory))
        };
        changes[0].walk(&memory);
        other.join().expect("no panic");
        memory.check(|_, slot| word(slot, |change| change.to));
    });
}

/// All changes of a task among the first `classes` of [`CLASSES`].
fn changes(slot: u32, classes: usize) -> impl Iterator<Item = Change> {
    let all = (0..classes).flat_map(move |from| (0..classes).map(move |to| (from, to)));
    all.filter(|(from, to)| from != to).map(move |(from, to)| Change {
        slot,
        from: CLASSES[from],
        to: CLASSES[to],
    })
}

/// Whether the scheduler makes such a change in one event, on the task's CPU.
fn happens(Change { from, to, .. }: Change) -> bool {
    let runs = |class: u64| class & class::O != 0;
    let waits = |class: u64| class & class::W != 0;
    let stalls = |class: u64| class & class::M != 0;
    if runs(from) && runs(to) {
        return true;
    }
    stalls(from) == stalls(to) && (runs(from) || waits(from) && runs(to) || !waits(from) && waits(to))
}

/// Every change on the CPU itself against every arrival and departure from another CPU. All changes there are if
/// PSITRACE_CASES is set.
fn race_all(slots: [u32; 2], bystander: u64) {
    for local in changes(slots[0], CLASSES.len()).filter(|&change| happens(change) || is_thorough()) {
        for remote in changes(slots[1], NOT_RUNNING).filter(|change| change.from == 0 || change.to == 0) {
            race([local, remote], bystander);
        }
    }
}

#[test]
fn in_one_cgroup() {
    race_all([ONE, ONE], 0);
}

#[test]
fn in_two_cgroups_of_one_parent() {
    race_all([ONE, OTHER], 0);
}

#[test]
fn in_a_cgroup_and_its_parent() {
    race_all([ONE, PARENT], 0);
}

#[test]
fn beside_a_task_in_iowait() {
    race_all([OTHER, ONE], class::sleeping(true, false));
}
