//! Processes that come and go.

use crate::{load, measure::Place, tool};

#[test]
fn fork_storm() {
    storm("fork_storm", "stress-ng --quiet --fork 4");
}

/// As nobody, for stress-ng does not do that as root.
#[test]
fn exec_storm() {
    storm(
        "exec_storm",
        "setpriv --reuid=65534 --regid=65534 --clear-groups stress-ng --quiet --temp-path /tmp --exec 4",
    );
}

fn storm(name: &'static str, line: &str) {
    let Some(place) = Place::new(name) else { return };
    let Some(_storm) = tool(&place.session, load().within(&place.own).behind(), line) else {
        return;
    };
    place.check(&["cpu some"]);
}
