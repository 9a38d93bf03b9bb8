//! No event lost: every integral and every count is right after every event.

use proptest::prelude::*;
use psi_common::layout::State;

use crate::{
    compare::{check_words, counts, faults, totals, which},
    kernel::{Hooks, Kernel},
    plan::{Plan, config, lossless},
    psi::STATES,
    tracer::{Source, Tracer},
};

/// The states that do not depend on where memory stalls are learned from.
fn is_exact(source: Source, state: State) -> bool {
    source == Source::Fentry || !matches!(state, State::MemSome | State::MemFull | State::Nonidle)
}

fn compare(kernel: &Kernel, tracer: &Tracer, plan: &Plan, source: Source, step: &dyn std::fmt::Debug) {
    let groups = plan.parents.len();
    let (model, traced) = totals(kernel, tracer, groups);
    for (index, (model, traced)) in model.iter().zip(&traced).enumerate() {
        if is_exact(source, STATES[index % STATES.len()]) {
            assert_eq!(model, traced, "{:?} after {step:?}", which(index, plan.cpus));
        }
    }
    for group in 0..groups {
        for cpu in 0..plan.cpus {
            let (model, traced) = counts(kernel, tracer, group, cpu);
            if source == Source::Fentry {
                assert_eq!(model, traced, "counts of group {group} cpu {cpu} after {step:?}");
            }
        }
    }
}

fn run(plan: &Plan, source: Source) {
    let mut kernel = Kernel::new(&plan.parents, plan.cpus);
    let mut tracer = Tracer::new(&plan.parents, plan.cpus, source);
    tracer.clock(kernel.now);
    for step in &plan.steps {
        kernel.pass(step.after.into(), &mut tracer);
        kernel.apply(&step.op, &mut tracer);
        kernel.check_model();
        compare(&kernel, &tracer, plan, source, step);
        check_words(&kernel, &tracer, &plan.parents);
        assert_eq!(
            faults(&tracer),
            [0; 5],
            "nothing was lost, so nothing can be repaired: {step:?}"
        );
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn every_integral_is_the_kernels(plan in lossless(300)) {
        run(&plan, Source::Fentry);
    }

    #[test]
    fn without_fentry_cpu_and_io_are_the_kernels(plan in lossless(300)) {
        run(&plan, Source::TaskBit);
    }
}
