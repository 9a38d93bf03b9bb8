//! Waiting for io, for as long as one likes: the kernel counts a task that waits for an io_uring request as iowait,
//! even if the request is a read from an empty pipe.

use std::{io, os::fd::AsRawFd as _, ptr, thread};

use rustix::{
    io_uring::{
        IORING_OFF_SQ_RING, IORING_OFF_SQES, IoringEnterFlags, IoringOp, io_uring_enter, io_uring_params,
        io_uring_setup, io_uring_sqe,
    },
    mm::{MapFlags, ProtFlags, mmap},
};

use crate::ready;

/// Waits in so many threads, the process's first one included.
pub(crate) fn wait(threads: usize) -> io::Result<()> {
    // The pipe's other end stays open, and nothing ever comes.
    let (reader, _writer) = io::pipe()?;
    let fd = reader.as_raw_fd();
    let others: Vec<_> = (1..threads)
        .map(|_| thread::spawn(move || wait_for_byte(fd, || Ok(()))))
        .collect();
    wait_for_byte(fd, ready)?;
    drop(others);
    Ok(())
}

fn wait_for_byte(fd: i32, at_work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let mut parameters = io_uring_params::default();
    // SAFETY: the parameters are the kernel's own structure.
    let ring = unsafe { io_uring_setup(1, &mut parameters) }?;
    let shared = |length, offset| {
        // SAFETY: a new mapping at an address that the kernel chooses.
        unsafe {
            mmap(
                ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &ring,
                offset,
            )
        }
    };
    let offsets = &parameters.sq_off;
    let queue = shared(offsets.array as usize + size_of::<u32>(), IORING_OFF_SQ_RING)?;
    let entry = shared(size_of::<io_uring_sqe>(), IORING_OFF_SQES)?.cast::<io_uring_sqe>();

    let mut byte = [0_u8];
    let mut read = io_uring_sqe {
        opcode: IoringOp::Read,
        fd,
        ..Default::default()
    };
    read.len.len = 1;
    read.addr_or_splice_off_in.addr = byte.as_mut_ptr().cast::<std::ffi::c_void>().into();
    // SAFETY: entry 0 of the mapped array; the kernel does not look at it before the tail says so.
    unsafe { entry.write(read) };
    // SAFETY: within the mapping, where the kernel says that its array is.
    let first = unsafe { queue.byte_add(offsets.array as usize).cast::<u32>() };
    // SAFETY: as above.
    unsafe { first.write(0) };
    // SAFETY: within the mapping, where the kernel says that the tail is; the call below orders the writes.
    let tail = unsafe { queue.byte_add(offsets.tail as usize).cast::<u32>() };
    // SAFETY: as above.
    unsafe { tail.write_volatile(1) };
    at_work()?;
    // SAFETY: the byte outlives the call, which returns when it was written, or never.
    unsafe { io_uring_enter(&ring, 1, 1, IoringEnterFlags::GETEVENTS) }?;
    Ok(())
}
