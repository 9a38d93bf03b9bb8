//! Attaching and detaching in the middle of everything.

use std::{thread::sleep, time::Duration};

use tests::{disk, running::Dump};

use crate::{folder, load, measure::Place, tool};

/// Two comparisons in a row, each by a tracer of its own that comes into the same load, and beside them others that come,
/// stay a second, and are killed.
#[test]
fn attached_and_detached_meanwhile() {
    let Some(place) = Place::new("attached_and_detached_meanwhile") else {
        return;
    };
    let Some(file) = disk::file(&place.session, folder()) else {
        return;
    };
    let _readers = load()
        .within(&place.own)
        .start_on(&["read", "--threads", "3"], file.path());
    let bench = "hackbench --pipe --groups 1 --fds 10 --loops 100000000";
    let Some(_processes) = tool(&place.session, load().within(&place.own).behind(), bench) else {
        return;
    };
    let another = || {
        let dump = Dump::start(&["--interval", "100ms"]);
        dump.wait_until_ready();
        sleep(Duration::from_secs(1));
    };
    for _ in 0..2 {
        place.check_while(&["cpu some", "io some"], another);
    }
}
