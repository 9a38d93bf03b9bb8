//! Reading a file.

use std::{
    alloc::{Layout, alloc_zeroed},
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
    slice, thread,
};

use rustix::fs::OFlags;

use crate::ready;

/// Large, so that there are few waits: a tracer sees each wakeup some 100 ns after the kernel's own accounting, or 1 us
/// on a busy virtual machine, which adds up at 15,000 small reads a second.
const BLOCK: usize = 1 << 20;

/// Reads blocks all over the file, past the page cache, in so many threads; the process's first one only waits.
pub(crate) fn read(threads: usize, path: &Path) -> io::Result<()> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::DIRECT.bits().cast_signed())
        .open(path)?;
    let blocks = file.metadata()?.len() / BLOCK as u64;
    let readers: Vec<_> = (0..threads as u64)
        .map(|n| {
            let file = file.try_clone()?;
            Ok(thread::spawn(move || read_blocks(&file, blocks, n)))
        })
        .collect::<io::Result<_>>()?;
    ready()?;
    for reader in readers {
        reader.join().map_err(|_| io::Error::other("a reader panicked"))??;
    }
    Ok(())
}

fn read_blocks(file: &File, blocks: u64, seed: u64) -> io::Result<()> {
    let layout = Layout::from_size_align(BLOCK, 4096).map_err(io::Error::other)?;
    // SAFETY: the layout's size is not 0.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    // SAFETY: these are BLOCK zeroed bytes that nobody else knows, and they are never given back.
    let buffer = unsafe { slice::from_raw_parts_mut(memory, BLOCK) };
    let mut n = seed;
    loop {
        // The factor and the number of blocks, a power of two, have no divisor in common: all have their turn.
        n = n.wrapping_mul(5).wrapping_add(seed * 2 + 1) % blocks.max(1);
        file.read_exact_at(buffer, n * BLOCK as u64)?;
    }
}

/// Reads the file from beginning to end, over and over.
pub(crate) fn read_cached(path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; BLOCK];
    ready()?;
    loop {
        file.rewind()?;
        while file.read(&mut buffer)? > 0 {}
    }
}
