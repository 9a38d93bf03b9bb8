//! Counting tests in the output of `cargo test`, and what it says of those that failed.

use std::{
    fmt::{self, Display},
    mem,
    process::ExitCode,
};

use crate::process;

/// The tests of one test binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Suite {
    pub(crate) name: String,
    pub(crate) counts: Counts,
    /// What failed or was skipped, and why: a line each, to be read at the end of a long output.
    pub(crate) complaints: Vec<String>,
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

/// Of what a test says when it panics: a record of many cgroups fills a screen.
const LONGEST_COMPLAINT: usize = 400;

/// Fed with the output of one `cargo test`, line by line.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    suites: Vec<Suite>,
    current: String,
    /// Names and reasons; a test may say twice why it skips.
    skips: Vec<(String, String)>,
    /// The threads that panicked, and what they said; a thread has its test's name.
    panics: Vec<(String, String)>,
    says_why: bool,
    /// The names in libtest's last list of failures.
    failed: Vec<String>,
    lists_failures: bool,
}

impl Parser {
    pub(crate) fn line(&mut self, line: &str) {
        let line = without_colors(line);
        if self.says_why {
            self.says_why = self.goes_on(&line);
        }
        let is_listed = line.starts_with("    ");
        let line = line.trim();
        if let Some(name) = suite_name(line) {
            *self = Self {
                suites: mem::take(&mut self.suites),
                current: name,
                ..Self::default()
            };
        } else if let Some((name, reason)) = skipped_test(line) {
            if !self.skips.iter().any(|(other, _)| *other == name) {
                self.skips.push((name, reason));
            }
        } else if let Some((thread, place)) = panicked(line) {
            self.panics.push((thread, place));
            self.says_why = true;
        } else if line == "failures:" {
            // The first such list has what the tests printed.
            self.failed.clear();
            self.lists_failures = true;
        } else if let Some(counts) = result(line) {
            self.end_of_suite(counts);
        } else if self.lists_failures && is_listed {
            self.failed.push(line.to_owned());
        }
    }

    /// Adds `line` to what the last panic says, if it belongs to it.
    fn goes_on(&mut self, line: &str) -> bool {
        let is_other = ["stack backtrace:", "note: ", "test result: "]
            .iter()
            .any(|start| line.starts_with(start));
        match self.panics.last_mut() {
            Some((_, why)) if !is_other && why.len() < LONGEST_COMPLAINT => {
                let left = LONGEST_COMPLAINT - why.len();
                why.push(' ');
                why.extend(line.trim().chars().take(left));
                true
            }
            _ => false,
        }
    }

    fn end_of_suite(&mut self, mut counts: Counts) {
        // To libtest a test that returns early has passed.
        counts.passed = counts.passed.saturating_sub(self.skips.len());
        counts.skipped += self.skips.len();
        let skipped = self
            .skips
            .iter()
            .map(|(name, reason)| format!("{name} skipped: {reason}"));
        let failed = self.failed.iter().map(|name| {
            let panic = self.panics.iter().find(|(thread, _)| thread == name);
            format!("{name} failed: {}", panic.map_or("see above", |(_, why)| why))
        });
        self.suites.push(Suite {
            name: self.current.clone(),
            counts,
            complaints: skipped.chain(failed).collect(),
        });
        self.skips.clear();
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

/// Name and reason in `SKIP <name>: <reason>`.
///
/// With one thread and no capture, libtest has already written `test <name> ... ` to the line.
fn skipped_test(line: &str) -> Option<(String, String)> {
    let said = line
        .strip_prefix("test ")
        .and_then(|rest| rest.split_once(" ... "))
        .map_or(line, |(_, said)| said);
    let (name, reason) = said.strip_prefix("SKIP ")?.split_once(':')?;
    Some((name.trim().to_owned(), reason.trim().to_owned()))
}

/// Name and place in `thread '<name>' (<id>) panicked at <place>:`.
fn panicked(line: &str) -> Option<(String, String)> {
    let (_, rest) = line.split_once("thread '")?;
    let (name, rest) = rest.split_once('\'')?;
    let (_, place) = rest.split_once("panicked at ")?;
    Some((name.to_owned(), place.to_owned()))
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
            complaints: Vec::new(),
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
        let [e2e] = &parse(output)[..] else {
            panic!("expected one suite");
        };
        assert_eq!(e2e.counts, suite("e2e", 1, 0, 2).counts);
        assert_eq!(e2e.complaints, ["a skipped: no fentry here", "b skipped: not root"]);
    }

    #[test]
    fn failures_are_told_again_with_their_reasons() {
        let output = "\
     Running tests/e2e.rs (target/debug/deps/e2e-0123abc)
test a::b ... 
thread 'a::b' (17) panicked at tests/a.rs:41:10:
expected 1,
saw 2
stack backtrace:
   0: __rustc::rust_begin_unwind
FAILED
test c ... thread 'other' panicked at x.rs:1:1:
caught
ok
failures:

---- a::b stdout ----
    something

failures:
    a::b
    d

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
     Running tests/f.rs (target/debug/deps/f-0123abc)
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";
        let [e2e, f] = &parse(output)[..] else {
            panic!("expected two suites");
        };
        let wanted = [
            "a::b failed: tests/a.rs:41:10: expected 1, saw 2",
            "d failed: see above",
        ];
        assert_eq!(e2e.complaints, wanted);
        assert_eq!(*f, suite("f", 1, 0, 0));
    }

    #[test]
    fn a_long_complaint_is_cut() {
        let long = "saw much ".repeat(1000);
        let output = format!(
            "thread 'a' panicked at a.rs:1:1:\n{long}\n{long}\nfailures:\n    a\n\
             test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n"
        );
        let suites = parse(&output);
        let length = suites[0].complaints[0].len();
        assert!((400..450).contains(&length), "expected some 400 bytes, saw {length}");
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
