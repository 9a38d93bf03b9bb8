//! The tracer's end leaves nothing in the kernel, whatever end it is.

use std::time::Duration;

use rustix::process::Signal;
use tests::{bpf_ids::Ids, eventually, running::Dump, session::Session};

/// The kernel frees programs and maps a while after their last user is gone.
const GRACE: Duration = Duration::from_secs(10);

#[test]
fn kill_leaves_no_program_and_no_map() {
    let Some(_session) = Session::start("kill_leaves_no_program_and_no_map") else {
        return;
    };
    leaves_nothing(Signal::KILL);
}

#[test]
fn termination_leaves_no_program_and_no_map() {
    let Some(_session) = Session::start("termination_leaves_no_program_and_no_map") else {
        return;
    };
    leaves_nothing(Signal::TERM);
}

/// By the ids that the process itself has open: others may load and unload programs of their own meanwhile.
fn leaves_nothing(signal: Signal) {
    let before = Ids::of_kernel();
    let mut dump = Dump::start(&["--interval", "100ms"]);
    dump.record();
    let own = Ids::of_process(dump.pid());
    assert_eq!(own, own.common(&Ids::of_kernel()), "what it has open, the kernel has");
    assert_eq!(own.common(&before), Ids::default(), "what it has open, it has made");
    let Ids { programs, maps, links } = &own;
    assert!(programs.len() >= 9, "expected its programs, saw {own:?}");
    assert!(maps.len() >= 5, "expected its maps, saw {own:?}");
    assert!(links.len() >= 8, "expected its links, saw {own:?}");

    dump.signal(signal);
    dump.wait();
    eventually("nothing of it is left in the kernel", GRACE, || {
        own.common(&Ids::of_kernel()).is_empty().then_some(())
    });
}
