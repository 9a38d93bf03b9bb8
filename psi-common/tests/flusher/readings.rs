//! Readings out of their bounds: they are not used, and what they would have told is made up for later.

use std::{cell::RefCell, rc::Rc};

use psi_common::{account::Records as _, layout::State, queue_clock::QueueClock};

use crate::{
    flush::Flusher,
    kernel::{Kernel, Leave},
    mapped::{MappedMaps, NOW},
    slots::Slots,
    tracer::{Source, Tracer},
};

const TICK_NS: u64 = 4_000_000;
pub(crate) const WINDOW_NS: u64 = 2_000_000_000;
const CPU_SOME: usize = 0;
/// How long the flusher is kept from a reading.
const LATE_NS: u64 = 5_000_000;
pub(crate) const GROUP: u32 = 1;

/// One CPU, one cgroup below the root, two tasks in it: the first runs, the second waits.
pub(crate) struct Machine {
    pub(crate) kernel: Kernel,
    pub(crate) tracer: Tracer,
}

impl Machine {
    pub(crate) fn new() -> Rc<RefCell<Self>> {
        let parents = [None, Some(0)];
        let mut this = Self {
            kernel: Kernel::new(&parents, 1),
            tracer: Tracer::new(&parents, 1, Source::Fentry),
        };
        this.pass(0);
        let Self { kernel, tracer } = &mut this;
        for pid in [1, 2] {
            kernel.fork(GROUP as usize, tracer);
            kernel.start(pid, 0, tracer);
        }
        kernel.switch(0, Leave::Preempted, Some(1), tracer);
        Rc::new(RefCell::new(this))
    }

    pub(crate) fn pass(&mut self, ns: u64) {
        self.kernel.pass(ns, &mut self.tracer);
        NOW.set(self.kernel.now);
    }

    pub(crate) fn switch(&mut self, leave: Leave, next: Option<u32>) {
        self.kernel.switch(0, leave, next, &mut self.tracer);
    }

    fn truth(&self) -> u64 {
        self.kernel
            .psi
            .get(GROUP as usize, 0)
            .total_at(CPU_SOME, self.kernel.now)
    }
}

pub(crate) fn flusher(machine: &RefCell<Machine>) -> (MappedMaps, Flusher, Slots) {
    let machine = machine.borrow();
    let maps = MappedMaps::new(Rc::clone(&machine.tracer.memory));
    let flusher = Flusher::new(&maps, machine.kernel.now, TICK_NS);
    (maps, flusher, Slots(vec![None, Some(0)]))
}

/// The flusher is preempted between its look at the clock and the reading, and a state that was on all the time ends
/// meanwhile: the reading is above the bound, and right.
#[test]
fn a_late_reading_is_made_up_for() {
    let machine = Machine::new();
    let (maps, mut flusher, slots) = flusher(&machine);
    flusher.close(&maps, &slots);
    // The waiting task waits on; the running one gets busy with IO, so that the record is on the list.
    machine.borrow_mut().pass(WINDOW_NS);
    machine.borrow_mut().switch(Leave::Waits, None);
    let meanwhile = Rc::clone(&machine);
    *maps.interruption.borrow_mut() = Some(Box::new(move |slot| {
        if slot == GROUP && meanwhile.borrow().kernel.current[0].is_none() {
            meanwhile.borrow_mut().pass(LATE_NS);
            meanwhile.borrow_mut().switch(Leave::Preempted, Some(2));
        }
    }));
    flusher.close(&maps, &slots);
    *maps.interruption.borrow_mut() = None;
    // Life goes on, without pressure; each flush is as late as the one before.
    for late in [LATE_NS, 0, 0, 0, 0] {
        machine.borrow_mut().pass(WINDOW_NS - 1000 - late);
        machine.borrow_mut().switch(Leave::Preempted, None);
        machine.borrow_mut().pass(1000);
        machine.borrow_mut().switch(Leave::Preempted, Some(2));
        flusher.close(&maps, &slots);
    }
    assert_eq!(flusher.totals(GROUP)[CPU_SOME], machine.borrow().truth());
}

/// Events that raced have left a total below 0. That is no state that is on.
#[test]
fn a_total_below_zero_is_no_time() {
    let machine = Machine::new();
    let (maps, mut flusher, slots) = flusher(&machine);
    let record = maps.record(0, GROUP).expect("a record");
    maps.add_time(record, State::IoFull, 5u64.wrapping_neg());
    maps.updated(record, 0, GROUP);
    for _ in 0..3 {
        machine.borrow_mut().pass(WINDOW_NS);
        flusher.close(&maps, &slots);
    }
    assert_eq!(flusher.totals(GROUP)[4], 0);
    assert_eq!(flusher.rejected, 0);
}

/// An entry whose exit has not landed, or the other way round, is told by its size.
#[test]
fn an_add_without_its_counterpart_is_not_used() {
    let machine = Machine::new();
    let (maps, mut flusher, slots) = flusher(&machine);
    machine.borrow_mut().pass(WINDOW_NS);
    flusher.close(&maps, &slots);
    let before = *flusher.totals(GROUP);
    let record = maps.record(0, GROUP).expect("a record");
    let exit = maps.now(QueueClock::UNKNOWN) + (1 << 62);
    maps.add_time(record, State::IoFull, exit);
    maps.updated(record, 0, GROUP);
    flusher.close(&maps, &slots);
    assert_eq!(flusher.rejected, 1);
    assert_eq!(flusher.totals(GROUP)[4], before[4]);
    // It lands.
    maps.add_time(record, State::IoFull, exit.wrapping_sub(7).wrapping_neg());
    maps.updated(record, 0, GROUP);
    machine.borrow_mut().pass(WINDOW_NS);
    flusher.close(&maps, &slots);
    assert_eq!(flusher.totals(GROUP)[4], 7);
}
