//! Races, exhaustively: loom runs each test in every order of its atomic operations that can matter.
//!
//! Where that takes too long, orders with more than a few preemptions are left out. With `PSITRACE_CASES=1 cargo test -p
//! psi-common --release --test races` these are two more, which takes minutes.

mod events;
mod lists;
#[expect(dead_code, reason = "the flusher's races use all of it")]
mod memory;
mod recycling;
mod task;
mod walks;
