//! Races, exhaustively: loom runs each test in every order of its atomic operations that can matter.
//!
//! Where that takes too long for every day, orders with many preemptions are left out. `PSITRACE_CASES=1 cargo test -p
//! psi-common --release --test races` tries them all.

mod events;
mod lists;
mod memory;
mod recycling;
mod task;
mod walks;
