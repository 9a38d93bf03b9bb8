//! A CPU's list of updated records: pushed to without waiting, detached whole, taken apart in private.
//!
//! A record is on the list while its link is not [`NOT_LISTED`]. Two barriers make sure that no change goes unseen: an
//! updater changes the record's values, full barrier, then reads the link; the flusher clears the link, full barrier,
//! then reads the values. On x86 the updater's atomic adds are that barrier.

use crate::layout::{LINK_PENDING, LIST_END, NOT_LISTED};

/// A number that both sides access atomically: a record's link, or the head of a list.
pub trait Number {
    /// Reads it.
    fn get(&self) -> u32;
    /// Writes it.
    fn set(&self, new: u32);
    /// Puts `new` in and returns what was there. A full barrier.
    fn swap(&self, new: u32) -> u32;
    /// Puts `new` in if `old` is there; says whether it did. A full barrier.
    fn replace(&self, old: u32, new: u32) -> bool;
}

/// Puts the record of `slot` with the link `next` on the list unless it is there.
///
/// Wait-free: the head changes hands first and the link follows; until it does the flusher sees [`LINK_PENDING`] and
/// waits, never the other way round.
#[inline(always)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "a handle: a reference to it would be one more memory access"
)]
pub fn push<N: Number>(next: N, head: impl FnOnce() -> Option<N>, slot: u32) {
    if next.get() != NOT_LISTED {
        return;
    }
    let Some(head) = head() else { return };
    if !next.replace(NOT_LISTED, LINK_PENDING) {
        return;
    }
    let first = head.swap(slot + 1);
    next.set(if first == 0 { LIST_END } else { first });
}

/// Takes the whole list: returns its first slot. This exchange is all that an updater can meet.
pub fn detach(head: &impl Number) -> Option<u32> {
    head.swap(0).checked_sub(1)
}

/// What follows a record of a detached list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another record.
    Slot(u32),
    /// Nothing.
    End,
    /// The updater has not linked it yet.
    Pending,
}

/// Reads the link of a record of a detached list and takes it off: after this its next updater lists it anew.
/// Between this and a read of the values there must be a full barrier; one may serve several records.
pub fn unlink(next: &impl Number) -> Next {
    match next.get() {
        LINK_PENDING => Next::Pending,
        link => {
            // Nobody else changes the link of a listed record.
            next.set(NOT_LISTED);
            if link == LIST_END || link == NOT_LISTED {
                Next::End
            } else {
                Next::Slot(link - 1)
            }
        }
    }
}
