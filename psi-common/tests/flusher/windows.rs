//! Totals over windows, weighted over the CPUs.

use proptest::prelude::*;
use psi_common::{account::Records as _, layout::State, word::Running};

use crate::{
    averages::period_ns,
    flush::Flusher,
    kernel::{Hooks as _, Kernel},
    mapped::{MappedMaps, NOW},
    plan::{Plan, config, lossless},
    slots::Slots,
    tracer::{Source, Tracer},
};

const TICK_NS: u64 = 4_000_000;
const STATES: usize = State::ALL.len();
const NONIDLE: usize = 2;
const IRQ: usize = 7;

/// The kernel's aggregation (`collect_percpu_times`) of the model's times.
struct Model {
    /// By group, CPU and state.
    opened: Vec<Vec<[u64; STATES]>>,
    opened_ns: u64,
    /// Interrupt time of each group and CPU, summed up the tree.
    irq: Vec<Vec<u64>>,
    closed: Vec<[u64; STATES]>,
    shown: Vec<[u64; STATES]>,
}

impl Model {
    fn new(kernel: &Kernel, groups: usize) -> Self {
        Self {
            opened: vec![vec![[0; STATES]; kernel.cpus()]; groups],
            opened_ns: kernel.now,
            irq: vec![vec![0; kernel.cpus()]; groups],
            closed: vec![[0; STATES]; groups],
            shown: vec![[0; STATES]; groups],
        }
    }

    fn times(&self, kernel: &Kernel, group: usize, cpu: usize) -> [u64; STATES] {
        std::array::from_fn(|state| {
            if state == IRQ {
                self.irq[group][cpu]
            } else {
                kernel.psi.get(group, cpu).total_at(state, kernel.now)
            }
        })
    }

    fn flush(&mut self, kernel: &Kernel, closes: bool) {
        let window = kernel.now - self.opened_ns;
        let unit = TICK_NS * window / period_ns(TICK_NS);
        let unit = if closes { TICK_NS } else { unit.clamp(1, TICK_NS) };
        for group in 0..self.closed.len() {
            let mut weights = 0;
            let mut sums = [0u128; STATES];
            for cpu in 0..kernel.cpus() {
                let times = self.times(kernel, group, cpu);
                let gained: [u64; STATES] = std::array::from_fn(|state| times[state] - self.opened[group][cpu][state]);
                let weight = gained[NONIDLE] / unit;
                weights += weight;
                for (sum, gained) in sums.iter_mut().zip(gained) {
                    *sum += u128::from(gained) * u128::from(weight);
                }
                if closes {
                    self.opened[group][cpu] = times;
                }
            }
            for (state, sum) in sums.into_iter().enumerate() {
                let total = self.closed[group][state] + (sum / u128::from(weights.max(1))) as u64;
                if closes {
                    self.closed[group][state] = total;
                }
                self.shown[group][state] = self.shown[group][state].max(total);
            }
        }
        if closes {
            self.opened_ns = kernel.now;
        }
    }
}

/// An interrupt of the task that runs on `cpu`.
fn interrupt(kernel: &Kernel, tracer: &Tracer, model: &mut Model, cpu: usize, ns: u64) {
    let slot = Running(tracer.running[cpu].get()).slot();
    let memory = &*tracer.memory;
    let record = memory.record(cpu as u32, slot).expect("a record");
    memory.add_time(record, State::IrqFull, ns);
    memory.updated(record, cpu as u32, slot);
    for group in kernel.psi.path(slot as usize) {
        model.irq[group][cpu] += ns;
    }
}

/// What happens after a step.
#[derive(Clone, Copy, Debug)]
enum Then {
    Nothing,
    Flush,
    Close,
    Interrupt(u8),
}

fn then() -> impl Strategy<Value = Then> {
    prop_oneof![
        8 => Just(Then::Nothing),
        2 => Just(Then::Flush),
        2 => Just(Then::Close),
        1 => any::<u8>().prop_map(Then::Interrupt),
    ]
}

fn run(plan: &Plan, then: &[Then]) {
    let groups = plan.parents.len();
    let mut kernel = Kernel::new(&plan.parents, plan.cpus);
    let mut tracer = Tracer::new(&plan.parents, plan.cpus, Source::Fentry);
    let maps = MappedMaps::new(std::rc::Rc::clone(&tracer.memory));
    let slots = Slots(
        plan.parents
            .iter()
            .map(|parent| parent.map(|parent| parent as u32))
            .collect(),
    );
    let mut flusher = Flusher::new(&maps, kernel.now, TICK_NS);
    let mut model = Model::new(&kernel, groups);
    tracer.clock(kernel.now);
    for (step, then) in plan.steps.iter().zip(then) {
        // No interrupt takes longer than since the last step.
        kernel.pass(u64::from(step.after) + 1_000, &mut tracer);
        NOW.set(kernel.now);
        kernel.apply(&step.op, &mut tracer);
        match *then {
            Then::Nothing => continue,
            Then::Interrupt(cpu) => {
                interrupt(&kernel, &tracer, &mut model, usize::from(cpu) % plan.cpus, 1_000);
                continue;
            }
            Then::Flush => {
                flusher.flush(&maps, &slots);
                model.flush(&kernel, false);
            }
            Then::Close => {
                flusher.close(&maps, &slots);
                model.flush(&kernel, true);
            }
        }
        for group in 0..groups {
            assert_eq!(
                *flusher.totals(group as u32),
                model.shown[group],
                "group {group} after {step:?}"
            );
        }
        assert_eq!(flusher.rejected, 0);
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn totals_are_the_kernels(plan in lossless(300), then in prop::collection::vec(then(), 300)) {
        run(&plan, &then);
    }
}
