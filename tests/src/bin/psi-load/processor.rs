//! Computing.

use std::{
    hint::{black_box, spin_loop},
    io, thread,
};

use crate::ready;

/// Computes in so many threads, the process's first one included.
pub(crate) fn spin(threads: usize) -> io::Result<()> {
    for _ in 1..threads {
        thread::spawn(compute);
    }
    ready()?;
    compute();
    Ok(())
}

/// Hardly ever `spin_loop`: a hypervisor may take the CPU away for it. An emulator that runs one CPU at a time must now and
/// then, for the other CPUs' sake.
fn compute() {
    const A_WHILE: u64 = 1 << 16;
    let mut n = 0_u64;
    loop {
        n = black_box(n.wrapping_add(1));
        if n.is_multiple_of(A_WHILE) {
            spin_loop();
        }
    }
}
