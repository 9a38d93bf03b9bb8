//! The `psitrace` command.

mod cli;
mod commands;
mod config;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use cli::{Cli, Command};
use psi_user::control::Request;

fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let result = match cli.command {
        Command::Check(args) => commands::check::run(&args),
        Command::Dump(args) => commands::dump::run(&args),
        Command::Record(args) => commands::record::run(&args),
        Command::Top(args) => commands::top::run(&args),
        Command::Stats(args) => commands::stats::run(&args),
        Command::Rstat(args) => commands::rstat::run(&args),
        Command::Bench(args) => commands::bench::run(&args),
        Command::Completions(args) => commands::about::completions(&args),
        Command::Man(args) => commands::about::man(&args),
        Command::Compare(args) => commands::compare::run(&args),
        Command::Disable(args) => commands::switch::run(&args, |cgroup| Request::Disable { cgroup }, "disabled"),
        Command::Enable(args) => commands::switch::run(&args, |cgroup| Request::Enable { cgroup }, "enabled"),
    };
    match result {
        Ok(code) => code,
        Err(failure) => {
            commands::complain(&commands::printable(&failure.to_string()));
            failure.exit_code()
        }
    }
}

/// The command line, with the defaults of the configuration files; what is wrong with either is told.
fn parse() -> Result<Cli, ExitCode> {
    let (command, wrong) = match config::apply(Cli::command()) {
        Ok(command) => (command, None),
        Err(line) => (Cli::command(), Some(line)),
    };
    let cli = command
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches));
    // Help has to be had with a wrong file too.
    let is_help = match &cli {
        Ok(cli) => matches!(cli.command, Command::Completions(_) | Command::Man(_)),
        Err(error) => !error.use_stderr(),
    };
    if let Some(line) = wrong.filter(|_| !is_help) {
        commands::complain(&commands::printable(&line));
        return Err(ExitCode::from(cli::exit::USAGE));
    }
    cli.map_err(cli::report)
}
