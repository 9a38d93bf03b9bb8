//! What the flush costs on a machine of 512 CPUs and 10,000 cgroups: nothing updated, one record in a hundred, all; and
//! how long memcpy takes for the same records. The memory is anonymous, the updates are made between the measurements.
//!
//! `cargo bench -p psi-user --bench flush`

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use criterion::{Criterion, SamplingMode};
use psi_user::synthetic::{Synthetic, SyntheticFlusher};

const CPUS: usize = 512;
const CGROUPS: usize = 10_000;

/// Which records are updated between two flushes.
#[derive(Clone, Copy)]
enum Updated {
    None,
    /// A hundredth of the cgroups, on each CPU.
    SomeCgroups,
    /// A hundredth of the cgroups on each CPU, others on each: no page of memory is met twice.
    OthersOnEachCpu,
    /// All cgroups on a hundredth of the CPUs.
    AllOnSomeCpus,
    All,
}

/// What is measured.
#[derive(Clone, Copy)]
enum What {
    /// A snapshot in an open window.
    Flush,
    /// The end of a window.
    Close,
}

/// All slots in an order that is no order.
fn shuffled() -> Vec<u32> {
    let mut slots: Vec<u32> = (0..CGROUPS as u32).collect();
    let mut seed = 1u64;
    for n in (1..slots.len()).rev() {
        // Constants of MMIX's generator (Knuth).
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        slots.swap(n, (seed >> 33) as usize % (n + 1));
    }
    slots
}

/// Updates as told: each record gains 8 ms, more than a tick, so that it weighs something.
fn update(machine: &Synthetic, order: &[u32], updated: Updated) {
    const NS: u64 = 8_000_000;
    if matches!(updated, Updated::None) {
        return;
    }
    std::thread::sleep(Duration::from_nanos(NS));
    let hundredth = CGROUPS / 100;
    for cpu in 0..CPUS {
        // Another order on each CPU.
        let start = if matches!(updated, Updated::SomeCgroups) {
            0
        } else {
            cpu * 7919 % CGROUPS
        };
        let slots = order[start..].iter().chain(&order[..start]);
        let count = match updated {
            Updated::SomeCgroups | Updated::OthersOnEachCpu => hundredth,
            Updated::AllOnSomeCpus if cpu % 103 == 0 => CGROUPS,
            Updated::None | Updated::AllOnSomeCpus => 0,
            Updated::All => CGROUPS,
        };
        for &slot in slots.take(count) {
            machine.gain(cpu, slot, NS);
        }
    }
}

fn measure(
    machine: &Synthetic,
    flusher: &mut SyntheticFlusher,
    order: &[u32],
    updated: Updated,
    what: What,
) -> Duration {
    flusher.close(machine);
    update(machine, order, updated);
    let start = Instant::now();
    match what {
        What::Flush => flusher.flush(machine),
        What::Close => flusher.close(machine),
    }
    start.elapsed()
}

fn benchmark(criterion: &mut Criterion) {
    let machine = Synthetic::new(CPUS, CGROUPS).expect("655 MB of memory");
    let mut flusher = machine.flusher();
    let order = shuffled();
    // All memory is there from here on.
    for what in [What::Flush, What::Close] {
        measure(&machine, &mut flusher, &order, Updated::All, what);
    }
    let mut copy = vec![1u8; CPUS * CGROUPS * 128];
    let mut group = criterion.benchmark_group("512 CPUs x 10,000 cgroups");
    group
        .sample_size(10)
        .sampling_mode(SamplingMode::Flat)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_secs(1));
    for (name, updated) in [
        ("idle", Updated::None),
        ("1 % of the cgroups updated", Updated::SomeCgroups),
        ("1 % updated, others on each CPU", Updated::OthersOnEachCpu),
        ("1 % updated, all on 5 CPUs", Updated::AllOnSomeCpus),
        ("all updated", Updated::All),
    ] {
        for (what, name) in [
            (What::Flush, format!("flush, {name}")),
            (What::Close, format!("close, {name}")),
        ] {
            group.bench_function(name, |bencher| {
                bencher.iter_custom(|times| {
                    (0..times)
                        .map(|_| measure(&machine, &mut flusher, &order, updated, what))
                        .sum()
                });
            });
        }
    }
    group.bench_function("memcpy of all records", |bencher| {
        bencher.iter(|| black_box(machine.copy(black_box(&mut copy))));
    });
    group.finish();
    assert_eq!(flusher.rejected(), 0, "readings were rejected");
    assert_ne!(flusher.cpu_some_ns(1), 0, "nothing was flushed");
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    benchmark(&mut criterion);
    criterion.final_summary();
}
