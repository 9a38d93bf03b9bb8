//! The table of the kernel's rstat series: how often something was held or waited for how long.

use psi_common::hold::NAMES;
use psi_user::flush::HoldTimes;

/// One column: a name above, a count a bin.
pub(super) struct Column<'a> {
    pub(super) name: &'a str,
    pub(super) counts: [u64; NAMES.len()],
}

impl<'a> Column<'a> {
    pub(super) const fn new(name: &'a str, holds: &HoldTimes) -> Self {
        Self {
            name,
            counts: holds.counts,
        }
    }
}

/// Columns side by side; like the kernel's table, bins without a count after the last one stay empty.
pub(super) fn table(first: &str, columns: &[Column<'_>]) -> String {
    use std::fmt::Write as _;
    let mut text = format!("{first:>9}");
    let width = |column: &Column<'_>| column.name.len().max(11) + 2;
    for column in columns {
        // Writing to a string cannot fail.
        let _ = write!(text, "{:>1$}", column.name, width(column));
    }
    for (bin, name) in NAMES.iter().enumerate() {
        let _ = write!(text, "\n{name:>6} us");
        for column in columns {
            let is_past_last = column.counts[bin..].iter().all(|&count| count == 0);
            let cell = if is_past_last {
                String::new()
            } else {
                thousands(column.counts[bin])
            };
            let _ = write!(text, "{cell:>0$}", width(column));
        }
        text.truncate(text.trim_end_matches(' ').len());
    }
    text.push('\n');
    text
}

/// 1,234,567.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n != 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stand_below_their_names() {
        let mut holds = HoldTimes::default();
        for ns in [10, 20, 1500, 12_000] {
            holds.add(ns);
        }
        let text = table(
            "Hold time",
            &[Column::new("ours", &holds), Column::new("none", &HoldTimes::default())],
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Hold time         ours         none");
        assert_eq!(lines[1], "   0-1 us            2");
        assert_eq!(lines[3], "  5-10 us            0");
        assert_eq!(lines[5], " 15-20 us");
    }

    #[test]
    fn thousands_are_set_apart() {
        let texts = [0, 999, 1000, 13_738_708].map(thousands);
        assert_eq!(texts, ["0", "999", "1,000", "13,738,708"]);
    }
}
