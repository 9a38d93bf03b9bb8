//! Text from elsewhere, made safe to show and cut to a width.

use std::borrow::Cow;

use ratatui::{style::Style, text::Span};

/// Where a cut text was cut.
const CUT: &str = "…";

/// Columns that `text` takes.
pub(super) fn width(text: &str) -> usize {
    if is_plain(text) {
        text.len()
    } else {
        Span::raw(text).width()
    }
}

/// Replaces what does not print, or changes how its surroundings print (controls, escape sequences, direction marks),
/// by Rust's escapes, as in `\n` and `\u{1b}`. Quotes and backslashes stay: systemd's own escapes, as in `\x2d`, are
/// full of them.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for part in text.split_inclusive(['\'', '"', '\\']) {
        let plain = part.trim_end_matches(['\'', '"', '\\']);
        escaped.extend(plain.escape_debug());
        escaped.push_str(&part[plain.len()..]);
    }
    Cow::Owned(escaped)
}

/// Shortens `text` to `columns` by leaving out its middle. Expects text that was [escaped](escape).
pub(super) fn cut_middle(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    if columns == 0 {
        return Cow::Borrowed("");
    }
    let span = Span::raw(text);
    let graphemes: Vec<&str> = span
        .styled_graphemes(Style::new())
        .map(|grapheme| grapheme.symbol)
        .collect();
    let room = columns - 1;
    let (head, used) = take(graphemes.iter(), room / 2);
    // What a wide character left of the head's half goes to the tail. The text is too long for both to meet.
    let (tail, _) = take(graphemes.iter().rev(), room - used);
    let tail = &graphemes[graphemes.len() - tail..];
    Cow::Owned([&graphemes[..head], &[CUT], tail].concat().concat())
}

/// How many of `graphemes` fit into `room` columns, and the columns they take.
fn take<'a>(graphemes: impl Iterator<Item = &'a &'a str>, room: usize) -> (usize, usize) {
    let (mut count, mut used) = (0, 0);
    for grapheme in graphemes {
        let next = used + width(grapheme);
        if next > room {
            break;
        }
        (count, used) = (count + 1, next);
    }
    (count, used)
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_escaped_and_quotes_are_not() {
        assert_eq!(escape("/a b\\x2dc'd\".service"), "/a b\\x2dc'd\".service");
        assert_eq!(escape("/\u{1b}[2J\n\u{7f}"), "/\\u{1b}[2J\\n\\u{7f}");
        assert_eq!(escape("/\\\u{1b}'\u{9b}1m"), "/\\\\u{1b}'\\u{9b}1m");
        assert_eq!(
            escape("/a\u{202e}b\u{200b}\u{2066}c"),
            "/a\\u{202e}b\\u{200b}\\u{2066}c"
        );
        assert_eq!(escape("/größe/日本"), "/größe/日本");
    }

    #[test]
    fn nothing_escaped_is_a_control() {
        for c in '\0'..='\u{2fff}' {
            let text = format!("/x{c}y");
            let shown = escape(&text);
            assert!(!shown.contains(char::is_control), "{shown:?}");
            assert!(width(&shown) >= 3, "{shown:?}");
        }
    }

    #[test]
    fn the_middle_is_cut_by_width() {
        assert_eq!(cut_middle("abcdefghij", 10), "abcdefghij");
        assert_eq!(cut_middle("abcdefghij", 9), "abcd…ghij");
        assert_eq!(cut_middle("abcdefghij", 4), "a…ij");
        assert_eq!(cut_middle("abcdefghij", 1), "…");
        assert_eq!(cut_middle("abcdefghij", 0), "");
        assert_eq!(cut_middle("日本語日本語", 8), "日…本語");
    }

    #[test]
    fn a_cut_text_never_takes_more_than_its_columns() {
        for text in [
            "/日本語日本語日本語",
            "/e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}",
            "/👩🏽👩🏽👩🏽👩🏽",
            "/abcdefghijkl",
        ] {
            for columns in 0..20 {
                let shown = cut_middle(text, columns);
                assert!(width(&shown) <= columns, "{shown} {columns}");
            }
        }
    }
}
