//! The `psitrace` command.

mod cli;
mod commands;
mod top;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};
// The view names the model as its own crate's.
use psi_user::model;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return cli::report(&error),
    };
    let result = match cli.command {
        Command::Check(args) => commands::check::run(&cli.tracing, &args),
        Command::Dump(args) => commands::dump::run(&cli.tracing, &args),
        Command::Record(args) => commands::record::run(&cli.tracing, &args),
        Command::Top(args) => commands::top::run(&cli.tracing, &args),
        Command::Compare(args) => commands::compare::run(&cli.tracing, &args),
    };
    match result {
        Ok(code) => code,
        Err(failure) => {
            commands::complain(&commands::printable(&failure.to_string()));
            failure.exit_code()
        }
    }
}
