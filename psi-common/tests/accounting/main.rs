//! The accounting against a plain model of the kernel's PSI, over random events: equal to the ns, on every CPU, in
//! every cgroup, for every state.
//!
//! `PSITRACE_CASES=100000 cargo test -p psi-common --release --test accounting` looks longer, at new cases each time.

mod compare;
mod exact;
mod kernel;
mod limits;
mod lossy;
mod plan;
mod psi;
mod seeding;
#[expect(dead_code, reason = "the flusher's tests use all of it")]
mod tracer;
