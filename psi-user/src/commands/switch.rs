//! `psitrace disable` and `psitrace enable`: asks the running ones.

use std::{io, process::ExitCode};

use psi_user::control::{self, Answer, Refusal, Request};

use super::{Failure, complain, print, printable};
use crate::cli::SwitchArgs;

pub(crate) fn run(args: &SwitchArgs, request: fn(String) -> Request, done: &str) -> Result<ExitCode, Failure> {
    let path = &args.cgroup;
    if !path.starts_with('/') {
        return Err(Failure::Usage(format!("a cgroup path starts with /: try /{path}")));
    }
    if path.trim_end_matches('/').is_empty() {
        return Err(Failure::Usage(Refusal::Root.to_string()));
    }
    if path
        .trim_end_matches('/')
        .split('/')
        .skip(1)
        .any(|part| matches!(part, "" | "." | ".."))
    {
        return Err(Failure::Usage(format!(
            "{path} is no plain path: no //, /./ or /../ in it"
        )));
    }
    let answers = control::ask(args.pid, &request(path.clone()))
        .map_err(|error| Failure::Cannot(format!("{}: {error}; run psitrace as root", control::DIRECTORY)))?;
    if answers.is_empty() {
        let which = args.pid.map_or_else(String::new, |pid| format!(" with pid {pid}"));
        return Err(Failure::Cannot(format!(
            "no psitrace{which} is running that could be asked; start `psitrace top` or `psitrace dump` as root"
        )));
    }
    let is_done = |answer: &io::Result<Answer>| answer.as_ref().is_ok_and(|answer| answer.refused.is_none());
    // Where one took it, the others' refusals are news; else the first is the error.
    if answers.iter().any(|(_, answer)| is_done(answer)) {
        for (pid, answer) in &answers {
            if is_done(answer) {
                print(&printable(&format!("psitrace {pid}: {done} {path}")))?;
                print("\n")?;
            } else {
                complain(&printable(&format!("{pid}: {path}: {}", reason(answer))));
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let (pid, answer) = &answers[0];
    let line = format!("psitrace {pid} refused {path}: {}", reason(answer));
    Err(if answer.is_ok() {
        Failure::Usage(line)
    } else {
        Failure::Cannot(line)
    })
}

fn reason(answer: &io::Result<Answer>) -> String {
    match answer {
        Ok(answer) => answer.refused.map(|refused| refused.to_string()).unwrap_or_default(),
        Err(error) => error.to_string(),
    }
}
