//! How wrong arguments are told.

use std::{io, process::ExitCode};

use clap::{
    Command, CommandFactory as _,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::{Cli, exit};
use crate::commands::{complain, printable};

/// Prints clap's message in its usual form; an error is one line where it can be.
pub(crate) fn report(error: clap::Error) -> ExitCode {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        // A closed pipe is no error.
        let is_printed = error.print().or_else(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Ok(()),
            _ => Err(error),
        });
        if let Err(error) = &is_printed {
            complain(&format!("cannot write standard output: {error}"));
        }
        return if error.use_stderr() || is_printed.is_err() {
            ExitCode::from(exit::USAGE)
        } else {
            ExitCode::SUCCESS
        };
    }
    complain(&line(&as_meant(error)));
    ExitCode::from(exit::USAGE)
}

/// Clap's message as one printable line.
pub(crate) fn line(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines: Vec<&str> = text
        .lines()
        .take_while(|line| !line.starts_with("Usage:"))
        .map(str::trim)
        .collect();
    let line = lines.join(" ");
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.replace(" tip: ", "; ");
    printable(
        line.trim_start_matches("error: ")
            .trim_end_matches(" For more information, try '--help'."),
    )
}

/// Takes back what clap suggests of what is hidden, which it does not spare, and that `--` would make an unknown option a
/// value.
fn as_meant(mut error: clap::Error) -> clap::Error {
    let is_about_values = |context: &ContextValue| matches!(context, ContextValue::StyledStrs(tips) if tips.iter().any(|tip| tip.to_string().contains("as a value")));
    if error.get(ContextKind::Suggested).is_some_and(is_about_values) {
        error.remove(ContextKind::Suggested);
    }
    let mut hidden = Hidden::default();
    hidden.collect(&Cli::command());
    if let Some(ContextValue::String(option)) = error.remove(ContextKind::SuggestedArg)
        && !hidden.options.contains(&option)
    {
        error.insert(ContextKind::SuggestedArg, ContextValue::String(option));
    }
    if let Some(ContextValue::Strings(mut names)) = error.remove(ContextKind::SuggestedSubcommand) {
        names.retain(|name| !hidden.commands.contains(name));
        if !names.is_empty() {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
        }
    }
    error
}

/// What help does not show.
#[derive(Default)]
struct Hidden {
    /// With their dashes.
    options: Vec<String>,
    commands: Vec<String>,
}

impl Hidden {
    fn collect(&mut self, command: &Command) {
        let options = command.get_arguments().filter(|option| option.is_hide_set());
        let names = options.filter_map(|option| Some(format!("--{}", option.get_long()?)));
        self.options.extend(names);
        for command in command.get_subcommands() {
            if command.is_hide_set() {
                self.commands.push(command.get_name().to_owned());
            }
            self.collect(command);
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn told(arguments: &str) -> String {
        let words = ["psitrace"].into_iter().chain(arguments.split(' '));
        let error = Cli::try_parse_from(words).expect_err("they are refused");
        line(&as_meant(error))
    }

    #[test]
    fn what_is_hidden_is_not_suggested() {
        for (arguments, wrong) in [
            ("record -o f --count 5", "'--count'"),
            ("dump --drop-switch 5", "'--drop-switch'"),
            ("check --bpf-objects f", "'--bpf-objects'"),
            ("dump --also-recor f", "'--also-recor'"),
            ("top --panic-afte 1", "'--panic-afte'"),
            ("bench loads pipe", "'loads'"),
        ] {
            let line = told(arguments);
            assert!(
                line.contains(wrong) && !line.contains("similar"),
                "{arguments}: expected no suggestion, saw {line}"
            );
        }
        for (arguments, word) in [
            ("dump --intervall 1s", "--interval'"),
            ("dumb", "'dump'"),
            ("bench flash", "'flush'"),
            ("--no-irq dump", "found; 'dump --no-irq' exists"),
        ] {
            let line = told(arguments);
            assert!(line.contains(word), "{arguments}: expected {word}, saw {line}");
        }
        let line = told("disable --hierarchy memory /x");
        assert_eq!(line, "unexpected argument '--hierarchy' found");
    }
}
