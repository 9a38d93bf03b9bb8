//! `psitrace bench`: one command makes each table of docs/performance.md.

mod flush;
mod machine;

use std::process::ExitCode;

use super::Failure;
use crate::cli::{Bench, BenchArgs};

pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode, Failure> {
    match &args.bench {
        Bench::Flush(args) => flush::run(args),
    }
}
