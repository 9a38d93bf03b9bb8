//! Tables in documents: what stands between two marks is written anew, the prose around it stays.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};

/// Puts `table` into `document`, between the marks of `command`.
pub(crate) fn replace(document: &Path, command: &str, table: &str) -> Result<()> {
    let text = with_new_table(document, command, table)?;
    fs::write(document, text).with_context(|| format!("cannot write {}", document.display()))
}

/// Whether `document` has the marks of `command`.
pub(crate) fn check(document: &Path, command: &str) -> Result<()> {
    with_new_table(document, command, "").map(drop)
}

fn with_new_table(document: &Path, command: &str, table: &str) -> Result<String> {
    let text = fs::read_to_string(document).with_context(|| format!("cannot read {}", document.display()))?;
    with_table(&text, command, table).with_context(|| {
        let (begin, end) = marks(command);
        format!("{} has no place for the table: {begin}{end}", document.display())
    })
}

fn marks(command: &str) -> (String, String) {
    (
        format!("<!-- begin: cargo xtask {command} -->\n"),
        format!("<!-- end: cargo xtask {command} -->\n"),
    )
}

fn with_table(document: &str, command: &str, table: &str) -> Option<String> {
    let (begin, end) = marks(command);
    let (before, rest) = document.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}{table}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_around_the_table_stays() {
        let (begin, end) = marks("accuracy");
        let document = format!("before\n{begin}old\n{end}after\n");
        let new = with_table(&document, "accuracy", "new\n");
        assert_eq!(new, Some(format!("before\n{begin}new\n{end}after\n")));
        assert_eq!(with_table(&document, "soak", "new\n"), None);
    }
}
