//! psitrace.
fn main() {}
