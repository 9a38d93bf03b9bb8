//! Cgroups that come and go, and tasks that change theirs.

use std::{
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread::sleep,
    time::Duration,
};

use tests::{cgroup::Cgroup, load::Working, machine};

use crate::{load, measure::Place};

/// Time between two moves.
const MOVE: Duration = Duration::from_millis(100);

#[test]
fn cgroups_by_the_thousand() {
    const AT_ONCE: u32 = 50;
    let Some(place) = Place::new("cgroups_by_the_thousand") else {
        return;
    };
    let _spinners = [0; 2].map(|_| load().within(&place.own).on_cpu(machine::load_cpu()).start(&["spin"]));
    let made = AtomicU32::new(0);
    place.check_while(&["cpu some"], || {
        let name = |n| format!("{}-{n}", made.load(Relaxed));
        let cgroups: Vec<Cgroup> = (0..AT_ONCE).map(|n| place.own.child(&name(n))).collect();
        for cgroup in cgroups.iter().step_by(25) {
            // It ends there, and its last switch may come after the cgroup was removed.
            load().within(cgroup).run(&["nothing"]);
        }
        cgroups.into_iter().for_each(Cgroup::remove);
        made.fetch_add(AT_ONCE, Relaxed);
    });
    let made = made.into_inner();
    println!("{made} cgroups came and went");
    assert!(made > 1000, "expected cgroups by the thousand, saw {made}");
}

/// They compute or wait for their CPU, single threads and all threads of a process.
#[test]
fn moved_while_running() {
    let Some(place) = Place::new("moved_while_running") else {
        return;
    };
    let spinner = |threads| {
        let load = load().within(&place.own).on_cpu(machine::load_cpu());
        load.start(&["spin", "--threads", threads])
    };
    move_about(&place, &[spinner("1"), spinner("1"), spinner("3")], "cpu some");
}

/// They sleep in iowait all the time: no event of theirs says where they are.
#[test]
fn moved_while_blocked() {
    let Some(place) = Place::new("moved_while_blocked") else {
        return;
    };
    let waiter = |threads| {
        load()
            .within(&place.own)
            .try_start(&["wait-for-io", "--threads", threads])
    };
    let (Some(one), Some(three)) = (waiter("1"), waiter("3")) else {
        return place.session.skip("this kernel has no io_uring");
    };
    move_about(&place, &[one, three], "io some");
}

/// One after the other to a sibling, then all of them back.
fn move_about(place: &Place, loads: &[Working], figure: &str) {
    let other = place.parent.child("other");
    place.check_while(&[figure], || {
        for cgroup in [&other, &place.own] {
            for load in loads {
                cgroup.enter(load.pid());
                sleep(MOVE);
            }
        }
    });
}
