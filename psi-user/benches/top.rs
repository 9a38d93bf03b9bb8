//! What a frame of `psitrace top` costs with 5,000 cgroups, on a terminal of 200 columns and 60 lines; the bar is 5 ms
//! a frame. A key's time is that of the key and the frame after it.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use psi_user::{
    model::{CgroupPressure, Full, MemstallSource, Pressure, Quality, SCHEMA, Snapshot, SomeFull, Source},
    top::{Options, Palette, View},
};
use ratatui::{buffer::Buffer, layout::Rect};

const SECOND_NS: u64 = 1_000_000_000;

/// As on a machine with many pods: slices of 50 pods with 9 containers each.
fn cgroups(turn: u64) -> Vec<CgroupPressure> {
    let mut paths = vec!["/".to_owned()];
    for slice in 0..10 {
        let slice = format!("/kubepods.slice/kubepods-{slice}.slice");
        paths.push(slice.clone());
        for pod in 0..50 {
            let pod = format!("{slice}/kubepods-pod{pod:08x}_0000_4000_8000_00000000000f.slice");
            paths.push(pod.clone());
            paths.extend((0..9).map(|n| format!("{pod}/cri-containerd-{n:064x}.scope")));
        }
    }
    paths.push("/kubepods.slice".to_owned());
    paths.sort_by(|a, b| a.split('/').cmp(b.split('/')));
    (1..).zip(paths).map(|(id, path)| cgroup(path, id, turn)).collect()
}

fn cgroup(path: String, id: u64, turn: u64) -> CgroupPressure {
    let level = if id == 1 { 0 } else { path.matches('/').count() as u32 };
    // Another order each time.
    let percent = ((id * 7919 + turn * 104_729) % 10_000) as f64 / 100.0;
    let pressure = Pressure {
        avg10: percent,
        avg60: percent,
        avg300: percent,
        total_ns: id,
        last: percent,
    };
    let both = SomeFull {
        some: pressure,
        full: pressure,
    };
    CgroupPressure {
        path,
        id,
        level,
        cpu: both,
        memory: Some(both),
        io: both,
        irq: Some(Full { full: pressure }),
        counts: None,
    }
}

fn snapshot(turn: u64) -> Snapshot {
    Snapshot {
        schema: SCHEMA,
        time_ns: 1_767_323_045 * SECOND_NS + turn * SECOND_NS,
        interval_ns: SECOND_NS,
        source: Source {
            memstall: Some(MemstallSource::Fentry),
            irq: vec!["softirq".to_owned()],
            hierarchy: "v2".to_owned(),
        },
        flush: None,
        quality: Quality::default(),
        cgroups: cgroups(turn),
    }
}

fn view(tree: bool) -> View {
    let options = Options {
        tree,
        ..Options::default()
    };
    let mut view = View::new(options, Palette::new(true, true));
    view.update(snapshot(0));
    view
}

fn press(view: &mut View, code: KeyCode) {
    view.event(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)));
}

fn top(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("top, 5,000 cgroups, 200x60");
    let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 60));
    for (name, tree) in [("tree", true), ("list", false)] {
        let mut view = view(tree);
        group.bench_function(format!("{name}: scroll by a line"), |bencher| {
            bencher.iter(|| {
                press(&mut view, KeyCode::Down);
                view.draw(black_box(&mut buffer));
            });
        });
        let mut turn = 0;
        group.bench_function(format!("{name}: new figures"), |bencher| {
            bencher.iter_batched(
                || {
                    turn += 1;
                    snapshot(turn)
                },
                |snapshot| {
                    view.update(snapshot);
                    view.draw(black_box(&mut buffer));
                },
                criterion::BatchSize::PerIteration,
            );
        });
    }
    let mut view = view(true);
    press(&mut view, KeyCode::Down);
    press(&mut view, KeyCode::Enter);
    group.bench_function("details: scroll by a line", |bencher| {
        bencher.iter(|| {
            press(&mut view, KeyCode::Down);
            view.draw(black_box(&mut buffer));
        });
    });
    press(&mut view, KeyCode::Enter);
    press(&mut view, KeyCode::Char('/'));
    group.bench_function("type in the filter", |bencher| {
        bencher.iter(|| {
            press(&mut view, KeyCode::Char('f'));
            press(&mut view, KeyCode::Backspace);
            view.draw(black_box(&mut buffer));
        });
    });
}

criterion_group!(benches, top);
criterion_main!(benches);
