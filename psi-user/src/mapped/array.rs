//! One array map as memory.

use std::{
    ffi::c_void,
    io,
    marker::PhantomData,
    os::fd::BorrowedFd,
    ptr::{self, NonNull},
};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// An array map, mapped.
#[derive(Debug)]
pub(crate) struct MappedArray<T> {
    base: NonNull<T>,
    len: usize,
    bytes: usize,
    _records: PhantomData<T>,
}

// SAFETY: the memory is shared with the kernel for as long as the value lives, on any thread, and is only
// accessed through atomics.
unsafe impl<T> Send for MappedArray<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for MappedArray<T> {}

impl<T> MappedArray<T> {
    const ACCESS: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

    /// Maps `len` records of a mmapable array. `T` is one of the record types of [`psi_common::layout`].
    pub(crate) fn new(fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        Self::of(len, |bytes| {
            // SAFETY: a new mapping, placed by the kernel.
            unsafe { mmap(ptr::null_mut(), bytes, Self::ACCESS, MapFlags::SHARED, fd, 0) }
        })
    }

    /// `len` records of memory that no kernel shares, all zero: see [`crate::synthetic`].
    pub(crate) fn anonymous(len: usize) -> io::Result<Self> {
        Self::of(len, |bytes| {
            // SAFETY: a new mapping, placed by the kernel.
            unsafe { mmap_anonymous(ptr::null_mut(), bytes, Self::ACCESS, MapFlags::PRIVATE) }
        })
    }

    /// `len` records in what `map` maps for so many bytes.
    fn of(len: usize, map: impl FnOnce(usize) -> rustix::io::Result<*mut c_void>) -> io::Result<Self> {
        // The kernel rounds a record up to 8 bytes; all records are multiples of that already.
        let bytes = (len * size_of::<T>()).next_multiple_of(rustix::param::page_size());
        let base = NonNull::new(map(bytes)?.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            base,
            len,
            bytes,
            _records: PhantomData,
        })
    }

    /// The memory as it is, to be copied in a measurement.
    pub(crate) const fn bytes(&self) -> (*mut u8, usize) {
        (self.base.as_ptr().cast(), self.bytes)
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// A copy of a record that others may be changing: numbers in it are from about the same time.
    pub(crate) fn copy(&self, index: usize) -> Option<T>
    where
        T: Copy,
    {
        // SAFETY: a live and aligned record of plain integers; each is read once.
        self.get(index).map(|record| unsafe { record.read_volatile() })
    }

    pub(super) fn get(&self, index: usize) -> Option<*mut T> {
        // SAFETY: within the mapping.
        (index < self.len).then(|| unsafe { self.base.as_ptr().add(index) })
    }

    /// The first record. There always is one: nothing cannot be mapped.
    pub(super) const fn first(&self) -> *mut T {
        self.base.as_ptr()
    }
}

impl<T> Drop for MappedArray<T> {
    fn drop(&mut self) {
        // SAFETY: our own mapping; nothing borrowed from it outlives `self`. A failure leaves it mapped.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
