//! A cgroup that is disabled and enabled: counts go on, times stand still meanwhile.

use psi_common::layout::State;

use crate::{
    enable::Switches,
    kernel::Leave,
    readings::{GROUP, Machine, WINDOW_NS, flusher},
};

const ROOT: u32 = 0;
/// In the flush's totals.
const CPU_SOME: usize = 0;
const IO_SOME: usize = 3;

#[test]
fn times_stand_still_while_counts_go_on() {
    let machine = Machine::new();
    let (maps, mut flusher, slots) = flusher(&machine);
    let mut switches = Switches::default();
    let truth = |slot: u32, state: usize| {
        let machine = machine.borrow();
        machine
            .kernel
            .psi
            .get(slot as usize, 0)
            .total_at(state, machine.kernel.now)
    };

    // One of the two waits for the CPU.
    machine.borrow_mut().pass(WINDOW_NS);
    switches.disable(&maps, GROUP);
    let at_first = truth(GROUP, CPU_SOME);
    assert!(switches.is_disabled(GROUP) && at_first >= WINDOW_NS);
    // Nothing happens; then it runs and the other waits for IO, at last nobody waits for the CPU.
    for step in 0..3 {
        machine.borrow_mut().pass(WINDOW_NS / 2);
        match step {
            0 => {}
            1 => machine.borrow_mut().switch(Leave::Waits, Some(2)),
            _ => machine.borrow_mut().pass(WINDOW_NS),
        }
        switches.settle(&maps);
        flusher.close(&maps, &slots);
        let shown = flusher.totals(GROUP);
        assert_eq!((shown[CPU_SOME], shown[IO_SOME]), (at_first, 0), "step {step}");
        for state in [CPU_SOME, IO_SOME] {
            assert_eq!(
                flusher.totals(ROOT)[state],
                truth(ROOT, state),
                "the root's, step {step}"
            );
        }
    }

    let (cpu_before, io_before) = (truth(GROUP, CPU_SOME), truth(GROUP, IO_SOME));
    switches.enable(&maps, GROUP);
    assert!(!switches.is_disabled(GROUP));
    // The IO goes on, which no event tells; then there is one again.
    for step in 0..3 {
        machine.borrow_mut().pass(WINDOW_NS);
        match step {
            0 => {}
            1 => machine.borrow_mut().switch(Leave::Preempted, None),
            _ => machine.borrow_mut().switch(Leave::Preempted, Some(2)),
        }
        switches.settle(&maps);
        flusher.close(&maps, &slots);
        let shown = flusher.totals(GROUP);
        assert_eq!(
            shown[CPU_SOME],
            at_first + truth(GROUP, CPU_SOME) - cpu_before,
            "step {step}"
        );
        assert_eq!(shown[IO_SOME], truth(GROUP, IO_SOME) - io_before, "step {step}");
    }
    assert_eq!(flusher.rejected, 0);
    let record = machine.borrow().tracer.record(0, GROUP as usize).clone();
    assert!(
        record.times[State::IoSome as usize].get().cast_signed() < 0,
        "it still waits for IO"
    );
}

/// What a released slot had on is nothing for the next cgroup that gets it.
#[test]
fn a_slot_is_forgotten() {
    let machine = Machine::new();
    let (maps, ..) = flusher(&machine);
    let mut switches = Switches::default();
    switches.disable(&maps, GROUP);
    switches.disable(&maps, GROUP);
    switches.forget(GROUP);
    assert!(!switches.is_disabled(GROUP));
    switches.enable(&maps, GROUP);
    assert!(
        machine.borrow().tracer.record(0, GROUP as usize).disabled.get(),
        "who clears the slot does that"
    );
}
