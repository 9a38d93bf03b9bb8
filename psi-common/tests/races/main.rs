//! Races, exhaustively: loom runs each test in every order of its atomic operations that can matter.

mod events;
mod lists;
mod memory;
mod task;
mod walks;
