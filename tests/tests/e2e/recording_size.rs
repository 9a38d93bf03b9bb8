//! What an hour of a recording takes.

use std::{fmt::Write as _, thread::sleep, time::Duration};

use tests::{cgroup::Cgroup, program::run, recording::frames, session::Session};

use crate::{disk_file, load};

const CGROUPS: usize = 200;
/// Of `record`, unless told otherwise.
const FRAMES_AN_HOUR: f64 = 3600.0 / 5.0;
/// Of those, key frames.
const KEYS_AN_HOUR: f64 = FRAMES_AN_HOUR / 60.0;

/// 20 pods with 9 containers each, in 20 slices, as a node has them. In a third of the containers a service wakes up now
/// and then, in some it computes, reads from the disk or talks to another.
///
/// An hour's size is that of 720 frames, 12 of them key frames, as long as those of half a minute.
#[test]
fn an_hour_of_200_cgroups_takes_less_than_2_mb() {
    let Some(session) = Session::start("an_hour_of_200_cgroups_takes_less_than_2_mb") else {
        return;
    };
    let root = Cgroup::new(session.name());
    let mut loads = Vec::new();
    let file = disk_file(&session);
    let mut cgroups = Vec::new();
    for pod in 0..CGROUPS / 10 {
        let slice = root.child(&format!(
            "kubepods-burstable-pod{pod:08x}_4a1b_4c1d_9e1f_0123456789ab.slice"
        ));
        for n in 0..9 {
            let id = (0..4).fold(String::new(), |mut id, part| {
                let _ = write!(id, "{:016x}", (pod * 16 + n + part).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                id
            });
            let container = slice.child(&format!("cri-containerd-{id}.scope"));
            let start = || load().within(&container).behind();
            match (pod, n) {
                (0..2, 0) => loads.push(start().start(&["spin"])),
                (_, 1) if pod % 5 == 0 => loads.push(start().start(&["ping-pong", "--pairs", "1"])),
                (0..2, 2) => loads.extend(file.as_ref().map(|file| start().start_on(&["read"], file.path()))),
                (_, 3..6) => {
                    let pause = format!("while :; do sleep 0.{}; done", 1 + (pod + n) % 9);
                    loads.push(start().start_tool(&["sh", "-c", &pause]));
                }
                _ => {}
            }
            cgroups.push(container);
        }
        cgroups.push(slice);
    }
    // Averages take a while to be what they are.
    sleep(Duration::from_secs(5));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording");
    let name = path.to_str().expect("temporary names are UTF-8");
    run(&["record", "--output", name, "--duration", "30s"]).expect_success();

    let frames = frames(&path);
    let mean = |is_key: bool| {
        let lengths: Vec<usize> = frames
            .iter()
            .filter(|frame| frame.is_key == is_key)
            .map(|frame| frame.length)
            .collect();
        assert!(!lengths.is_empty(), "{frames:?}");
        lengths.iter().sum::<usize>() as f64 / lengths.len() as f64
    };
    let (key, other) = (mean(true), mean(false));
    let hour = key * KEYS_AN_HOUR + other * (FRAMES_AN_HOUR - KEYS_AN_HOUR);
    let dump = run(&["dump", "--replay", name, "--begin", "-1s"]);
    println!(
        "{} frames of {} cgroups and more: key {key:.0} bytes, other {other:.0}; an hour {:.2} MB; JSON of one {} bytes",
        frames.len(),
        CGROUPS,
        hour / 1e6,
        dump.expect_success().stdout.len(),
    );
    assert!(hour < 2e6, "an hour takes {hour} bytes");
}
