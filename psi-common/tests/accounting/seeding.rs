//! The tracer attaches to a machine that runs: after one walk over the tasks every count is right, whatever happens
//! during the walk, and every integral grows as the kernel's does.

use proptest::prelude::*;

use crate::{
    compare::{check_growth, check_words, counts, faults, totals},
    kernel::{Hooks, Kernel, Op, Task},
    plan::{Plan, Step, config, lossless, steps},
    tracer::{Source, Tracer},
};

/// No tracer.
struct Detached;

impl Hooks for Detached {
    fn fork(&mut self, _: &Task) {}
    fn wakeup(&mut self, _: &Task) {}
    fn migrate(&mut self, _: &Task, _: usize) {}
    fn switch(&mut self, _: usize, _: Option<&Task>, _: Option<&Task>) {}
    fn memstall(&mut self, _: &Task, _: bool, _: u64) {}
    fn reclaim(&mut self, _: &Task, _: bool) {}
    fn freed(&mut self, _: &Task) {}
    fn tick(&mut self, _: usize, _: Option<&Task>) {}
    fn walk(&mut self, _: &Task) {}
    fn clock(&mut self, _: u64) {}
}

/// A case without some of its ops.
fn without(mut steps: Vec<Step>, unwanted: impl Fn(&Op) -> bool) -> Vec<Step> {
    steps.retain(|step| !unwanted(&step.op));
    steps
}

fn is_walk(op: &Op) -> bool {
    // The tracer walks after a move.
    matches!(op, Op::Move { .. } | Op::Walk)
}

fn is_stall(op: &Op) -> bool {
    matches!(op, Op::Memstall { .. })
}

fn run(mut kernel: Kernel, plan: &Plan, during: &[Step], after: &[Step], tasks_a_step: usize) {
    let groups = plan.parents.len();
    for step in &plan.steps {
        kernel.pass(step.after.into(), &mut Detached);
        kernel.apply(&step.op, &mut Detached);
    }

    let mut tracer = Tracer::new(&plan.parents, plan.cpus, Source::Fentry);
    tracer.clock(kernel.now);
    let mut last_pid = 0;
    for step in during {
        kernel.pass(step.after.into(), &mut tracer);
        kernel.apply(&step.op, &mut tracer);
        last_pid = kernel.walk_part(last_pid, tasks_a_step, &mut tracer);
        check_words(&kernel, &tracer, &plan.parents);
    }
    kernel.walk_part(last_pid, usize::MAX, &mut tracer);
    kernel.finish_wakeups(&mut tracer);

    let check_counts = |kernel: &Kernel, tracer: &Tracer, step: &dyn std::fmt::Debug| {
        for group in 0..groups {
            for cpu in 0..plan.cpus {
                let (model, traced) = counts(kernel, tracer, group, cpu);
                assert_eq!(model, traced, "counts of group {group} cpu {cpu} after {step:?}");
            }
        }
    };
    check_counts(&kernel, &tracer, &"the walk");
    let then = totals(&kernel, &tracer, groups);
    for step in after {
        kernel.pass(step.after.into(), &mut tracer);
        kernel.apply(&step.op, &mut tracer);
        check_counts(&kernel, &tracer, step);
        check_words(&kernel, &tracer, &plan.parents);
        check_growth(&kernel, &tracer, &then, step);
    }
    assert_eq!(faults(&tracer), [0; 5]);
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn one_walk_seeds_all_counts(
        mut plan in lossless(100),
        during in steps(30),
        after in steps(60),
        tasks_a_step in 1..4usize,
    ) {
        // A stall from before is told by the walk alone, and only if no event of the task came first.
        plan.steps = without(plan.steps, is_stall);
        let kernel = Kernel::new(&plan.parents, plan.cpus);
        run(kernel, &plan, &without(during, is_walk), &after, tasks_a_step);
    }

    #[test]
    fn one_walk_seeds_stalls(plan in lossless(100), after in steps(60)) {
        // The end of a stall within one from before ends both.
        let mut kernel = Kernel::new(&plan.parents, plan.cpus);
        kernel.most_stalls = 1;
        run(kernel, &plan, &[], &after, 1);
    }
}
