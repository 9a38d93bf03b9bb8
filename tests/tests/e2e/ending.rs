//! How `dump` ends.

use rustix::process::Signal;
use tests::{running::Dump, session::Session};

#[test]
fn broken_pipe_is_no_error() {
    let Some(_session) = Session::start("broken_pipe_is_no_error") else {
        return;
    };
    for format in ["json", "table"] {
        let mut dump = Dump::start(&["--interval", "100ms", "--format", format]);
        dump.line();
        // As `head -1` does.
        dump.hang_up().expect_success();
    }
}

#[test]
fn signals_end_it_with_whole_lines() {
    let Some(_session) = Session::start("signals_end_it_with_whole_lines") else {
        return;
    };
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut dump = Dump::start(&["--interval", "10ms"]);
        dump.record();
        dump.signal(signal);
        let finished = dump.wait();
        finished.expect_success();
        for line in finished.stdout.split_inclusive('\n') {
            let is_whole = line.ends_with('\n') && serde_json::from_str::<serde_json::Value>(line).is_ok();
            assert!(is_whole, "{signal:?}: expected whole lines, saw {line:?}");
        }
    }
}

/// It does not wait for the end of its interval.
#[test]
fn a_signal_ends_a_long_interval() {
    let Some(_session) = Session::start("a_signal_ends_a_long_interval") else {
        return;
    };
    let dump = Dump::start(&["--interval", "1h"]);
    dump.wait_until_ready();
    dump.signal(Signal::TERM);
    let finished = dump.wait();
    assert_eq!(finished.expect_success().stdout, "");
}
