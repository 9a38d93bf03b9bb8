//! Races, exhaustively: loom runs each test in every order of its atomic operations that can matter.

mod memory;
mod walks;
