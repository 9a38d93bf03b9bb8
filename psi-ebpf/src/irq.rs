//! Interrupt time: hardirqs, vectors of the architecture, softirqs.
//!
//! Charged to the running task's cgroup alone; userspace sums it up the tree, since time adds up.

use core::intrinsics::{AtomicOrdering::SeqCst, atomic_xadd};
use core::ptr;

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use psi_common::{
    account::Records as _,
    layout::{Counter, Cpu, State, irq_kind},
    queue_clock::QueueClock,
    word::Running,
};

use crate::{
    memory::{Maps, count, current_cpu, this_cpu},
    sched::check_running,
};

/// Only the outermost interrupt is timed. The bits are set, never counted, so a lost event heals with the next of
/// its kind.
#[inline(always)]
fn enter(this: *mut Cpu, kind: u32) {
    // SAFETY: a map value, used by this CPU only. A hardirq may land between any two of these lines in a softirq
    // entry; it leaves `irq_active` as it found it. Bits first, then the clock: it then does not time itself
    // within a softirq whose time is counted from here on.
    unsafe {
        let active = ptr::read_volatile(&raw const (*this).irq_active);
        ptr::write_volatile(&raw mut (*this).irq_active, active | kind);
        if active & kind != 0 {
            count(Counter::MissedIrqs);
        }
        if active & !kind == 0 {
            ptr::write_volatile(&raw mut (*this).irq_start, Maps.now(QueueClock::UNKNOWN));
        }
    }
}

#[inline(always)]
fn exit(cpu: u32, this: *mut Cpu, kind: u32) {
    // SAFETY: map values. A hardirq between the clock and the cleared bit is not counted: a benign race of
    // nanoseconds.
    unsafe {
        let active = ptr::read_volatile(&raw const (*this).irq_active);
        if active & kind == 0 {
            return;
        }
        if active != kind {
            ptr::write_volatile(&raw mut (*this).irq_active, active & !kind);
            return;
        }
        let took = Maps
            .now(QueueClock::UNKNOWN)
            .wrapping_sub(ptr::read_volatile(&raw const (*this).irq_start));
        ptr::write_volatile(&raw mut (*this).irq_active, 0);
        let slot = Running(ptr::read_volatile(&raw const (*this).running)).slot();
        if let Some(record) = Maps.record(cpu, slot) {
            atomic_xadd::<u64, u64, { SeqCst }>(&raw mut (*record).times[State::IrqFull as usize], took);
            Maps.updated(record, cpu, slot);
        }
    }
}

#[inline(always)]
fn hard_entry(kind: u32) -> i32 {
    let cpu = current_cpu();
    if let Some(this) = this_cpu(cpu) {
        enter(this, kind);
    }
    0
}

#[inline(always)]
fn hard_exit(kind: u32) -> i32 {
    let cpu = current_cpu();
    if let Some(this) = this_cpu(cpu) {
        exit(cpu, this, kind);
    }
    0
}

/// As [`hard_entry`], and compares the CPU's record with what it runs.
#[inline(always)]
fn checking_entry(kind: u32) -> i32 {
    let cpu = current_cpu();
    if let Some(this) = this_cpu(cpu) {
        enter(this, kind);
        check_running(cpu, this);
    }
    0
}

macro_rules! hooks {
    ($($function:literal $name:ident => $call:expr;)*) => {
        $(
            #[btf_tracepoint(function = $function)]
            pub(crate) fn $name(_ctx: BtfTracePointContext) -> i32 {
                $call
            }
        )*
    };
}

// One program a hook: the kernel skips a program that is already running on the CPU.
hooks! {
    // The timer tick comes as `local_timer` on x86 and through a handler elsewhere.
    "irq_handler_entry" irq_handler_entry => checking_entry(irq_kind::HANDLER);
    "irq_handler_exit" irq_handler_exit => hard_exit(irq_kind::HANDLER);
    "local_timer_entry" local_timer_entry => checking_entry(irq_kind::VECTOR);
    "local_timer_exit" local_timer_exit => hard_exit(irq_kind::VECTOR);
    "call_function_entry" call_function_entry => hard_entry(irq_kind::VECTOR);
    "call_function_exit" call_function_exit => hard_exit(irq_kind::VECTOR);
    "call_function_single_entry" call_function_single_entry => hard_entry(irq_kind::VECTOR);
    "call_function_single_exit" call_function_single_exit => hard_exit(irq_kind::VECTOR);
    "irq_work_entry" irq_work_entry => hard_entry(irq_kind::VECTOR);
    "irq_work_exit" irq_work_exit => hard_exit(irq_kind::VECTOR);
    "x86_platform_ipi_entry" x86_platform_ipi_entry => hard_entry(irq_kind::VECTOR);
    "x86_platform_ipi_exit" x86_platform_ipi_exit => hard_exit(irq_kind::VECTOR);
    "thermal_apic_entry" thermal_apic_entry => hard_entry(irq_kind::VECTOR);
    "thermal_apic_exit" thermal_apic_exit => hard_exit(irq_kind::VECTOR);
    "threshold_apic_entry" threshold_apic_entry => hard_entry(irq_kind::VECTOR);
    "threshold_apic_exit" threshold_apic_exit => hard_exit(irq_kind::VECTOR);
    "deferred_error_apic_entry" deferred_error_apic_entry => hard_entry(irq_kind::VECTOR);
    "deferred_error_apic_exit" deferred_error_apic_exit => hard_exit(irq_kind::VECTOR);
    "error_apic_entry" error_apic_entry => hard_entry(irq_kind::VECTOR);
    "error_apic_exit" error_apic_exit => hard_exit(irq_kind::VECTOR);
    "spurious_apic_entry" spurious_apic_entry => hard_entry(irq_kind::VECTOR);
    "spurious_apic_exit" spurious_apic_exit => hard_exit(irq_kind::VECTOR);
    "ipi_entry" ipi_entry => hard_entry(irq_kind::VECTOR);
    "ipi_exit" ipi_exit => hard_exit(irq_kind::VECTOR);
    "softirq_entry" softirq_entry => softirq_begins();
    "softirq_exit" softirq_exit => hard_exit(irq_kind::SOFTIRQ);
}

/// Softirqs that ksoftirqd serves are that task's own time, as for the kernel (irqtime_account_irq).
#[inline(always)]
fn softirq_begins() -> i32 {
    let cpu = current_cpu();
    let Some(this) = this_cpu(cpu) else { return 0 };
    // SAFETY: a map value.
    let (running, ksoftirqd) = unsafe {
        (
            Running(ptr::read_volatile(&raw const (*this).running)),
            ptr::read_volatile(&raw const (*this).ksoftirqd),
        )
    };
    if ksoftirqd == 0 || running.pid() != ksoftirqd {
        enter(this, irq_kind::SOFTIRQ);
    }
    0
}
