//! `cargo xtask test`: every check and every test, with one count at the end.

use std::{
    io::{self, IsTerminal as _, Read as _, Write as _},
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result, bail};

use crate::{
    ebpf, process, setup, staleness,
    summary::{Counts, Parser, Suite},
    vm,
    workspace::Workspace,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Take the machine as it is.
    #[arg(long)]
    no_setup: bool,
    /// Boot no other kernels in QEMU, which takes about ten minutes.
    #[arg(long)]
    no_vm: bool,
    /// Run only tests whose name contains one of these, and boot no other kernels.
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
}

impl Options {
    /// Guests run all of their tests or none.
    fn wants_guests(&self) -> bool {
        !self.no_vm && self.filters.is_empty()
    }
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> ExitCode {
    let Options { no_setup, filters, .. } = options;
    let mut report = Report::default();

    if !no_setup {
        report.step("setup", || setup::run(workspace));
    }
    report.step("committed BPF object", || staleness::check(workspace));
    let rebuilt = workspace.target.join("bpf-rebuilt.o");
    let mut is_same = false;
    let is_rebuilt = report.step("BPF object from source", || {
        is_same = rebuild(workspace, &rebuilt)?;
        Ok(())
    });
    report.step("format", || {
        cargo(workspace, &["fmt", "--all", "--check"]).context("run `cargo fmt --all`")
    });
    report.step("lints", || {
        cargo(workspace, &["clippy", "--all-targets", "--", "-D", "warnings"])
    });
    let is_built = report.step("psitrace", || workspace.build_psitrace());

    report.tests("unit tests", || {
        let mut command = test(workspace);
        command.args(["--workspace", "--exclude", "psi-ebpf", "--exclude", "tests"]);
        command.arg("--").args(filters);
        command
    });
    // All on the committed object; the accuracy, five minutes, on the rebuilt one, and so all else if it is another.
    let rebuilt = if is_same {
        ("accuracy tests", Some(&rebuilt), &["--test", "accuracy"][..])
    } else {
        ("kernel tests, rebuilt object", Some(&rebuilt), &[][..])
    };
    let committed = (
        "kernel tests, committed object",
        None,
        &["--lib", "--bins", "--test", "e2e"][..],
    );
    for (name, object, targets) in [committed, rebuilt] {
        if !process::is_root() {
            report.skip(name, "loading BPF programs needs root; run `cargo xtask test` as root");
        } else if !is_built {
            report.fail(name, "there is no psitrace to test");
        } else if object.is_some() && !is_rebuilt {
            report.fail(name, "there is no rebuilt object");
        } else {
            report.tests(name, || {
                kernel_tests(workspace, object.map(AsRef::as_ref), targets, filters)
            });
        }
    }
    if options.wants_guests() {
        match vm::obstacle() {
            Some(obstacle) => report.skip(vm::SUITE, &obstacle),
            None => report.guests(workspace),
        }
    }
    report.finish()
}

/// Builds the BPF object; says, and returns, whether it is the committed one.
fn rebuild(workspace: &Workspace, rebuilt: &Path) -> Result<bool> {
    let ebpf::Built { object, .. } = ebpf::build(workspace)?;
    ebpf::write(rebuilt, &object)?;
    let is_same = staleness::read(&workspace.committed_object()).is_ok_and(|old| old == object);
    // Another compiler is no failure: both objects are tested.
    let relation = if is_same { "byte for byte" } else { "not" };
    println!("it is {relation} the committed object");
    Ok(is_same)
}

fn cargo(workspace: &Workspace, arguments: &[&str]) -> Result<()> {
    process::run(workspace.cargo().args(arguments))
}

fn test(workspace: &Workspace) -> Command {
    let mut command = workspace.cargo();
    // The counts are wrong if the first failure ends the run.
    command.args(["test", "--no-fail-fast"]);
    command
}

fn kernel_tests(workspace: &Workspace, object: Option<&Path>, targets: &[&str], filters: &[String]) -> Command {
    let mut command = test(workspace);
    command.env("PSITRACE_BIN", workspace.psitrace());
    command.args(["--package", "tests"]).args(targets);
    match object {
        Some(object) => command.env("PSITRACE_TEST_OBJECT", object),
        None => command.env_remove("PSITRACE_TEST_OBJECT"),
    };
    // One at a time: the tests make load and measure it. Uncaptured: for the reasons of skips.
    command.args(["--", "--test-threads=1", "--nocapture"]).args(filters);
    command
}

/// What ran so far.
#[derive(Debug, Default)]
struct Report {
    suites: Vec<Suite>,
}

impl Report {
    /// Runs a check; only a failed one is counted, for a check is no test.
    fn step(&mut self, name: &str, check: impl FnOnce() -> Result<()>) -> bool {
        let start = section(name);
        let result = check();
        if let Err(error) = &result {
            self.fail(name, &format!("{error:#}"));
        } else {
            println!("{name}: {:.1} s", start.elapsed().as_secs_f64());
        }
        result.is_ok()
    }

