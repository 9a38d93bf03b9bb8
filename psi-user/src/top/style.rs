//! Colours, and what stands in for them.

use std::env;

use ratatui::style::{Color, Modifier, Style};

/// A figure from here on is high; where it gets there, a spike begins.
pub(super) const HIGH: f64 = 10.0;
/// A figure from here on is very high.
const VERY_HIGH: f64 = 50.0;

/// How things look. Every difference also shows without colour.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    color: bool,
    /// Whether the terminal shows more than ASCII.
    pub(super) unicode: bool,
}

impl Palette {
    /// Without colour if `NO_COLOR` is set and not empty (<https://no-color.org>), or on a dumb terminal; in ASCII if
    /// the locale's character set is another than UTF-8.
    pub fn from_environment() -> Self {
        // As setlocale(3) looks them up.
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .filter_map(env::var_os)
            .find(|value| !value.is_empty());
        let charset = locale.unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        Self {
            color: env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && !is_dumb(),
            unicode: charset.contains("utf-8") || charset.contains("utf8"),
        }
    }

    /// With or without colour, with or without characters beyond ASCII.
    pub const fn new(color: bool, unicode: bool) -> Self {
        Self { color, unicode }
    }

    /// The bar behind a figure.
    pub(super) fn bar(self, percent: f64) -> Style {
        if percent >= HIGH {
            self.chart(percent)
        } else {
            Style::new()
        }
    }

    /// A chart, by its height.
    pub(super) fn chart(self, percent: f64) -> Style {
        if percent >= VERY_HIGH {
            self.colored(Color::Red)
        } else if percent >= HIGH {
            self.colored(Color::Yellow)
        } else {
            self.colored(Color::Green)
        }
    }

    /// A figure in %; what shows as 0.00 steps back.
    pub(super) fn figure(self, percent: f64) -> Style {
        if percent >= VERY_HIGH {
            self.colored(Color::Red)
                .add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
        } else if percent >= HIGH {
            self.colored(Color::Yellow).add_modifier(Modifier::BOLD)
        } else if percent >= 0.005 {
            Style::new()
        } else {
            Self::calm()
        }
    }

    /// Something to look into.
    pub(super) fn marked(self) -> Style {
        self.colored(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// Nothing to see here.
    pub(super) const fn calm() -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What is there no more.
    pub(super) const fn gone() -> Style {
        Style::new().add_modifier(Modifier::DIM.union(Modifier::CROSSED_OUT))
    }

    /// Titles.
    pub(super) const fn title() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What the reader chose.
    pub(super) const fn chosen() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    const fn colored(self, color: Color) -> Style {
        if self.color {
            Style::new().fg(color)
        } else {
            Style::new()
        }
    }
}

/// Whether the terminal cannot move its cursor.
pub(super) fn is_dumb() -> bool {
    env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_differ_without_color() {
        let styles = [0.0, 1.0, 10.0, 50.0].map(|percent| Palette::new(false, true).figure(percent));
        for (at, style) in styles.iter().enumerate() {
            assert_eq!(style.fg, None);
            assert!(!styles[..at].contains(style));
        }
    }
}
