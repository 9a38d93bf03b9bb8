//! The `psitrace` command.

mod cli;
mod commands;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};
use psi_user::control::Request;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return cli::report(&error),
    };
    let result = match cli.command {
        Command::Check(args) => commands::check::run(&cli.tracing, &args),
        Command::Dump(args) => commands::dump::run(&cli.tracing, &args),
        Command::Top(args) => commands::top::run(&cli.tracing, &args),
        Command::Compare(args) => commands::compare::run(&cli.tracing, &args),
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
