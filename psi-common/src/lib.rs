//! What the BPF programs and userspace share: the layout of the maps and the accounting itself.
//!
//! Everything here is `no_std`, allocates nothing and is generic over its memory operations
//! ([`account::Records`]), so the same lines run inside the kernel, in the flusher and in the tests.

#![cfg_attr(not(test), no_std)]

pub mod account;
pub mod event;
pub mod hold;
pub mod layout;
pub mod list;
pub mod queue_clock;
pub mod word;
