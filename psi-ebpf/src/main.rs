//! The BPF programs of psitrace: one file a family of hooks, thin over `psi_common::account`.

#![no_std]
#![no_main]
#![expect(
    internal_features,
    reason = "atomic instructions that return a value exist for this target as intrinsics only"
)]
#![feature(core_intrinsics)]

mod cgroup;
mod irq;
mod kernel;
mod left;
mod maps;
mod memory;
mod memstall;
mod nothing;
mod rstat;
mod sched;
mod task;
mod walk;

#[unsafe(no_mangle)]
#[unsafe(link_section = "license")]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
