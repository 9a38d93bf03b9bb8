//! How long `n` and `N` of `psitrace top --replay` take at most: through a whole day's recording of 200 cgroups, a frame
//! each 5 s, without a spike in it.

use std::{path::Path, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use psi_user::{
    fields::{Figure, Measure, Stall},
    model::{CgroupPressure, Full, MemstallSource, Pressure, Quality, SCHEMA, Snapshot, SomeFull, Source},
    record::{Recorder, Replay, Spikes},
};

const INTERVAL_NS: u64 = 5_000_000_000;
const FRAMES: u64 = 24 * 3600 / 5;
const PODS: usize = 20;
const CONTAINERS: usize = 9;

/// A node with pods and containers, of which a third is at work.
struct Node {
    cgroups: Vec<CgroupPressure>,
    random: u64,
}

impl Node {
    fn new() -> Self {
        let mut paths = vec!["/".to_owned()];
        for pod in 0..PODS {
            let pod = format!("/kubepods-burstable-pod{pod:08x}_4a1b_4c1d_9e1f_0123456789ab.slice");
            paths.push(pod.clone());
            paths.extend((0..CONTAINERS).map(|n| format!("{pod}/cri-containerd-{n:064x}.scope")));
        }
        let cgroup = |(id, path): (u64, String)| CgroupPressure {
            level: if path == "/" {
                0
            } else {
                path.matches('/').count() as u32
            },
            path,
            id,
            cpu: SomeFull::default(),
            memory: Some(SomeFull::default()),
            io: SomeFull::default(),
            irq: Some(Full::default()),
            counts: None,
        };
        Self {
            cgroups: (1..).zip(paths).map(cgroup).collect(),
            random: 1,
        }
    }

    /// The next frame. No average gets to 10 %.
    fn snapshot(&mut self, turn: u64) -> Snapshot {
        let Self { cgroups, random } = self;
        let at_work = cgroups.iter_mut().filter(|cgroup| cgroup.id % 3 == 1);
        for cgroup in at_work {
            let CgroupPressure { cpu, io, irq, .. } = cgroup;
            let lines = [&mut cpu.some, &mut cpu.full, &mut io.some, &mut io.full];
            for line in lines.into_iter().chain(irq.as_mut().map(|irq| &mut irq.full)) {
                // As MMIX's.
                *random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                gain(line, (*random >> 33) % (INTERVAL_NS / 12));
            }
        }
        Snapshot {
            schema: SCHEMA,
            time_ns: 1_767_323_045_000_000_000 + turn * INTERVAL_NS,
            interval_ns: INTERVAL_NS,
            source: Source {
                memstall: Some(MemstallSource::Fentry),
                irq: vec!["softirq".to_owned()],
                hierarchy: "v2".to_owned(),
            },
            quality: Quality::default(),
            flush: None,
            cgroups: cgroups.clone(),
        }
    }
}

fn gain(line: &mut Pressure, gained_ns: u64) {
    line.total_ns += gained_ns;
    line.last = gained_ns as f64 * 100.0 / INTERVAL_NS as f64;
    let Pressure {
        avg10, avg60, avg300, ..
    } = line;
    for (average, seconds) in [(avg10, 10.0), (avg60, 60.0), (avg300, 300.0)] {
        let kept = f64::exp(-5.0 / seconds);
        *average = ((*average * kept + line.last * (1.0 - kept)) * 100.0).round() / 100.0;
    }
}

fn record(path: &Path) {
    // Longer than it takes, so that it is one file.
    let (mut recorder, _) = Recorder::open(path, Duration::from_hours(48)).expect("a recording");
    let mut node = Node::new();
    for turn in 0..FRAMES {
        recorder.write(&node.snapshot(turn)).expect("room");
    }
}

/// As `top` does it.
fn backwards(replay: &mut Replay, spikes: &Spikes) -> Option<usize> {
    let mut frames = replay.run_start(replay.len() - 1)..replay.len();
    loop {
        let found = replay.last_spike(frames.clone(), spikes).expect("frames");
        if found.is_some() || frames.start == 0 {
            return found;
        }
        frames = replay.run_start(frames.start - 1)..frames.start + 1;
    }
}

fn spikes(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording");
    record(&path);
    let length = path.metadata().expect("a recording").len();
    println!("{FRAMES} frames, {:.1} MB", length as f64 / 1e6);
    let mut replay = Replay::open(&path).expect("a recording");
    assert_eq!(replay.len() as u64, FRAMES);
    let mut group = criterion.benchmark_group("a day, 200 cgroups, a frame each 5 s");
    group.sample_size(10);
    group.bench_function("open", |bencher| {
        bencher.iter(|| Replay::open(&path).expect("a recording"));
    });
    let one = Node::new().cgroups.swap_remove(50).path;
    for (name, cgroup) in [("any cgroup", None), ("one cgroup", Some(one))] {
        let spikes = Spikes {
            cgroup,
            figure: Figure {
                stall: Stall::CPU_SOME,
                measure: Measure::Avg10,
            },
            threshold: Some(10.0),
        };
        group.bench_function(format!("forwards, {name}"), |bencher| {
            bencher.iter(|| assert_eq!(replay.next_spike(0..usize::MAX, &spikes).expect("frames"), None));
        });
        group.bench_function(format!("backwards, {name}"), |bencher| {
            bencher.iter(|| assert_eq!(backwards(&mut replay, &spikes), None));
        });
    }
}

criterion_group!(benches, spikes);
criterion_main!(benches);
