//! Computing.

use std::{hint::black_box, io, thread};

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

/// Not `spin_loop`: a hypervisor may take the CPU away for it.
fn compute() {
    let mut n = 0_u64;
    loop {
        n = black_box(n.wrapping_add(1));
    }
}
