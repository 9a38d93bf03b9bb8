//! Events lost: every count is right again once each CPU has switched and two walks have run, and from then on every
//! integral grows as the kernel's does.

use proptest::prelude::*;
use psi_common::layout::Counter;

use crate::{
    compare::{check_growth, check_words, counts, faults, totals},
    kernel::{Hooks, Kernel, Leave, Op, Task},
    plan::{Plan, Step, config, lossy, steps},
    tracer::{Source, Tracer},
};

/// Loses the events of a step whose bit is set.
struct Losing<'a> {
    tracer: &'a mut Tracer,
    lost: u8,
    /// Whether those of memory stalls too.
    stalls: bool,
}

impl Losing<'_> {
    fn loses(&mut self) -> bool {
        let loses = self.lost & 1 != 0;
        self.lost >>= 1;
        loses
    }
}

impl Hooks for Losing<'_> {
    fn fork(&mut self, child: &Task) {
        if !self.loses() {
            self.tracer.fork(child);
        }
    }

    fn wakeup(&mut self, task: &Task) {
        if !self.loses() {
            self.tracer.wakeup(task);
        }
    }

    fn migrate(&mut self, task: &Task, to: usize) {
        if !self.loses() {
            self.tracer.migrate(task, to);
        }
    }

    fn switch(&mut self, cpu: usize, prev: Option<&Task>, next: Option<&Task>) {
        if !self.loses() {
            self.tracer.switch(cpu, prev, next);
        }
    }

    fn memstall(&mut self, task: &Task, enter: bool, flags: u64) {
        if !self.stalls || !self.loses() {
            self.tracer.memstall(task, enter, flags);
        }
    }

    fn reclaim(&mut self, task: &Task, begin: bool) {
        self.tracer.reclaim(task, begin);
    }

    // What goes lost is switches, wakeups and the like; this is the end of the storage.
    fn freed(&mut self, task: &Task) {
        self.tracer.freed(task);
    }

    fn tick(&mut self, cpu: usize, current: Option<&Task>) {
        if !self.loses() {
            self.tracer.tick(cpu, current);
        }
    }

    fn walk(&mut self, task: &Task) {
        self.tracer.walk(task);
    }

    fn clock(&mut self, now: u64) {
        self.tracer.clock(now);
    }
}

/// What heals: each CPU switches or is interrupted, wakeups arrive, two walks run.
fn heal(kernel: &mut Kernel, tracer: &mut Tracer, by_switch: bool) {
    kernel.finish_wakeups(tracer);
    for cpu in 0..kernel.cpus() {
        if by_switch && let current @ Some(_) = kernel.current[cpu] {
            kernel.switch(cpu, Leave::Preempted, None, tracer);
            kernel.switch(cpu, Leave::Preempted, current, tracer);
        } else {
            kernel.tick(cpu, tracer);
        }
    }
    kernel.walk(tracer);
    kernel.walk(tracer);
}

fn wrong_counts(kernel: &Kernel, tracer: &Tracer, groups: usize) -> Option<String> {
    (0..groups)
        .flat_map(|group| (0..kernel.cpus()).map(move |cpu| (group, cpu)))
        .find_map(|(group, cpu)| {
            let (model, traced) = counts(kernel, tracer, group, cpu);
            (model != traced).then(|| format!("group {group} cpu {cpu}: {model:?} is traced as {traced:?}"))
        })
}

fn run(plan: &Plan, after: &[Step], by_switch: bool, stalls: bool) {
    let groups = plan.parents.len();
    let mut kernel = Kernel::new(&plan.parents, plan.cpus);
    let mut tracer = Tracer::new(&plan.parents, plan.cpus, Source::Fentry);
    kernel.pass(0, &mut tracer);
    for step in &plan.steps {
        let mut losing = Losing {
            tracer: &mut tracer,
            lost: step.lost,
            stalls,
        };
        kernel.pass(step.after.into(), &mut losing);
        kernel.apply(&step.op, &mut losing);
        check_words(&kernel, &tracer, &plan.parents);
    }

    if stalls {
        kernel.stall_everyone(&mut tracer);
    }
    heal(&mut kernel, &mut tracer, by_switch);
    assert_eq!(wrong_counts(&kernel, &tracer, groups), None);
    check_words(&kernel, &tracer, &plan.parents);

    let healed = faults(&tracer);
    let then = totals(&kernel, &tracer, groups);
    for step in after {
        kernel.pass(step.after.into(), &mut tracer);
        kernel.apply(&step.op, &mut tracer);
        assert_eq!(wrong_counts(&kernel, &tracer, groups), None, "after {step:?}");
        check_growth(&kernel, &tracer, &then, step);
    }
    assert_eq!(faults(&tracer), healed, "all was right: nothing to repair");
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn lost_events_heal_with_a_switch_and_two_walks(plan in lossy(200), after in steps(100)) {
        run(&plan, &after, true, false);
    }

    #[test]
    fn lost_events_heal_with_an_interrupt_and_two_walks(plan in lossy(200), after in steps(100)) {
        run(&plan, &after, false, false);
    }

    /// No walk repairs a stall whose end was lost: the task's next one does.
    #[test]
    fn lost_stalls_heal_with_the_next(plan in lossy(200), after in steps(100)) {
        run(&plan, &after, true, true);
    }
}

/// A machine with two groups and tasks in the root that wait on CPU 0.
fn machine(tasks: u32) -> (Kernel, Tracer) {
    let parents = [None, Some(0)];
    let mut kernel = Kernel::new(&parents, 2);
    let mut tracer = Tracer::new(&parents, 2, Source::Fentry);
    kernel.pass(0, &mut tracer);
    for pid in 1..=tasks {
        kernel.fork(0, &mut tracer);
        kernel.start(pid, 0, &mut tracer);
    }
    (kernel, tracer)
}

