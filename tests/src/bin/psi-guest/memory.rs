//! A load that needs more memory than it may have.

use std::io::{self, Write as _};

const PAGE: usize = 4096;

/// Touches memory until it is killed.
pub(crate) fn touch(mib: usize) -> io::Result<()> {
    // Zeroed memory takes no page before it is written to.
    let mut memory = vec![0_u8; mib << 20];
    let mut stdout = io::stdout();
    stdout.write_all(b"ready\n")?;
    stdout.flush()?;
    // Never all zeros: such pages need no swap.
    for round in (1..=u8::MAX).cycle() {
        for page in memory.chunks_mut(PAGE) {
            page[0] = round;
        }
    }
    Ok(())
}
