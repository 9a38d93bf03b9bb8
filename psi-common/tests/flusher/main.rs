//! psi-user's flusher, its very source, against the model: what it shows is what the kernel's aggregation makes of the
//! model's times, to the ns.
//!
//! The source is taken from psi-user by path: it is written against `crate::mapped`, and here that is the tracer's
//! plain memory with a clock that the tests set.

mod averages;
#[path = "../../../psi-user/src/enable.rs"]
mod enable;
#[path = "../../../psi-user/src/flush/mod.rs"]
#[expect(dead_code, unreachable_pub, reason = "psi-user's")]
mod flush;
#[path = "../accounting/kernel/mod.rs"]
#[expect(dead_code, reason = "the accounting's tests use all of it")]
mod kernel;
mod mapped;
#[path = "../accounting/plan.rs"]
#[expect(dead_code, reason = "the accounting's tests use all of it")]
mod plan;
#[path = "../accounting/psi.rs"]
#[expect(dead_code, reason = "the accounting's tests use all of it")]
mod psi;
mod readings;
mod slots;
mod switches;
#[path = "../accounting/tracer/mod.rs"]
#[expect(dead_code, reason = "the accounting's tests use all of it")]
mod tracer;
mod windows;
