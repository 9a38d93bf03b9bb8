//! The options that say what to trace.

use std::path::PathBuf;

use clap::Args;
use psi_user::{load::Options, track::Filter};

use super::glob;

/// What to trace: for the commands that attach.
#[derive(Args, Debug)]
#[command(next_help_heading = "What to trace")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Tracing {
    /// The cgroup hierarchy to trace: v2, or a v1 controller (memory, cpu, ...)
    #[arg(long, default_value = psi_user::hierarchy::V2, value_name = "NAME")]
    hierarchy: String,
    /// Number of cgroups with figures of their own [default: twice what exists, at least 512]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(psi_common::layout::MAX_SLOTS)))]
    max_cgroups: Option<u32>,
    /// Do not time interrupts: no irq figures, and nothing runs at an interrupt
    #[arg(long)]
    no_irq: bool,
    /// Do not measure memory stalls: no memory figures
    #[arg(long)]
    no_memstall: bool,
    /// Count in each cgroup only its own tasks, not those of the cgroups below it
    ///
    /// Cheaper in deep trees. An inner cgroup's figures are then about the tasks right in it, mostly none, and the root's
    /// about those in no other cgroup.
    #[arg(long)]
    only_leaf: bool,
    /// Track only cgroups whose path matches, and their ancestors: '/system.slice/*'; may be repeated
    ///
    /// All others are charged to their nearest ancestor that is tracked; they cost no memory and have no figures.
    /// (`dump --cgroup` tracks all and leaves out of its output what does not match.)
    #[arg(long, value_name = "GLOB", value_parser = glob)]
    track: Vec<globset::GlobMatcher>,
    /// Load this BPF object instead of the built-in one
    #[arg(long, hide = true, value_name = "FILE")]
    bpf_object: Option<PathBuf>,
    /// For tests: lose every Nth context switch
    #[arg(long, hide = true, default_value_t = 0, value_name = "N")]
    drop_switches: u32,
    /// For tests: tell what the records count, in JSON
    #[arg(long, hide = true)]
    counts: bool,
}

impl Tracing {
    /// The options' ids, for what excludes them: named one by one, a group would be told as a whole.
    pub(super) const IDS: [&str; 9] = [
        "hierarchy",
        "max_cgroups",
        "no_irq",
        "no_memstall",
        "only_leaf",
        "track",
        "bpf_object",
        "drop_switches",
        "counts",
    ];

    pub(crate) fn options(&self) -> Options {
        Options {
            hierarchy: self.hierarchy.clone(),
            max_cgroups: self.max_cgroups,
            object: self.bpf_object.clone(),
            drop_switches: self.drop_switches,
            counts: self.counts,
            irq: !self.no_irq,
            memstall: !self.no_memstall,
            only_leaf: self.only_leaf,
            track: Filter::new(self.track.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, line};

    /// The line that refuses these arguments.
    fn refusal(arguments: &[&str]) -> String {
        let words = ["psitrace"].iter().chain(arguments);
        let error = Cli::try_parse_from(words).expect_err("they are refused");
        assert!(error.use_stderr(), "{arguments:?}: {error}");
        line(&error)
    }

    #[test]
    fn a_recording_excludes_all_that_is_about_tracing() {
        let command = Tracing::augment_args(clap::Command::new("psitrace"));
        let ids: Vec<&str> = command.get_arguments().map(|arg| arg.get_id().as_str()).collect();
        assert_eq!(ids, Tracing::IDS);
    }

    #[test]
    fn what_to_trace_is_said_to_those_that_trace() {
        for command in ["check", "dump", "record -o f", "top", "compare", "stats"] {
            let words = format!("psitrace {command} --no-irq --track /a --track /b --hierarchy memory --max-cgroups 9");
            let cli = Cli::try_parse_from(words.split(' '));
            assert!(cli.is_ok(), "{words}: {cli:?}");
        }
        for (command, option) in [
            ("--no-irq dump", "--no-irq"),
            ("disable --hierarchy memory /a", "--hierarchy"),
            ("enable --only-leaf /a", "--only-leaf"),
            ("bench overhead --track /a", "--track"),
            ("rstat --no-memstall", "--no-memstall"),
            ("completions --max-cgroups 9 bash", "--max-cgroups"),
            ("man --only-leaf", "--only-leaf"),
            ("dump --replay f --no-irq", "cannot be used with '--no-irq"),
            ("dump --track /a --replay f", "--track"),
            ("dump --replay f --hierarchy v2", "--hierarchy"),
            ("dump --replay f --counts", "--replay"),
            ("top --replay f --only-leaf", "cannot be used with '--only-leaf"),
        ] {
            let arguments: Vec<&str> = command.split(' ').collect();
            let line = refusal(&arguments);
            assert!(
                line.contains(option) && !line.contains('\n'),
                "{command}: expected {option}, saw {line}"
            );
        }
    }
}
