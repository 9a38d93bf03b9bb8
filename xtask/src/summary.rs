//! Counting tests in the output of `cargo test`.

use std::{
    fmt::{self, Display},
    process::ExitCode,
};

use crate::process;

/// The tests of one test binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Suite {
    pub(crate) name: String,
    pub(crate) counts: Counts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl Counts {
    /// Of a run: in continuous integration a skip is a failure too.
    pub(crate) fn exit_code(self) -> ExitCode {
        let has_bad_skips = process::is_ci() && self.skipped > 0;
        if has_bad_skips {
            println!("CI=true: a skipped test is a failure");
        }
        if self.failed > 0 || has_bad_skips {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}

impl Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        let Self {
            passed,
            failed,
            skipped,
        } = self;
        *passed += other.passed;
        *failed += other.failed;
        *skipped += other.skipped;
    }
}

/// Fed with the output of one `cargo test`, line by line.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    suites: Vec<Suite>,
    current: String,
    /// Names, as a test may say twice why it skips.
    skips: Vec<String>,
}

impl Parser {
    pub(crate) fn line(&mut self, line: &str) {
        let Self { suites, current, skips } = self;
        let line = without_colors(line);
        let line = line.trim();
        if let Some(name) = suite_name(line) {
            *current = name;
            skips.clear();
        } else if let Some(name) = skipped_test(line) {
            if !skips.contains(&name) {
                skips.push(name);
            }
        } else if let Some(mut counts) = result(line) {
            // To libtest a test that returns early has passed.
            let skips = std::mem::take(skips).len();
            counts.passed = counts.passed.saturating_sub(skips);
            counts.skipped += skips;
            suites.push(Suite {
                name: current.clone(),
                counts,
            });
        }
    }

    /// The suites that ran, without those that have no test.
    pub(crate) fn finish(self) -> Vec<Suite> {
        let Self { mut suites, .. } = self;
        suites.retain(|suite| suite.counts != Counts::default());
        suites
    }
}

/// Cargo's `Running tests/wake.rs (target/debug/deps/wake-0123)` and `Doc-tests psi_common`.
fn suite_name(line: &str) -> Option<String> {
    if let Some(name) = line.strip_prefix("Doc-tests ") {
        return Some(format!("{name} (doc)"));
    }
    let (_, binary) = line.strip_prefix("Running ")?.strip_suffix(')')?.rsplit_once('(')?;
    let file = binary.rsplit('/').next()?;
    // The name of the crate, or of the file in tests/, and cargo's hash.
    Some(file.rsplit_once('-').map_or(file, |(name, _)| name).to_owned())
}

/// The name in `SKIP <name>: <reason>`.
///
/// With one thread and no capture, libtest has already written `test <name> ... ` to the line.
fn skipped_test(line: &str) -> Option<String> {
    let said = line
        .strip_prefix("test ")
        .and_then(|rest| rest.split_once(" ... "))
        .map_or(line, |(_, said)| said);
    let (name, _) = said.strip_prefix("SKIP ")?.split_once(':')?;
    Some(name.trim().to_owned())
}

/// Libtest's `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; ...`.
fn result(line: &str) -> Option<Counts> {
    let (_, numbers) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let number = |what: &str| {
        numbers
            .split("; ")
            .find_map(|part| part.trim().strip_suffix(what)?.trim().parse().ok())
    };
    Some(Counts {
        passed: number("passed")?,
        failed: number("failed")?,
        skipped: number("ignored")?,
    })
}

/// Takes out the escape sequences cargo colours its words with.
fn without_colors(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line.chars();
    while let Some(letter) = rest.next() {
        if letter == '\u{1b}' {
            rest.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(letter);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(output: &str) -> Vec<Suite> {
        let mut parser = Parser::default();
        output.lines().for_each(|line| parser.line(line));
        parser.finish()
    }

    fn suite(name: &str, passed: usize, failed: usize, skipped: usize) -> Suite {
        Suite {
            name: name.to_owned(),
            counts: Counts {
                passed,
                failed,
                skipped,
            },
        }
    }

    #[test]
    fn suites_are_named_after_their_binary() {
        let output = "\
     Running unittests src/lib.rs (target/debug/deps/psi_common-0123abc)
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
     Running tests/wake.rs (/some where/debug/deps/wake-0123abc)
test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
   Doc-tests psi_common
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";
        let wanted = [
            suite("psi_common", 3, 0, 1),
            suite("wake", 1, 2, 0),
            suite("psi_common (doc)", 1, 0, 0),
        ];
        assert_eq!(parse(output), wanted);
    }

    #[test]
    fn skips_are_not_passes() {
        let output = "\
     Running tests/e2e.rs (target/debug/deps/e2e-0123abc)
test a ... SKIP a: no fentry here
ok
SKIP b: not root
SKIP b: said twice
test c ... ok
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";
        assert_eq!(parse(output), [suite("e2e", 1, 0, 2)]);
    }

    #[test]
    fn colors_do_not_matter() {
        let output = "\u{1b}[1m\u{1b}[92m     Running\u{1b}[0m unittests src/lib.rs (a/b-0)
test result: \u{1b}[32mok\u{1b}[0m. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out
";
        assert_eq!(parse(output), [suite("b", 1, 0, 0)]);
    }

    #[test]
    fn empty_suites_are_left_out() {
        let output = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out";
        assert_eq!(parse(output), []);
    }

    #[test]
    fn last_line_has_the_agreed_form() {
        let mut total = Counts {
            passed: 1,
            failed: 0,
            skipped: 2,
        };
        total += Counts {
            passed: 2,
            failed: 1,
            skipped: 0,
        };
        assert_eq!(total.to_string(), "3 passed, 1 failed, 2 skipped");
    }
}
