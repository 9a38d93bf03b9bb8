//! The command line.

mod bench;
mod refusal;
mod tracing;

use std::{path::PathBuf, str::FromStr as _, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use psi_user::{
    fields::Stall,
    top::{SortKey, Window},
    when::{self, End, When},
};

pub(crate) use self::{
    bench::{Bench, BenchArgs, BenchFlushArgs, BenchLoadArgs, BenchPairsArgs},
    refusal::{line, report},
    tracing::Tracing,
};
use crate::commands::dump::{Fields, Order};

/// Exit codes, as `psitrace --help` lists them.
pub(crate) mod exit {
    /// The tracer cannot run here.
    pub(crate) const CANNOT: u8 = 1;
    /// A wrong argument, or an output that cannot be written.
    pub(crate) const USAGE: u8 = 2;
}

/// Pressure stall information (PSI) from outside of the kernel: who waits for cpu, memory and io, and how long.
///
/// Needs root, or CAP_BPF and CAP_PERFMON.
#[derive(Debug, Parser)]
#[command(
    name = "psitrace",
    version,
    after_help = "Exit codes: 0 success, 1 the tracer cannot run here, 2 wrong arguments or an output that cannot be written."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say whether the tracer can run here, and what it would use
    Check(CheckArgs),
    /// Write the pressure of all cgroups, one JSON object a line
    Dump(Box<DumpArgs>),
    /// Record the pressure of all cgroups to a file, for `top --replay` and `dump --replay`
    Record(RecordArgs),
    /// Show the pressure of all cgroups live, or a recording
    Top(TopArgs),
    /// Compare with the kernel's own PSI, where it is on
    Compare(CompareArgs),
    /// Let a cgroup's times stand still in running psitraces, and hide it, as 0 in its cgroup.pressure does in the kernel
    ///
    /// Its tasks are still counted, so that its figures are right at once after `enable`. Cgroups above and below it go
    /// on.
    Disable(SwitchArgs),
    /// Let a cgroup's times go on in running psitraces, after `disable`
    Enable(SwitchArgs),
    /// Run for a while and say what that cost: holds of the flush, programs, memory
    Stats(StatsArgs),
    /// Show how long the kernel's own rstat lock is held and waited for
    Rstat(RstatArgs),
    /// Measure what psitrace costs, beside the kernel's own figures
    Bench(BenchArgs),
    /// Print a shell's completion script
    Completions(CompletionsArgs),
    /// Print a manual page
    Man(ManArgs),
}

#[derive(Args, Debug)]
pub(crate) struct SwitchArgs {
    /// Path of the cgroup
    #[arg(value_name = "PATH")]
    pub(crate) cgroup: String,
    /// Ask only the psitrace with this process id
    #[arg(long, value_name = "N")]
    pub(crate) pid: Option<u32>,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// For which shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Of which command: dump, bench flush [default: of all]
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) tracing: Tracing,
}

/// Forms of `dump`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object a line
    Json,
    /// A table for people
    Table,
    /// Comma-separated values, with a header
    Csv,
    /// Tab-separated values, with a header
    Tsv,
    /// name=value pairs, a line a cgroup
    Kv,
}

#[derive(Args, Debug)]
pub(crate) struct DumpArgs {
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Json)]
    pub(crate) format: Format,
    /// Time between two records: 500ms, 1s, 2m
    #[arg(long, value_parser = interval, allow_hyphen_values = true, default_value = "1s", conflicts_with = "replay")]
    pub(crate) interval: Duration,
    /// End after so many records
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// End after this time: 500ms, 1s, 1h30m
    #[arg(long, value_parser = duration, allow_hyphen_values = true, conflicts_with = "replay")]
    pub(crate) duration: Option<Duration>,
    /// Write only cgroups whose path matches: /system.slice/*, /**/db* (see also --track)
    #[arg(long, value_name = "GLOB", value_parser = glob)]
    pub(crate) cgroup: Option<globset::GlobMatcher>,
    /// Only cgroups down to this depth, 0 for the root alone
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<u32>,
    /// Only these fields: path,cpu.some.avg10,memory (all of memory); docs/output.md lists them
    #[arg(long, value_name = "LIST", value_parser = Fields::parse)]
    pub(crate) fields: Option<Fields>,
    /// Sort by this field, highest first; +FIELD: lowest first
    #[arg(long, value_name = "FIELD", value_parser = Order::parse, allow_hyphen_values = true)]
    pub(crate) sort: Option<Order>,
    /// Only the first N cgroups of a record [sorted by cpu.some.avg10 unless --sort says otherwise]
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Take the records from this recording of `psitrace record`; needs no root
    #[arg(long, value_name = "FILE", conflicts_with_all = Tracing::IDS)]
    pub(crate) replay: Option<PathBuf>,
    /// From then on: 14:20, 2026-01-02, "2026-01-02 14:20", 2026-01-02T14:20:00Z, or -10m before the recording's end
    #[arg(long, value_name = "TIME", value_parser = When::from_str, requires = "replay", allow_hyphen_values = true)]
    pub(crate) begin: Option<When>,
    /// Up to then, as --begin, all of that second or day; a time of day is the first such after --begin
    #[arg(long, value_name = "TIME", value_parser = End::from_str, requires = "replay", allow_hyphen_values = true)]
    pub(crate) end: Option<End>,
    /// For tests: record what is written, too
    #[arg(long, hide = true, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) also_record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tracing: Tracing,
}

