//! Random cgroup trees and random things that happen.

use proptest::{prelude::*, test_runner::RngSeed};

use crate::kernel::{Leave, Op};

/// A case: the machine and what happens on it.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) cpus: usize,
    /// Parent of each group; each comes after its parent.
    pub(crate) parents: Vec<Option<usize>>,
    pub(crate) steps: Vec<Step>,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// ns since the last.
    pub(crate) after: u32,
    pub(crate) op: Op,
    /// Bit n: the tracer loses the n-th event of the step.
    pub(crate) lost: u8,
}

/// Depth of the deepest group, the root's being 0.
const DEEPEST: usize = 8;

fn parents() -> impl Strategy<Value = Vec<Option<usize>>> {
    // A chain is the likeliest of the shapes that matter: half of the groups go below the one before.
    prop::collection::vec((any::<bool>(), any::<u8>()), 0..14).prop_map(|choices| {
        let mut parents = vec![None];
        let mut depths = vec![0];
        for (below_last, any) in choices {
            let last = parents.len() - 1;
            let mut parent = if below_last {
                last
            } else {
                usize::from(any) % parents.len()
            };
            if depths[parent] == DEEPEST {
                parent = 0;
            }
            parents.push(Some(parent));
            depths.push(depths[parent] + 1);
        }
        parents
    })
}

fn leave() -> impl Strategy<Value = Leave> {
    prop_oneof![
        4 => Just(Leave::Preempted),
        3 => Just(Leave::Sleeps),
        3 => Just(Leave::Waits),
        1 => Just(Leave::SleepsDelayed),
        1 => Just(Leave::WaitsDelayed),
        1 => Just(Leave::Exits),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let n = any::<u8>;
    prop_oneof![
        3 => n().prop_map(|group| Op::Fork { group }),
        4 => (n(), n()).prop_map(|(task, cpu)| Op::Start { task, cpu }),
        12 => (n(), n(), any::<bool>()).prop_map(|(task, cpu, remote)| Op::Wake { task, cpu, remote }),
        20 => (n(), leave(), n()).prop_map(|(cpu, leave, next)| Op::Switch { cpu, leave, next }),
        5 => (n(), n()).prop_map(|(task, cpu)| Op::Migrate { task, cpu }),
        1 => n().prop_map(|task| Op::Dequeue { task }),
        5 => (n(), prop::bool::weighted(0.6), any::<bool>())
            .prop_map(|(cpu, enter, reclaim)| Op::Memstall { cpu, enter, reclaim }),
        2 => (n(), 1..4u8, n()).prop_map(|(task, count, group)| Op::Move { task, count, group }),
        1 => n().prop_map(|cpu| Op::Tick { cpu }),
        1 => Just(Op::Walk),
    ]
}

/// Nothing, ns, or seconds.
fn after() -> impl Strategy<Value = u32> {
    prop_oneof![1 => Just(0), 6 => 0..2_000u32, 1 => any::<u32>()]
}

fn step(lost: impl Strategy<Value = u8>) -> impl Strategy<Value = Step> {
    (after(), op(), lost).prop_map(|(after, op, lost)| Step { after, op, lost })
}

fn plan(steps: impl Strategy<Value = Vec<Step>>) -> impl Strategy<Value = Plan> {
    (1..=4usize, parents(), steps).prop_map(|(cpus, parents, steps)| Plan { cpus, parents, steps })
}

/// Up to `most` steps without a loss.
pub(crate) fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(Just(0)), 0..most)
}

/// No event is lost.
pub(crate) fn lossless(most: usize) -> impl Strategy<Value = Plan> {
    plan(steps(most))
}

/// The tracer loses one event in ten.
pub(crate) fn lossy(most: usize) -> impl Strategy<Value = Plan> {
    let lost = prop_oneof![9 => Just(0), 1 => any::<u8>()];
    plan(prop::collection::vec(step(lost), 0..most))
}

/// `cases` by default, always the same; PSITRACE_CASES asks for another number, and for new ones every time.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let asked = std::env::var("PSITRACE_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: asked.unwrap_or(cases),
        rng_seed: if asked.is_some() {
            RngSeed::Random
        } else {
            RngSeed::Fixed(0x7073_6974_7261_6365)
        },
        failure_persistence: None,
        max_shrink_iters: 50_000,
        ..ProptestConfig::default()
    }
}
