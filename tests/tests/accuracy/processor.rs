//! Waiting for a CPU.

use tests::{cgroup::Cgroup, load::Load, machine};

use crate::{load, measure::Place, tool};

/// All of one CPU, so that another one is free for the rest of the machine.
fn here(place: &Place) -> Load {
    load().within(&place.own).on_cpu(machine::load_cpu())
}

/// Niceness and policies of all kinds on one CPU, and some that go where they like. FIFO tasks run for a fifth of the
/// time, so that they keep nobody from the CPU for long.
#[test]
fn hogs_of_mixed_nice_and_policy() {
    let Some(place) = Place::new("hogs_of_mixed_nice_and_policy") else {
        return;
    };
    let own = &place.own;
    let _spinners = [0, 5, 19].map(|nice| here(&place).nice(nice).start(&["spin"]));
    let _anywhere = load().within(own).behind().start(&["spin", "--threads", "2"]);
    let cpu = machine::load_cpu();
    let tools = [
        "chrt --batch 0 stress-ng --quiet --cpu 1".to_owned(),
        "chrt --idle 0 stress-ng --quiet --cpu 1".to_owned(),
        format!("stress-ng --quiet --cpu 1 --cpu-load 20 --sched fifo --sched-prio 10 --taskset {cpu}"),
        format!("cyclictest --quiet --priority 80 --interval 1000 --affinity {cpu} --duration 10m"),
    ];
    let tools: Vec<_> = tools
        .iter()
        .map_while(|line| tool(&place.session, here(&place), line))
        .collect();
    if tools.len() < 4 {
        return;
    }
    place.check(&["cpu some"]);
}

#[test]
fn pipe_ping_pong() {
    let Some(place) = Place::new("pipe_ping_pong") else {
        return;
    };
    let bench = "perf bench sched pipe --loop 1000000000";
    let Some(_pipe) = tool(&place.session, here(&place), bench) else {
        return;
    };
    let _pairs = load().within(&place.own).behind().start(&["ping-pong", "--pairs", "4"]);
    place.check(&["cpu some"]);
}

#[test]
fn many_threads_hackbench() {
    let Some(place) = Place::new("many_threads_hackbench") else {
        return;
    };
    let bench = "hackbench --threads --groups 3 --fds 10 --loops 100000000";
    let Some(_threads) = tool(&place.session, load().within(&place.own).behind(), bench) else {
        return;
    };
    place.check(&["cpu some"]);
}

/// As by cpu.max: the kernel takes the CPU away until the next period. A cpu controller of v1 does that to tasks whose
/// pressure is counted in their v2 cgroup.
#[test]
fn throttled_by_a_cpu_limit() {
    let Some(place) = Place::new("throttled_by_a_cpu_limit") else {
        return;
    };
    let limit = match machine::v1_mount("cpu") {
        Some(mount) => {
            let limit = Cgroup::below(&mount, place.session.name());
            limit.set("cpu.cfs_period_us", "100000");
            limit.set("cpu.cfs_quota_us", "30000");
            limit
        }
        None => return place.session.skip("no v1 cpu hierarchy is mounted"),
    };
    let spinner = || load().within(&limit).within(&place.own);
    let _spinners = [
        spinner().on_cpu(machine::load_cpu()).start(&["spin"]),
        spinner().start(&["spin", "--threads", "2"]),
    ];
    place.check(&["cpu some", "cpu full"]);
}
