//! Descriptors that are waited for.

use std::{
    future::pending,
    io,
    os::fd::{BorrowedFd, OwnedFd},
};

use tokio::io::{Interest, unix::AsyncFd};

/// A descriptor that is waited for.
pub(super) struct Watched(AsyncFd<OwnedFd>);

impl Watched {
    /// Waits for work on `fd`.
    pub(super) fn for_work(fd: BorrowedFd<'_>) -> io::Result<Self> {
        Self::new(fd, Interest::READABLE)
    }

    /// Waits for the end of `terminal` only.
    pub(super) fn for_end(terminal: BorrowedFd<'_>) -> io::Result<Self> {
        // Priority data, which no terminal has: the end comes with any interest, each key only with that in reading.
        Self::new(terminal, Interest::PRIORITY)
    }

    fn new(fd: BorrowedFd<'_>, interest: Interest) -> io::Result<Self> {
        let fd = fd.try_clone_to_owned()?;
        // SAFETY: a descriptor of our own, which nothing closes or replaces before the result is dropped.
        let registered = unsafe { AsyncFd::register_with_interest(fd, interest) };
        Ok(Self(registered?))
    }

    /// Waits until there is work, for ever without a descriptor. All of the work is then to be done.
    pub(super) async fn work(watched: Option<&Self>) -> io::Result<()> {
        let Some(Self(fd)) = watched else {
            return pending().await;
        };
        let mut guard = fd.readable().await?;
        if guard.ready().is_read_closed() {
            // Would be readable for ever.
            return Err(io::Error::other("the descriptor's other end is closed"));
        }
        // Before the work, so that what comes meanwhile wakes again.
        guard.clear_ready();
        Ok(())
    }

    /// Waits until the other end is closed.
    pub(super) async fn end(&self) {
        let Self(fd) = self;
        loop {
            match fd.ready(Interest::PRIORITY).await {
                Ok(guard) if guard.ready().is_read_closed() => return,
                Ok(mut guard) => guard.clear_ready(),
                Err(_) => return,
            }
        }
    }
}
