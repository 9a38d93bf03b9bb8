//! psi-user's flusher, its very source, against updaters at the same time: loom runs each test in every order of the
//! atomic operations that can matter. See the tests `flusher` for how it gets here.

#[path = "../flusher/averages.rs"]
mod averages;
#[path = "../../../psi-user/src/enable.rs"]
#[expect(dead_code, reason = "psi-user's")]
mod enable;
#[path = "../../../psi-user/src/flush.rs"]
#[expect(dead_code, unreachable_pub, reason = "psi-user's")]
mod flush;
mod mapped;
#[path = "../races/memory.rs"]
#[expect(dead_code, reason = "the tests of races use all of it")]
mod memory;
mod readings;
#[path = "../flusher/slots.rs"]
mod slots;
mod switches;
