//! `--track`: only some cgroups have figures; what the others do is their nearest tracked ancestor's.

use tests::{
    cgroup::Cgroup,
    load::Working,
    program::run,
    record::{Share, counts_nothing},
    running::Dump,
    session::Session,
};

use crate::load;

fn spin_two(cgroup: &Cgroup) -> [Working; 2] {
    [0; 2].map(|_| load().within(cgroup).alone().start(&["spin"]))
}

#[test]
fn only_what_matches_is_shown_and_its_ancestors_have_the_rest() {
    let Some(session) = Session::start("only_what_matches_is_shown_and_its_ancestors_have_the_rest") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let (wanted, other) = (outer.child("wanted"), outer.child("other"));
    let below = other.child("below");
    let mut dump = Dump::start(&["--track", wanted.path(), "--interval", "400ms"]);
    let record = dump.record();
    assert_eq!(record.paths(), ["/", outer.path(), wanted.path()]);

    let spinners = spin_two(&below);
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(4);
    before.expect(&after, &outer, "cpu some", Share::ALWAYS);
    before.expect(&after, &wanted, "cpu some", Share::NEVER);
    assert_eq!(after.quality("cgroups_without_slot"), 0, "they are not wanted");
    drop(spinners);
    outer.wait_until_empty();
    for cgroup in [below, other] {
        cgroup.remove();
    }

    let _spinners = spin_two(&wanted);
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(4);
    for cgroup in [&outer, &wanted] {
        before.expect(&after, cgroup, "cpu some", Share::ALWAYS);
    }
    dump.finish();
}

/// No program can match a pattern, so tasks can be in a new cgroup before it has a slot.
#[test]
fn what_is_made_later_is_tracked_with_right_counts() {
    let Some(session) = Session::start("what_is_made_later_is_tracked_with_right_counts") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let glob = format!("{}/**/later*", outer.path());
    let mut dump = Dump::start(&["--track", &glob, "--counts", "--interval", "300ms"]);
    // Nothing matches yet.
    assert_eq!(dump.record().paths(), ["/"]);

    let mut drift = vec![0];
    for round in 0..3 {
        let middle = outer.child(&format!("middle-{round}"));
        // Here before a cgroup in it is tracked, and charged to the root until then.
        let early = load().within(&middle).alone().start(&["spin"]);
        let later = middle.child("later");
        let not = middle.child("never");
        // Nothing of that one's own tells that it belongs elsewhere now.
        let moved = dump.fresh_after(2);
        let seen = moved.cgroup(middle.path()).expect("listed");
        assert_eq!(seen["counts"]["productive"], 1, "{seen}");
        let spinner = load().within(&later).alone().start(&["spin", "--threads", "3"]);
        let before = dump.fresh_after(3);
        let after = dump.fresh_after(3);
        assert_eq!(after.paths(), ["/", outer.path(), middle.path(), later.path()]);
        for cgroup in [&outer, &middle, &later] {
            before.expect(&after, cgroup, "cpu some", Share::ALWAYS);
        }
        // Each of the four, and nothing twice: a parent counts a child once on each CPU.
        let counts = |cgroup: &Cgroup| after.cgroup(cgroup.path()).expect("listed")["counts"].clone();
        assert_eq!(counts(&later)["productive"], 3, "{}", counts(&later));
        assert_eq!(counts(&middle)["productive"], 2, "{}", counts(&middle));
        assert_eq!(counts(&outer)["productive"], 1, "{}", counts(&outer));
        assert_eq!(after.quality("cgroups_without_slot"), 0);
        drift.push(after.quality("drift"));

        drop((early, spinner));
        middle.wait_until_empty();
        dump.find("no counted task", 10, |record| {
            [&outer, &middle, &later]
                .iter()
                .all(|cgroup| record.cgroup(cgroup.path()).is_some_and(counts_nothing))
        });
        for cgroup in [later, not, middle] {
            cgroup.remove();
        }
    }
    // It is counted over the whole machine, whose kernel may hide a switch at times.
    let has_grown = drift.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(!has_grown, "a move is no fault, but each round had drift: {drift:?}");
    dump.finish();
}

/// Thousands that match and as many that do not come and go; then there is room for more.
#[test]
fn churn_of_both_kinds_leaves_nothing_behind() {
    let Some(session) = Session::start("churn_of_both_kinds_leaves_nothing_behind") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let glob = format!("{}/wanted*", outer.path());
    let mut dump = Dump::start(&["--track", &glob, "--max-cgroups", "64", "--interval", "200ms"]);
    dump.record();
    for wave in 0..40 {
        let cgroups: Vec<Cgroup> = (0..25)
            .flat_map(|n| [format!("wanted-{wave}-{n}"), format!("other-{wave}-{n}")])
            .map(|name| outer.child(&name))
            .collect();
        load().within(&cgroups[0]).run(&["nothing"]);
        load().within(&cgroups[1]).run(&["nothing"]);
        cgroups.into_iter().for_each(Cgroup::remove);
    }
    dump.find("only what exists", 50, |record| {
        record.paths() == ["/", outer.path()] && record.quality("cgroups_without_slot") == 0
    });
    let last = outer.child("wanted-last");
    let _spinners = spin_two(&last);
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(4);
    before.expect(&after, &last, "cpu some", Share::ALWAYS);
    before.expect(&after, &outer, "cpu some", Share::ALWAYS);
    dump.finish();
}

#[test]
fn a_cgroup_that_is_not_tracked_cannot_be_asked_for() {
    let Some(session) = Session::start("a_cgroup_that_is_not_tracked_cannot_be_asked_for") else {
        return;
    };
    let cgroup = Cgroup::new(session.name());
    for command in ["dump", "compare"] {
        let finished = run(&[command, "--track", "/no-such/*", "--cgroup", cgroup.path()]);
        let line = finished.expect_failure(2);
        assert!(line.contains(cgroup.path()) && line.contains("--track"), "{line}");
    }
    let finished = run(&["dump", "--track", "/["]);
    assert!(finished.expect_failure(2).contains("--track"));
}