    fn tests(&mut self, name: &str, command: impl FnOnce() -> Command) {
        section(name);
        let mut parser = Parser::default();
        let result = stream(&mut command(), &mut parser);
        let suites = parser.finish();
        let has_failed = suites.iter().any(|suite| suite.counts.failed > 0);
        self.suites.extend(suites.into_iter().map(|suite| Suite {
            name: format!("{name}: {}", suite.name),
            ..suite
        }));
        if let Err(error) = result
            && !has_failed
        {
            // It did not compile, or a test took its process down.
            self.fail(name, &format!("{error:#}"));
        }
    }

    fn guests(&mut self, workspace: &Workspace) {
        section(vm::SUITE);
        match vm::run(workspace, &vm::Options::default()) {
            Ok(suite) => self.suites.push(suite),
            Err(error) => self.fail(vm::SUITE, &format!("{error:#}")),
        }
    }

    fn fail(&mut self, name: &str, why: &str) {
        println!("FAILED {name}: {why}");
        let counts = Counts {
            failed: 1,
            ..Counts::default()
        };
        self.add(name, counts, format!("failed: {why}"));
    }

    fn skip(&mut self, name: &str, why: &str) {
        println!("SKIP {name}: {why}");
        let counts = Counts {
            skipped: 1,
            ..Counts::default()
        };
        self.add(name, counts, format!("skipped: {why}"));
    }

    fn add(&mut self, name: &str, counts: Counts, complaint: String) {
        self.suites.push(Suite {
            name: name.to_owned(),
            counts,
            complaints: vec![complaint],
        });
    }

    fn finish(self) -> ExitCode {
        let Self { suites } = self;
        section("summary");
        let mut total = Counts::default();
        let width = suites.iter().map(|suite| suite.name.len()).max().unwrap_or_default();
        println!("{:width$}  passed  failed  skipped", "");
        for Suite { name, counts, .. } in &suites {
            let Counts {
                passed,
                failed,
                skipped,
            } = counts;
            println!("{name:width$}  {passed:6}  {failed:6}  {skipped:7}");
            total += *counts;
        }
        for Suite { name, complaints, .. } in &suites {
            for complaint in complaints {
                println!("{name}: {complaint}");
            }
        }
        let code = total.exit_code();
        println!("{total}");
        code
    }
}

fn section(name: &str) -> Instant {
    println!("\n== {name}");
    Instant::now()
}

/// Runs `command`, showing its output as it comes, and lets `parser` read along.
fn stream(command: &mut Command, parser: &mut Parser) -> Result<()> {
    // One pipe for both: cargo names a suite on one, libtest gives its result on the other.
    let (mut output, input) = io::pipe().context("cannot make a pipe")?;
    command.stdout(input.try_clone()?).stderr(input).stdin(Stdio::null());
    if io::stdout().is_terminal() {
        // Cargo sees a pipe, the user does not.
        command.env("CARGO_TERM_COLOR", "always");
    }
    let mut child = command.spawn().context("cannot start cargo")?;
    // `command` still holds the pipe's other end, and would keep it open after the child's death.
    command.stdout(Stdio::null()).stderr(Stdio::null());

    let mut terminal = io::stdout().lock();
    let mut line = Vec::new();
    let mut chunk = [0; 8192];
    loop {
        let length = output.read(&mut chunk).context("cannot read cargo's output")?;
        if length == 0 {
            break;
        }
        // Parts of lines too: while a test runs its name is all there is to see.
        terminal.write_all(&chunk[..length]).and_then(|()| terminal.flush())?;
        for byte in &chunk[..length] {
            if *byte == b'\n' {
                parser.line(&String::from_utf8_lossy(&line));
                line.clear();
            } else {
                line.push(*byte);
            }
        }
    }
    parser.line(&String::from_utf8_lossy(&line));

    let status = child.wait().context("cannot wait for cargo")?;
    if !status.success() {
        bail!("cargo test failed ({status})");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn guests_are_part_of_a_whole_run() {
        for (arguments, expected) in [
            (&["test"][..], true),
            (&["test", "--no-setup"], true),
            (&["test", "--no-vm"], false),
            (&["test", "wakeups"], false),
        ] {
            let Cli { options } = Cli::parse_from(arguments);
            assert_eq!(options.wants_guests(), expected, "{arguments:?}");
        }
    }
}
