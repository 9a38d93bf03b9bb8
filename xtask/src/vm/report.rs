//! What a guest tells: a line for each test on its console, and QEMU's exit status.

use std::{collections::VecDeque, process::ExitStatus, time::Duration};

use crate::summary::Counts;

/// A panic's registers and stack, and what was before.
const LAST_LINES: usize = 40;

/// Fed with a guest's console, line by line.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) counts: Counts,
    /// Figures, as the cells of a Markdown table without its outer bars.
    pub(crate) rows: Vec<String>,
    /// psitrace's figures beside the kernel's, one JSON object each.
    pub(crate) accuracy: Vec<String>,
    /// Tests that failed, and why.
    pub(crate) failures: Vec<String>,
    /// What was wrong with the guest as a whole.
    pub(crate) complaint: Option<String>,
    last_lines: VecDeque<String>,
}

impl Report {
    /// Returns what the user is to see of `line` at once.
    pub(crate) fn line<'a>(&mut self, line: &'a str) -> Option<&'a str> {
        let line = line.trim_end();
        let Self {
            counts,
            rows,
            accuracy,
            failures,
            last_lines,
            ..
        } = self;
        for (prefix, lines) in [("row ", rows), ("ACCURACY ", accuracy)] {
            if let Some(figures) = line.strip_prefix(prefix) {
                lines.push(figures.to_owned());
                return None;
            }
        }
        last_lines.truncate(LAST_LINES - 1);
        last_lines.push_front(line.to_owned());
        if line.starts_with("ok ") {
            counts.passed += 1;
        } else if let Some(failure) = line.strip_prefix("FAIL ") {
            counts.failed += 1;
            failures.push(failure.to_owned());
        } else {
            return None;
        }
        Some(line)
    }

    /// It was killed, since no test ended for so long.
    pub(crate) fn hang(&mut self, patience: Duration) {
        self.counts.failed += 1;
        self.complaint = Some(format!(
            "the guest hung: no test ended for {} s; it was killed",
            patience.as_secs()
        ));
    }

    /// Takes the exit status into account: a guest that did not come to its own end has failed.
    pub(crate) fn end(&mut self, status: ExitStatus) {
        let Self { counts, complaint, .. } = self;
        let end = End::of(status);
        if let End::Told(failed) = end {
            // The console may have lost a line, to a message of the kernel in its middle.
            counts.failed = failed;
            if counts.passed + failed > 0 {
                return;
            }
        }
        counts.failed += 1;
        *complaint = Some(match end {
            End::Told(_) => "no test ran".to_owned(),
            End::Panicked => "the guest panicked, or powered off before its tests were over".to_owned(),
            End::Failed => format!("QEMU failed ({status})"),
        });
    }

    /// The end of the console's output.
    pub(crate) fn last_lines(&self) -> impl Iterator<Item = &str> {
        self.last_lines.iter().rev().map(String::as_str)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// By its own word, with so many tests failed.
    Told(usize),
    Panicked,
    /// QEMU's own failure.
    Failed,
}

impl End {
    /// psi-guest writes 16 plus the number of failures, of which QEMU makes 2n + 1. A panic is a reset is a 0.
    fn of(status: ExitStatus) -> Self {
        const PASSED: i32 = 2 * 16 + 1;
        match status.code() {
            Some(0) => Self::Panicked,
            Some(code) if code >= PASSED && (code - PASSED) % 2 == 0 => Self::Told(((code - PASSED) / 2) as usize),
            _ => Self::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn exited(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    #[test]
    fn exit_status_is_the_result() {
        assert_eq!(End::of(exited(33)), End::Told(0));
        assert_eq!(End::of(exited(37)), End::Told(2));
        assert_eq!(End::of(exited(0)), End::Panicked);
        assert_eq!(End::of(exited(1)), End::Failed);
        assert_eq!(End::of(ExitStatus::from_raw(9)), End::Failed);
    }

    #[test]
    fn lines_are_sorted() {
        let mut report = Report::default();
        let shown: Vec<_> = [
            "ok a (3 s)\r",
            "row w | cpu some | 1 | 2 | 3",
            "ACCURACY {\"cpus\":2}\r",
            "[ 1.0] noise",
            "FAIL b: no",
        ]
        .iter()
        .filter_map(|line| report.line(line))
        .collect();
        assert_eq!(shown, ["ok a (3 s)", "FAIL b: no"]);
        assert_eq!(report.rows, ["w | cpu some | 1 | 2 | 3"]);
        assert_eq!(
            report.last_lines().collect::<Vec<_>>(),
            ["ok a (3 s)", "[ 1.0] noise", "FAIL b: no"]
        );
        assert_eq!(report.accuracy, ["{\"cpus\":2}"]);
        assert_eq!(report.failures, ["b: no"]);
        report.end(exited(35));
        assert_eq!(report.complaint, None);
        assert_eq!((report.counts.passed, report.counts.failed), (1, 1));
    }

    #[test]
    fn a_guest_that_ends_otherwise_has_failed() {
        let mut report = Report::default();
        report.line("ok a");
        report.end(exited(0));
        assert!(report.complaint.is_some());
        assert_eq!((report.counts.passed, report.counts.failed), (1, 1));
        let mut silent = Report::default();
        silent.end(exited(33));
        assert!(silent.complaint.is_some());
        assert_eq!(silent.counts.failed, 1);
    }
}