fn lose(tracer: &mut Tracer) -> Losing<'_> {
    Losing {
        tracer,
        lost: 0xff,
        stalls: true,
    }
}

#[test]
fn the_next_switch_tells_a_lost_one() {
    let (mut kernel, mut tracer) = machine(2);
    kernel.switch(0, Leave::Preempted, Some(1), &mut tracer);
    kernel.switch(0, Leave::Sleeps, Some(2), &mut lose(&mut tracer));
    kernel.switch(0, Leave::Preempted, None, &mut tracer);
    assert_eq!(faults(&tracer), [1, 0, 0, 0, 0]);
}

#[test]
fn an_interrupt_repairs_the_running_task() {
    let (mut kernel, mut tracer) = machine(2);
    kernel.switch(0, Leave::Preempted, Some(1), &mut tracer);
    kernel.switch(0, Leave::Sleeps, Some(2), &mut lose(&mut tracer));
    kernel.tick(0, &mut tracer);
    kernel.tick(0, &mut tracer);
    assert_eq!(tracer.counter(Counter::RepairedRunning), 1);
    assert_eq!(wrong_counts(&kernel, &tracer, 1), None);
}

/// Noticing that a switch was lost tells what the task that left does since, without a walk.
#[test]
fn a_task_left_behind_is_put_down_as_it_is() {
    for leave in [Leave::Preempted, Leave::Waits, Leave::Sleeps] {
        let (mut kernel, mut tracer) = machine(2);
        kernel.switch(0, Leave::Preempted, Some(1), &mut tracer);
        kernel.switch(0, leave, Some(2), &mut lose(&mut tracer));
        kernel.tick(0, &mut tracer);
        tracer.left_behind(&kernel.tasks[&1]);
        assert_eq!(wrong_counts(&kernel, &tracer, 1), None, "after {leave:?}");
        // Not while it runs.
        kernel.switch(0, Leave::Sleeps, None, &mut tracer);
        if leave == Leave::Preempted {
            kernel.switch(0, Leave::Preempted, Some(1), &mut tracer);
            tracer.left_behind(&kernel.tasks[&1]);
        }
        assert_eq!(wrong_counts(&kernel, &tracer, 1), None, "later, after {leave:?}");
    }
}

#[test]
fn what_runs_next_is_not_left_behind() {
    let (mut kernel, mut tracer) = machine(2);
    kernel.switch(0, Leave::Preempted, Some(1), &mut tracer);
    kernel.switch(0, Leave::Preempted, Some(2), &mut lose(&mut tracer));
    kernel.switch(0, Leave::Preempted, Some(1), &mut tracer);
    assert_eq!(tracer.left, [None, None]);
    kernel.switch(0, Leave::Preempted, Some(2), &mut lose(&mut tracer));
    kernel.switch(0, Leave::Preempted, None, &mut tracer);
    assert_eq!(tracer.left[2..], [Some(1)]);
}

#[test]
fn two_walks_repair_a_lost_sleep() {
    let (mut kernel, mut tracer) = machine(2);
    kernel.switch(0, Leave::Preempted, Some(1), &mut tracer);
    kernel.switch(0, Leave::Waits, None, &mut lose(&mut tracer));
    kernel.tick(0, &mut tracer);
    kernel.walk(&mut tracer);
    assert_eq!(
        tracer.counter(Counter::RepairedTasks),
        0,
        "it might be an event under way"
    );
    kernel.walk(&mut tracer);
    assert_eq!(tracer.counter(Counter::RepairedTasks), 1);
    assert_eq!(wrong_counts(&kernel, &tracer, 1), None);
}

/// Both its last switch in and the one out were lost, so it is on record as waiting as it dies.
#[test]
fn a_dead_task_leaves_nothing() {
    let (mut kernel, mut tracer) = machine(1);
    kernel.switch(0, Leave::Preempted, Some(1), &mut lose(&mut tracer));
    kernel.switch(0, Leave::Exits, None, &mut lose(&mut tracer));
    assert_eq!(tracer.counter(Counter::RepairedRunning), 1);
    assert_eq!(wrong_counts(&kernel, &tracer, 1), None);
}

/// Two walks that each meet a wakeup under way are no two walks in a row, if one between them saw nothing wrong.
#[test]
fn a_walk_forgets_an_event_that_was_under_way() {
    let (mut kernel, mut tracer) = machine(1);
    let sleep = |kernel: &mut Kernel, tracer: &mut Tracer, cpu| {
        kernel.switch(cpu, Leave::Preempted, Some(1), tracer);
        kernel.switch(cpu, Leave::Waits, None, tracer);
    };
    let walk_within_wakeup = |kernel: &mut Kernel, tracer: &mut Tracer, cpu| {
        let wakeup = Op::Wake {
            task: 0,
            cpu,
            remote: true,
        };
        kernel.apply(&wakeup, tracer);
        kernel.walk(tracer);
        kernel.finish_wakeups(tracer);
    };
    let moves = Op::Move {
        task: 0,
        count: 1,
        group: 1,
    };
    for between in [Op::Walk, moves] {
        sleep(&mut kernel, &mut tracer, 0);
        walk_within_wakeup(&mut kernel, &mut tracer, 1);
        sleep(&mut kernel, &mut tracer, 1);
        kernel.apply(&between, &mut tracer);
        walk_within_wakeup(&mut kernel, &mut tracer, 0);
    }
    assert_eq!(faults(&tracer), [0; 5]);
}
