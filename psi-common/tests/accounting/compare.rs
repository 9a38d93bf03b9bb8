//! The tracer against the model.

use psi_common::{
    account::total_at,
    layout::{Counter, State},
    word::{Parked, Running, contribution, occupied, parent_delta},
};

use crate::{kernel::Kernel, plan::Step, psi::STATES, tracer::Tracer};

/// The totals of every group, CPU and state: the model's and the tracer's.
pub(crate) fn totals(kernel: &Kernel, tracer: &Tracer, groups: usize) -> (Vec<u64>, Vec<u64>) {
    let count = groups * kernel.cpus() * STATES.len();
    let (mut model, mut traced) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for group in 0..groups {
        for cpu in 0..kernel.cpus() {
            for (n, &state) in STATES.iter().enumerate() {
                model.push(kernel.psi.get(group, cpu).total_at(n, kernel.now));
                traced.push(total_at(
                    tracer.record(cpu, group).times[state as usize].get(),
                    kernel.now,
                ));
            }
        }
    }
    (model, traced)
}

/// Panics unless every integral has grown alike since `then`, which is what [`totals`] returned.
pub(crate) fn check_growth(kernel: &Kernel, tracer: &Tracer, then: &(Vec<u64>, Vec<u64>), step: &Step) {
    let groups = tracer.memory.slots();
    let (model, traced) = totals(kernel, tracer, groups);
    for index in 0..model.len() {
        assert_eq!(
            model[index] - then.0[index],
            traced[index] - then.1[index],
            "{:?} after {step:?}",
            which(index, kernel.cpus())
        );
    }
}

/// Which integral `index` of [`totals`] is: its group, CPU and state.
pub(crate) fn which(index: usize, cpus: usize) -> (usize, usize, State) {
    let (state, rest) = (index % STATES.len(), index / STATES.len());
    (rest / cpus, rest % cpus, STATES[state])
}

/// Zero or not zero of every count: W, I, M, P, O, Q.
pub(crate) fn counts(kernel: &Kernel, tracer: &Tracer, group: usize, cpu: usize) -> ([bool; 6], [bool; 6]) {
    let this = kernel.psi.get(group, cpu);
    let oncpu = u32::from(this.oncpu);
    let model = [
        this.running > oncpu,
        this.iowait > 0,
        this.memstall > 0,
        this.running > this.memstall_running,
        this.oncpu,
        this.oncpu && this.reclaiming,
    ];
    let occupied = occupied(tracer.record(cpu, group).word.get());
    let traced = std::array::from_fn(|field| occupied & self::occupied(contribution(1 << field)) != 0);
    (model, traced)
}

/// Each record's word is what the tasks, the CPUs and the children's words add up to.
pub(crate) fn check_words(kernel: &Kernel, tracer: &Tracer, parents: &[Option<usize>]) {
    check_words_with(kernel, tracer, parents, (0, 0, 0));
}

/// As [`check_words`], with a word of tasks that nobody knows, in one group on one CPU.
pub(crate) fn check_words_with(
    kernel: &Kernel,
    tracer: &Tracer,
    parents: &[Option<usize>],
    (group, cpu, word): (usize, usize, u64),
) {
    let cpus = kernel.cpus();
    let mut sums = vec![vec![0u64; cpus]; parents.len()];
    sums[group][cpu] = word;
    for storage in tracer.storage.values() {
        let parked = Parked(storage.parked.get());
        let sum = &mut sums[parked.slot() as usize][parked.cpu() as usize];
        *sum = sum.wrapping_add(contribution(parked.class()));
    }
    for (cpu, running) in tracer.running.iter().enumerate() {
        let running = Running(running.get());
        let sum = &mut sums[running.slot() as usize][cpu];
        *sum = sum.wrapping_add(contribution(running.class()));
    }
    // Children have higher numbers than their parents.
    for group in (0..parents.len()).rev() {
        for (cpu, sum) in sums[group].clone().into_iter().enumerate() {
            assert_eq!(
                tracer.record(cpu, group).word.get(),
                sum,
                "word of group {group} cpu {cpu}"
            );
            if let Some(parent) = parents[group] {
                let carried = parent_delta(0, occupied(sum));
                sums[parent][cpu] = sums[parent][cpu].wrapping_add(carried);
            }
        }
    }
}

/// What the tracer says that it missed or repaired.
pub(crate) fn faults(tracer: &Tracer) -> [u64; 5] {
    [
        Counter::MissedSwitches,
        Counter::RepairedRunning,
        Counter::RepairedTasks,
        Counter::Overflows,
        Counter::BrokenWalks,
    ]
    .map(|counter| tracer.counter(counter))
}
