//! Thousands of cgroups that come and go.

use tests::{
    cgroup::Cgroup,
    machine,
    record::{Record, Share},
    running::Dump,
    session::Session,
};

use crate::load;

const CGROUPS: usize = 2000;
const AT_ONCE: usize = 50;

#[test]
fn churn_leaves_nothing_behind() {
    let Some(session) = Session::start("churn_leaves_nothing_behind") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let mut dump = Dump::start(&["--interval", "200ms"]);
    let first = dump.record();
    churn(&outer);
    new_cgroup_is_traced(&mut dump, &outer);
    let last = dump.finish();
    nothing_is_left(&first, &last, &outer);
}

/// With fewer slots than cgroups at a time, so that each slot is used again and again.
#[test]
fn slots_are_used_again() {
    let Some(session) = Session::start("slots_are_used_again") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let existing = machine::cgroup_paths(&machine::v2_mount().expect("there is one")).len();
    let slots = existing.max(16) + 48;
    let mut dump = Dump::start(&["--interval", "200ms", "--max-cgroups", &slots.to_string()]);
    let first = dump.record();

    let too_many: Vec<Cgroup> = (0..slots + 50).map(|n| outer.child(&format!("many-{n}"))).collect();
    let full = dump.find("cgroups without a slot", 20, |record| {
        record.quality("cgroups_without_slot") >= 50
    });
    assert!(
        full.cgroups().len() <= slots,
        "expected at most {slots} cgroups, saw {}",
        full.cgroups().len()
    );
    too_many.into_iter().for_each(Cgroup::remove);
    dump.find("room again", 50, |record| record.quality("cgroups_without_slot") == 0);

    churn(&outer);
    dump.find("room again", 50, |record| record.quality("cgroups_without_slot") == 0);
    new_cgroup_is_traced(&mut dump, &outer);
    let last = dump.finish();
    nothing_is_left(&first, &last, &outer);
}

/// What is charged to an ancestor because there was no slot has to leave it again.
#[test]
fn without_slot_the_ancestor_is_charged() {
    let Some(session) = Session::start("without_slot_the_ancestor_is_charged") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let existing = machine::cgroup_paths(&machine::v2_mount().expect("there is one")).len();
    let mut dump = Dump::start(&["--interval", "300ms", "--max-cgroups", &existing.to_string()]);
    let without_slot = dump.record().quality("cgroups_without_slot");
    let inner = outer.child("inner");
    let spinners = [0; 2].map(|_| load().within(&inner).alone().start(&["spin"]));
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(4);
    assert_eq!(after.quality("cgroups_without_slot"), without_slot + 1);
    assert!(after.cgroup(inner.path()).is_none(), "{} has no slot", inner.path());
    before.expect(&after, &outer, "cpu some", Share::ALWAYS);

    drop(spinners);
    inner.remove();
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(3);
    assert_eq!(after.quality("cgroups_without_slot"), without_slot);
    before.expect(&after, &outer, "cpu some", Share::NEVER);
    dump.finish();
}

/// More cgroups at a time than can be remembered: once they are gone nothing may be left of them.
#[test]
fn more_cgroups_than_are_remembered() {
    let Some(session) = Session::start("more_cgroups_than_are_remembered") else {
        return;
    };
    let outer = Cgroup::new(session.name());
    let existing = machine::cgroup_paths(&machine::v2_mount().expect("there is one")).len();
    let mut dump = Dump::start(&["--interval", "300ms", "--max-cgroups", &(existing + 8).to_string()]);
    let without_slot = dump.record().quality("cgroups_without_slot");
    let too_many: Vec<Cgroup> = (0..5000).map(|n| outer.child(&format!("many-{n}"))).collect();
    dump.find("cgroups without a slot", 20, |record| {
        record.quality("cgroups_without_slot") > without_slot + 4000
    });
    too_many.into_iter().for_each(Cgroup::remove);
    dump.find("none of them left", 100, |record| {
        record.quality("cgroups_without_slot") == without_slot
    });
    new_cgroup_is_traced(&mut dump, &outer);
    dump.finish();
}

/// What lies deeper than the tracer follows is charged to the deepest cgroup that it does follow, and counted.
#[test]
fn very_deep_cgroups_are_charged_to_an_ancestor() {
    let Some(session) = Session::start("very_deep_cgroups_are_charged_to_an_ancestor") else {
        return;
    };
    let mut dump = Dump::start(&["--interval", "300ms"]);
    let without_slot = dump.record().quality("cgroups_without_slot");
    let mut chain = vec![Cgroup::new(session.name())];
    for _ in 0..45 {
        chain.push(chain[chain.len() - 1].child("deep"));
    }
    let spinners = [0; 2].map(|_| load().within(&chain[45]).alone().start(&["spin"]));
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(4);
    let listed = chain
        .iter()
        .filter(|cgroup| after.cgroup(cgroup.path()).is_some())
        .count();
    assert!((16..46).contains(&listed), "expected most of 46 cgroups, saw {listed}");
    let deeper = (46 - listed) as u64;
    assert_eq!(
        after.quality("cgroups_without_slot"),
        without_slot + deeper,
        "{listed} of 46 are listed"
    );
    for cgroup in [&chain[0], &chain[listed - 1]] {
        before.expect(&after, cgroup, "cpu some", Share::ALWAYS);
    }

    drop(spinners);
    while let Some(last) = chain.pop() {
        last.remove();
    }
    let last = dump.fresh_after(3);
    assert_eq!(last.quality("cgroups_without_slot"), without_slot);
    dump.finish();
}

fn churn(outer: &Cgroup) {
    for wave in 0..CGROUPS / AT_ONCE {
        let cgroups: Vec<Cgroup> = (0..AT_ONCE).map(|n| outer.child(&format!("wave-{wave}-{n}"))).collect();
        // Its last switch comes after it was waited for, and maybe after the cgroup was removed.
        load().within(&cgroups[0]).run(&["nothing"]);
        load().within(&cgroups[AT_ONCE / 2]).run(&["nothing"]);
        cgroups.into_iter().for_each(Cgroup::remove);
    }
}

fn new_cgroup_is_traced(dump: &mut Dump, outer: &Cgroup) {
    let cgroup = outer.child("after");
    let _spinners = [0; 2].map(|_| load().within(&cgroup).alone().start(&["spin"]));
    let before = dump.fresh_after(2);
    let after = dump.fresh_after(5);
    before.expect(&after, &cgroup, "cpu some", Share::ALWAYS);
}

fn nothing_is_left(first: &Record, last: &Record, outer: &Cgroup) {
    let children: Vec<&str> = last
        .paths()
        .into_iter()
        .filter(|path| path.starts_with(outer.path()))
        .collect();
    assert_eq!(children, [outer.path()], "cgroups that are gone are not listed");
    assert_eq!(last.quality("cgroups_without_slot"), 0, "{}", last.json["quality"]);
    last.expect_readings();
    for counter in ["storage_failures", "overflows"] {
        assert_eq!(
            last.quality(counter),
            first.quality(counter),
            "{counter}: {}",
            last.json["quality"]
        );
    }
}
