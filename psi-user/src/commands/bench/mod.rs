//! `psitrace bench`: one command makes each table of docs/performance.md.

mod depth;
mod flush;
pub(crate) mod loads;
mod machine;
mod overhead;
mod pairs;
mod subject;

use std::process::ExitCode;

use super::Failure;
use crate::cli::{Bench, BenchArgs};

pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode, Failure> {
    match &args.bench {
        Bench::Overhead(args) => overhead::run(args),
        Bench::Depth(args) => depth::run(args),
        Bench::Flush(args) => flush::run(args),
        Bench::Load(args) => loads::run(args),
    }
}
