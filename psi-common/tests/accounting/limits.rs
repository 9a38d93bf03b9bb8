//! Counts at and past the limit of a field: tasks are refused and counted as such, nothing carries over into another
//! field, and all is right again once the tasks are fewer.

use proptest::prelude::*;
use psi_common::{
    layout::{Counter, State},
    word::{MAX_COUNT, class, contribution},
};

use crate::{
    compare::{check_words_with, totals, which},
    kernel::{Hooks, Kernel, Leave},
    plan::{Plan, config, lossless},
    psi::Standing,
    tracer::{Source, Tracer},
};

const GROUP: usize = 1;
const CPU: usize = 0;

/// A machine with one group below the root and `standing` tasks in it that never move.
fn machine(plan: &Plan, standing: Standing) -> (Kernel, Tracer, u64) {
    let mut kernel = Kernel::new(&plan.parents, plan.cpus);
    let mut tracer = Tracer::new(&plan.parents, plan.cpus, Source::Fentry);
    tracer.clock(kernel.now);
    kernel.psi.stand(GROUP, CPU, standing, kernel.now);
    let Standing {
        waiting,
        iowait,
        memstall,
    } = standing;
    let word = contribution(class::waiting(false)) * u64::from(waiting)
        + contribution(class::sleeping(true, false)) * u64::from(iowait)
        + contribution(class::sleeping(false, true)) * u64::from(memstall);
    tracer.add(CPU, GROUP, word);
    (kernel, tracer, word)
}

fn near_limit() -> impl Strategy<Value = u32> {
    (MAX_COUNT as u32 - 3)..=MAX_COUNT as u32
}

fn standing() -> impl Strategy<Value = Standing> {
    (near_limit(), near_limit(), near_limit()).prop_map(|(waiting, iowait, memstall)| Standing {
        waiting,
        iowait,
        memstall,
    })
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn nothing_carries_over_at_the_limit(mut plan in lossless(200), standing in standing()) {
        plan.parents = vec![None, Some(0), Some(1), Some(1)];
        let (mut kernel, mut tracer, word) = machine(&plan, standing);
        for step in &plan.steps {
            kernel.pass(step.after.into(), &mut tracer);
            kernel.apply(&step.op, &mut tracer);
            check_words_with(&kernel, &tracer, &plan.parents, (GROUP, CPU, word));
            let all_exact = tracer.counter(Counter::Overflows) == 0;
            let (model, traced) = totals(&kernel, &tracer, plan.parents.len());
            for index in 0..model.len() {
                let (group, cpu, state) = which(index, plan.cpus);
                let of_standing = cpu == CPU && group <= GROUP && is_some(state);
                if all_exact || of_standing {
                    assert_eq!(model[index], traced[index], "{group} {cpu} {state:?} after {step:?}");
                }
            }
        }
    }
}

/// Whether standing tasks keep it on.
const fn is_some(state: State) -> bool {
    matches!(state, State::CpuSome | State::IoSome | State::MemSome | State::Nonidle)
}

/// Forks and starts `count` tasks in the group.
fn start(kernel: &mut Kernel, tracer: &mut Tracer, count: u32) -> std::ops::RangeInclusive<u32> {
    let first = kernel.tasks.len() as u32 + 1;
    let pids = first..=first + count - 1;
    for pid in pids.clone() {
        kernel.fork(GROUP, tracer);
        kernel.start(pid, CPU, tracer);
    }
    pids
}

#[test]
fn refused_tasks_are_counted_and_leave_nothing_behind() {
    let plan = Plan {
        cpus: 1,
        parents: vec![None, Some(0)],
        steps: Vec::new(),
    };
    let standing = Standing {
        waiting: MAX_COUNT as u32 - 2,
        ..Standing::default()
    };
    let (mut kernel, mut tracer, word) = machine(&plan, standing);
    let pids = start(&mut kernel, &mut tracer, 5);
    assert_eq!(tracer.counter(Counter::Overflows), 3);
    assert_eq!(
        tracer.record(CPU, GROUP).word.get(),
        contribution(class::waiting(false)) * MAX_COUNT
    );
    for pid in pids {
        kernel.switch(CPU, Leave::Exits, Some(pid), &mut tracer);
    }
    kernel.switch(CPU, Leave::Exits, None, &mut tracer);
    assert_eq!(tracer.record(CPU, GROUP).word.get(), word);
    check_words_with(&kernel, &tracer, &plan.parents, (GROUP, CPU, word));
    // Two of them were refused again as they ran: the running task's own count is not.
    assert_eq!(kernel.psi.get(0, CPU).running, MAX_COUNT as u32 - 2);
    let (model, traced) = totals(&kernel, &tracer, 2);
    assert_eq!(model, traced);
}

#[test]
fn a_refused_task_is_counted_once_there_is_room() {
    let plan = Plan {
        cpus: 1,
        parents: vec![None, Some(0)],
        steps: Vec::new(),
    };
    let standing = Standing {
        waiting: MAX_COUNT as u32,
        ..Standing::default()
    };
    let (mut kernel, mut tracer, word) = machine(&plan, standing);
    start(&mut kernel, &mut tracer, 1);
    assert_eq!(tracer.record(CPU, GROUP).word.get(), word);
    // The others sleep.
    tracer.add(CPU, GROUP, word.wrapping_neg());
    kernel.walk(&mut tracer);
    kernel.walk(&mut tracer);
    assert_eq!(
        tracer.record(CPU, GROUP).word.get(),
        contribution(class::waiting(false))
    );
    assert_eq!(tracer.counter(Counter::RepairedTasks), 1);
}
