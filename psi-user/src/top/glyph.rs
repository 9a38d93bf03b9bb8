//! Bars and charts made of characters, and what stands in for them in ASCII.

use ratatui::buffer::Buffer;

/// Eighths of a cell from below; the first is for 0, which is not the same as nothing known.
const UPWARDS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Eighths of a cell from the left.
const RIGHTWARDS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// What ASCII has for characters that the view uses. Names may hold any other ones.
const ASCII: [(char, char); 30] = [
    ('…', '~'),
    ('▼', 'v'),
    ('▲', '^'),
    ('▸', '+'),
    ('▾', '-'),
    ('─', '-'),
    ('│', '|'),
    ('┌', '+'),
    ('┐', '+'),
    ('└', '+'),
    ('┘', '+'),
    ('·', '.'),
    ('▁', '_'),
    ('▂', '-'),
    ('▃', '='),
    ('▄', '+'),
    ('▅', '*'),
    ('▆', '%'),
    ('▇', '#'),
    ('█', '@'),
    ('▏', ' '),
    ('▎', '.'),
    ('▍', ':'),
    ('▌', '|'),
    ('▋', '|'),
    ('▊', '|'),
    ('▉', '|'),
    ('×', 'x'),
    ('–', '-'),
    ('▕', '|'),
];

/// A bar of `columns` for `percent`: to the right, or upwards if there is one column only. What is not 0 shows.
pub(super) fn bar(percent: f64, columns: usize) -> String {
    let percent = percent.clamp(0.0, 100.0);
    let shows = |eighths: usize| if percent >= 0.005 { eighths.max(1) } else { 0 };
    if columns == 1 {
        return match shows((percent * 8.0 / 100.0).round() as usize) {
            0 => " ".to_owned(),
            eighths => UPWARDS[eighths].to_string(),
        };
    }
    let eighths = shows((percent * 8.0 * columns as f64 / 100.0).round() as usize);
    (0..columns)
        .map(|column| RIGHTWARDS[eighths.saturating_sub(column * 8).min(8)])
        .collect()
}

/// The character at `row` (0 is the lowest) of a chart's column that is `rows` high and shows `share` (0 to 1) of its
/// scale; blank where nothing is known.
pub(super) fn chart(share: Option<f64>, row: usize, rows: usize) -> char {
    let Some(share) = share else { return ' ' };
    let mut eighths = (share.clamp(0.0, 1.0) * 8.0 * rows as f64).round() as usize;
    if share > 0.0 {
        eighths = eighths.max(1);
    }
    match eighths.saturating_sub(row * 8).min(8) {
        0 if row > 0 => ' ',
        eighths => UPWARDS[eighths],
    }
}

/// Replaces all that is not ASCII.
pub(super) fn to_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if cell.symbol().is_ascii() {
            continue;
        }
        let first = cell.symbol().chars().next().unwrap_or(' ');
        let known = ASCII.iter().find(|(glyph, _)| *glyph == first);
        cell.set_char(known.map_or('?', |(_, ascii)| *ascii));
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;

    use super::*;

    #[test]
    fn bars_grow_and_show_all_that_is_not_zero() {
        assert_eq!(bar(0.0, 4), "    ");
        assert_eq!(bar(0.004, 4), "    ");
        assert_eq!(bar(0.01, 4), "▏   ");
        assert_eq!(bar(50.0, 4), "██  ");
        assert_eq!(bar(62.5, 4), "██▌ ");
        assert_eq!(bar(100.0, 4), "████");
        assert_eq!(
            [0.0, 0.01, 50.0, 100.0, 120.0].map(|percent| bar(percent, 1)),
            [" ", "▁", "▄", "█", "█"]
        );
    }

    #[test]
    fn a_chart_tells_nothing_from_zero() {
        let column = |share, rows: usize| (0..rows).rev().map(|row| chart(share, row, rows)).collect::<String>();
        assert_eq!(column(None, 2), "  ");
        assert_eq!(column(Some(0.0), 2), " ·");
        assert_eq!(column(Some(0.001), 2), " ▁");
        assert_eq!(column(Some(0.5), 2), " █");
        assert_eq!(column(Some(0.75), 2), "▄█");
        assert_eq!(column(Some(1.0), 2), "██");
    }

    #[test]
    fn ascii_stands_in_for_all_glyphs() {
        let text: String = UPWARDS.iter().chain(&RIGHTWARDS).chain(&['…', '▼', 'ö']).collect();
        let mut buffer = Buffer::empty(Rect::new(0, 0, 21, 1));
        buffer.set_string(0, 0, &text, ratatui::style::Style::new());
        to_ascii(&mut buffer);
        let shown: String = buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect();
        assert_eq!(shown, "._-=+*%#@  .:||||@~v?");
    }
}
