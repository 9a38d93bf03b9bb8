//! The command line of `psitrace bench`.

use clap::{Args, Subcommand};

use crate::commands::bench::loads::Load;

#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) bench: Bench,
}

/// What `bench` measures.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// What it costs to be attached, under four loads, and what each option saves
    Overhead(BenchPairsArgs),
    /// What each level of the cgroup tree adds to that, beside what it adds to the kernel's own PSI
    #[command(mut_arg("load", |load| load.help("Only this load; may be repeated [default: pipe and messaging]")))]
    Depth(BenchPairsArgs),
    /// The flush in three ways of holding the updated lists, beside the kernel's rstat before and after its fix
    Flush(BenchFlushArgs),
    /// Run a load and print the seconds it took
    #[command(hide = true)]
    Load(BenchLoadArgs),
}

/// Options of the benchmarks that run loads in pairs: with psitrace attached and without.
#[derive(Args, Debug)]
pub(crate) struct BenchPairsArgs {
    /// Pairs of runs for each figure; with fewer than six nothing is told from noise
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) pairs: u32,
    /// Only this load; may be repeated
    #[arg(long, value_enum, value_name = "LOAD")]
    load: Vec<Load>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl BenchPairsArgs {
    /// The loads that are asked for, or those that usually run.
    pub(crate) fn loads<'a>(&'a self, usual: &'a [Load]) -> &'a [Load] {
        if self.load.is_empty() { usual } else { &self.load }
    }
}

#[derive(Args, Debug)]
pub(crate) struct BenchLoadArgs {
    /// Which
    #[arg(value_enum)]
    pub(crate) load: Load,
}

#[derive(Args, Debug)]
pub(crate) struct BenchFlushArgs {
    /// Updates to run each way with, at least
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) updates: u64,
    /// Cgroups that are updated
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) cgroups: u32,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
