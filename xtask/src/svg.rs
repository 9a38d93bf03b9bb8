//! A terminal's screen as an SVG image.

use std::fmt::Write as _;

/// Pixels of a character.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 17.0;
/// From a line's top to where its letters stand.
const BASE: f64 = 13.0;
const MARGIN: f64 = 10.0;

const BACKGROUND: &str = "#1e1e1e";
const FOREGROUND: &str = "#d4d4d4";
const DIMMED: &str = "#8a8a8a";
/// ECMA-48's eight colours; the first is black.
const COLOURS: [&str; 8] = [
    "#3c3c3c", "#f14c4c", "#4ec97b", "#e5c07b", "#61a8ff", "#d678dd", "#56c8d8", "#d4d4d4",
];

/// Text in one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) text: String,
    style: Style,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the terminal's attributes")]
struct Style {
    colour: Option<usize>,
    bold: bool,
    dim: bool,
    underlined: bool,
    reversed: bool,
    crossed_out: bool,
}

impl Style {
    /// Takes in the numbers of an SGR sequence (ECMA-48, 8.3.117), or xterm's 38;5;N for one of its palette.
    fn set_all(&mut self, codes: &str) {
        let codes: Vec<usize> = codes.split(';').map(|code| code.parse().unwrap_or(0)).collect();
        if let [before @ .., 38, 5, colour] = codes.as_slice() {
            for code in before {
                self.set(*code);
            }
            // The bright ones look like the usual ones; all others are not used.
            self.colour = Some(*colour % COLOURS.len());
        } else {
            for code in &codes {
                self.set(*code);
            }
        }
    }

    fn set(&mut self, code: usize) {
        match code {
            0 => *self = Self::default(),
            1 => self.bold = true,
            2 => self.dim = true,
            4 => self.underlined = true,
            7 => self.reversed = true,
            9 => self.crossed_out = true,
            22 => (self.bold, self.dim) = (false, false),
            24 => self.underlined = false,
            27 => self.reversed = false,
            29 => self.crossed_out = false,
            30..=37 => self.colour = Some(code - 30),
            39 => self.colour = None,
            90..=97 => self.colour = Some(code - 90),
            _ => {}
        }
    }
}

/// Takes what `tmux capture-pane -e` prints apart; a style may go on in the next line.
pub(crate) fn parse(screen: &str) -> Vec<Vec<Span>> {
    let mut style = Style::default();
    let mut lines = Vec::new();
    for line in screen.lines() {
        let mut spans: Vec<Span> = Vec::new();
        let mut parts = line.split("\u{1b}[");
        let plain = parts.next().map(|text| (None, text));
        let styled = parts.map(|part| {
            part.split_once('m')
                .map_or((None, part), |(codes, text)| (Some(codes), text))
        });
        for (codes, text) in plain.into_iter().chain(styled) {
            if let Some(codes) = codes {
                style.set_all(codes);
            }
            if !text.is_empty() {
                spans.push(Span {
                    text: text.to_owned(),
                    style,
                });
            }
        }
        lines.push(spans);
    }
    lines
}

/// The image.
pub(crate) fn image(screen: &[Vec<Span>], columns: usize, lines: usize) -> String {
    let width = columns as f64 * WIDTH + 2.0 * MARGIN;
    let height = lines as f64 * HEIGHT + 2.0 * MARGIN;
    let mut image = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{BACKGROUND}\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\" \
         xml:space=\"preserve\">\n"
    );
    for (spans, line) in screen.iter().zip(0..lines) {
        let y = MARGIN + line as f64 * HEIGHT;
        let mut column = 0;
        for span in spans {
            let count = span.text.chars().count();
            let x = MARGIN + column as f64 * WIDTH;
            draw(&mut image, span, x, y, count as f64 * WIDTH);
            column += count;
        }
    }
    image + "</g>\n</svg>\n"
}

fn draw(image: &mut String, span: &Span, x: f64, y: f64, width: f64) {
    let Span { text, style } = span;
    let mut colour = match style.colour {
        Some(colour) => COLOURS[colour],
        None if style.dim => DIMMED,
        None => FOREGROUND,
    };
    if style.reversed {
        _ = writeln!(
            image,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{colour}\"/>"
        );
        colour = BACKGROUND;
    }
    if text.trim().is_empty() {
        return;
    }
    let bold = if style.bold { " font-weight=\"bold\"" } else { "" };
    let line = match (style.underlined, style.crossed_out) {
        (true, _) => " text-decoration=\"underline\"",
        (_, true) => " text-decoration=\"line-through\"",
        _ => "",
    };
    let base = y + BASE;
    // The length keeps columns where they are, whatever the font.
    _ = writeln!(
        image,
        "<text x=\"{x:.1}\" y=\"{base:.1}\" textLength=\"{width:.1}\" fill=\"{colour}\"{bold}{line}>{}</text>",
        escape(text)
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_parsed_and_drawn() {
        let lines = parse("a\u{1b}[1;31mb<c\u{1b}[0m d\u{1b}[7m\ne\u{1b}[27;39mf\u{1b}[1;38;5;3mg");
        let texts: Vec<Vec<&str>> = lines
            .iter()
            .map(|spans| spans.iter().map(|span| span.text.as_str()).collect())
            .collect();
        assert_eq!(texts, [vec!["a", "b<c", " d"], vec!["e", "f", "g"]]);
        assert!(lines[1][2].style.bold && lines[1][2].style.colour == Some(3));
        assert!(lines[0][1].style.bold && lines[0][1].style.colour == Some(1));
        assert!(lines[1][0].style.reversed && !lines[1][1].style.reversed);
        let image = image(&lines, 10, 2);
        assert!(image.contains(">b&lt;c</text>"), "{image}");
        assert_eq!(image.matches("<rect").count(), 2);
    }
}
