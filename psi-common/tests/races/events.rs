//! A task's events against the walk that seeds and audits, and against each other.

use loom::{sync::Arc, thread};
use psi_common::word::{MAX_COUNT, class, contribution};

use crate::{
    memory::{Memory, Order, some_preemptions},
    task::{Is, Machine},
};

const TREE: [Option<u32>; 3] = [None, Some(0), Some(0)];
const ONE: u32 = 1;
const OTHER: u32 = 2;

type Script = fn(&Machine);

/// When what is recorded must be what the task is. At all times it must agree with the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    AtOnce,
    /// After an interrupt on each CPU and two more walks.
    AfterAudit,
    /// Not asked for.
    Never,
}

/// What the task is at the start, what comes before, the two that race, and how well it must end.
type Case = (Is, Script, [Script; 2], Right);

fn race(case: Case) {
    race_beside(0, case, 4);
}

fn race_beside(standing: u64, (is, before, scripts, right): Case, preemptions: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(some_preemptions(preemptions));
    model.check(move || {
        let memory = Memory::new(&TREE, 2, false, Order::Full);
        let machine = Arc::new(Machine::new(memory, ONE, is).with_standing(standing));
        before(&machine);
        let other = {
            let machine = Arc::clone(&machine);
            thread::spawn(move || scripts[1](&machine))
        };
        scripts[0](&machine);
        other.join().expect("no panic");
        machine.check();
        match right {
            Right::AtOnce => {}
            Right::AfterAudit => machine.audit(),
            Right::Never => return,
        }
        machine.check();
        assert_eq!(machine.recorded(), machine.truth());
    });
}

const NOTHING: Script = |_| ();
const WALK: Script = Machine::walk;

/// What the kernel can do with the task.
const SCRIPTS: [(Is, Script); 9] = [
    (Is::Running, Machine::sleep),
    (Is::Running, Machine::preempt),
    (Is::Running, |m| {
        m.preempt();
        m.switch_in();
    }),
    (Is::Waiting, Machine::switch_in),
    (Is::Waiting, |m| {
        m.migrate(1);
        m.switch_in();
    }),
    (Is::Asleep, Machine::wake),
    (Is::Asleep, |m| {
        m.wake();
        m.switch_in();
    }),
    (Is::Waiting, |m| m.migrate(1)),
    (Is::Asleep, |m| {
        m.migrate_to_wake(1);
        m.wake();
    }),
];
/// The first of them that move the task to another CPU, where no event tells the walk so.
const MOVES: usize = 7;

#[test]
fn seeding_against_events() {
    for (n, (is, script)) in SCRIPTS.into_iter().enumerate() {
        let right = if n < MOVES { Right::AtOnce } else { Right::AfterAudit };
        race((is, NOTHING, [script, WALK], right));
    }
}

#[test]
fn seeding_against_a_stall() {
    race((Is::Running, NOTHING, [|m| m.stall(true), WALK], Right::AfterAudit));
}

#[test]
fn a_walk_against_events() {
    for (is, script) in SCRIPTS {
        race((is, WALK, [script, WALK], Right::AtOnce));
    }
    race((Is::Running, WALK, [|m| m.stall(true), WALK], Right::AtOnce));
}

/// The repair of what two walks saw.
#[test]
fn two_walks_against_events() {
    const WALKS: Script = |m| {
        m.walk();
        m.walk();
    };
    for (n, (is, script)) in SCRIPTS.into_iter().enumerate() {
        let right = if n < MOVES { Right::AtOnce } else { Right::AfterAudit };
        race_beside(0, (is, WALK, [script, WALKS], right), 2);
    }
}

/// The task goes to another cgroup: the walk that follows moves its counts. Where it meets an event that keeps the
/// cgroup it is the next walk that does.
#[test]
fn a_moving_walk_against_events() {
    const MOVED: Script = |m| {
        m.walk();
        m.change_group(OTHER);
    };
    for (n, (is, script)) in SCRIPTS.into_iter().enumerate() {
        let right = if n < MOVES { Right::AtOnce } else { Right::AfterAudit };
        race((is, MOVED, [script, WALK], right));
    }
    race((Is::Running, MOVED, [|m| m.stall(true), WALK], Right::AfterAudit));
    race((Is::Running, MOVED, [|m| m.interrupt(0, true), WALK], Right::AtOnce));
}

/// An event that was lost is repaired by the switch, the interrupt and the walk.
#[test]
fn repairs_against_each_other() {
    const LOST: Script = |m| {
        m.walk();
        m.sleep_unseen();
    };
    race((Is::Running, LOST, [|m| m.interrupt(0, false), WALK], Right::AfterAudit));
    race((Is::Running, LOST, [Machine::wake, WALK], Right::AfterAudit));
}

/// The kernel's locks keep two events of one task apart. Even without them the counts agree with what is recorded.
#[test]
fn events_without_locks() {
    let events: [(Is, [Script; 2]); 6] = [
        (Is::Waiting, [Machine::switch_in, |m| m.migrate(1)]),
        (Is::Asleep, [Machine::wake, |m| m.migrate_to_wake(1)]),
        (Is::Asleep, [Machine::wake, Machine::wake]),
        (Is::Running, [Machine::sleep, Machine::wake]),
        (Is::Running, [Machine::preempt, |m| m.stall(true)]),
        (Is::Running, [Machine::preempt, |m| m.interrupt(0, true)]),
    ];
    for (is, scripts) in events {
        race((is, WALK, scripts, Right::Never));
    }
}

/// A task that is refused at the limit and goes on at the same time.
#[test]
fn a_refusal_against_events() {
    let full = contribution(class::waiting(false)) * MAX_COUNT;
    let events: [(Is, [Script; 2]); 4] = [
        (Is::Asleep, [Machine::wake, Machine::switch_in]),
        (Is::Asleep, [Machine::wake, |m| m.migrate(1)]),
        (Is::Running, [Machine::preempt, WALK]),
        (Is::Asleep, [Machine::wake, WALK]),
    ];
    for (is, scripts) in events {
        race_beside(full, (is, WALK, scripts, Right::Never), 4);
    }
}