#[derive(Args, Debug)]
pub(crate) struct RecordArgs {
    /// Record to this file and FILE.2, which take turns; an existing recording is gone on with
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Time between two snapshots: 500ms, 1s, 2m
    #[arg(long, value_parser = interval, allow_hyphen_values = true, default_value = "5s")]
    pub(crate) interval: Duration,
    /// Keep so much, 24h, 7d: at least this, at most twice as much
    #[arg(long, value_parser = duration, allow_hyphen_values = true, default_value = "24h")]
    pub(crate) keep: Duration,
    /// End after this time: 500ms, 1s, 1h30m
    #[arg(long, value_parser = duration, allow_hyphen_values = true)]
    pub(crate) duration: Option<Duration>,
    #[command(flatten)]
    pub(crate) tracing: Tracing,
}

#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    /// Time between two refreshes: 500ms, 1s, 2m
    #[arg(long, value_parser = interval, allow_hyphen_values = true, default_value = "1s")]
    pub(crate) interval: Duration,
    /// Show a flat list, most pressure first, instead of the tree
    #[arg(long)]
    pub(crate) flat: bool,
    /// Sort by this column
    #[arg(long, value_enum, default_value_t = SortKey::Stall(Stall::CPU_SOME), value_name = "COLUMN")]
    pub(crate) sort: SortKey,
    /// Time that the figures cover
    #[arg(long, value_enum, default_value_t = Window::AVG10)]
    pub(crate) average: Window,
    /// Show this recording of `psitrace record`; needs no root
    #[arg(long, value_name = "FILE", conflicts_with_all = Tracing::IDS)]
    pub(crate) replay: Option<PathBuf>,
    /// For tests: panic after so many refreshes
    #[arg(long, hide = true, value_name = "N")]
    pub(crate) panic_after: Option<u64>,
    #[command(flatten)]
    pub(crate) tracing: Tracing,
}

#[derive(Args, Debug)]
pub(crate) struct StatsArgs {
    /// Over how long: 500ms, 1s, 1h30m
    #[arg(long, value_parser = duration, allow_hyphen_values = true, default_value = "10s")]
    pub(crate) duration: Duration,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) tracing: Tracing,
}

#[derive(Args, Debug)]
pub(crate) struct RstatArgs {
    /// End after this time: 500ms, 1s, 1h30m
    #[arg(long, value_parser = duration, allow_hyphen_values = true)]
    pub(crate) duration: Option<Duration>,
    /// Time between two tables: 500ms, 1s, 2m
    #[arg(long, value_parser = interval, allow_hyphen_values = true, default_value = "1s")]
    pub(crate) interval: Duration,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// Over how long: 500ms, 1s, 1h30m
    #[arg(long, value_parser = duration, allow_hyphen_values = true, default_value = "10s")]
    pub(crate) duration: Duration,
    /// Compare this cgroup; may be repeated, for several at the same time
    #[arg(long = "cgroup", value_name = "PATH", default_value = "/")]
    pub(crate) cgroups: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) tracing: Tracing,
}

/// A duration, as [`when::duration`] reads it.
fn duration(text: &str) -> Result<Duration, &'static str> {
    when::duration(text)
}

/// An interval: a duration that the machine can keep up with.
fn interval(text: &str) -> Result<Duration, &'static str> {
    const SHORTEST: Duration = Duration::from_millis(10);
    let interval = duration(text)?;
    if interval < SHORTEST {
        return Err("an interval must be at least 10ms");
    }
    Ok(interval)
}

fn glob(text: &str) -> Result<globset::GlobMatcher, String> {
    if !text.starts_with('/') && !text.starts_with('*') {
        return Err(format!("a cgroup path starts with /: try /{text}"));
    }
    globset::GlobBuilder::new(text)
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn an_interval_has_a_least() {
        assert_eq!(interval("10ms"), Ok(Duration::from_millis(10)));
        assert!(interval("1ms").is_err());
    }

    #[test]
    fn globs_name_paths() {
        assert!(glob("/a/*").is_ok_and(|glob| glob.is_match("/a/b") && !glob.is_match("/a/b/c")));
        assert!(glob("/**/b").is_ok_and(|glob| glob.is_match("/a/x/b")));
        assert!(glob("/").is_ok_and(|glob| glob.is_match("/")));
        assert!(glob("/[").is_err());
        assert!(glob("a").is_err());
    }
}
