//! `psitrace completions` and `psitrace man`: what the command line says of itself.

use std::process::ExitCode;

use clap::CommandFactory as _;

use super::{Failure, print};
use crate::cli::{Cli, CompletionsArgs, ManArgs};

/// Prints a shell's completion script.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "psitrace", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a manual page: of the program, or of one command.
pub(crate) fn man(args: &ManArgs) -> Result<ExitCode, Failure> {
    let mut command = Cli::command();
    command.build();
    let command = args.command.iter().try_fold(&command, |command, name| {
        command
            .find_subcommand(name)
            .filter(|command| !command.is_hide_set())
            .ok_or_else(|| Failure::Usage(format!("no command {name}; `psitrace --help` lists them")))
    })?;
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone())
        .source(concat!("psitrace ", env!("CARGO_PKG_VERSION")))
        .render(&mut page)
        .map_err(|error| Failure::Cannot(format!("rendering the page: {error}")))?;
    print(&String::from_utf8_lossy(&page))?;
    Ok(ExitCode::SUCCESS)
}
