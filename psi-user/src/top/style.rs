//! Colours, and what stands in for them.

use std::env;

use ratatui::style::{Color, Modifier, Style};

/// A figure from here on is high.
const HIGH: f64 = 10.0;
/// A figure from here on is very high.
const VERY_HIGH: f64 = 50.0;

/// How things look. Every difference also shows without colour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Palette {
    color: bool,
}

impl Palette {
    /// Without colour if `NO_COLOR` is set and not empty (<https://no-color.org>).
    pub(super) fn from_environment() -> Self {
        Self {
            color: env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }

    #[cfg(test)]
    pub(super) const fn new(color: bool) -> Self {
        Self { color }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_differ_without_color() {
        let styles = [0.0, 1.0, 10.0, 50.0].map(|percent| Palette::new(false).figure(percent));
        for (at, style) in styles.iter().enumerate() {
            assert_eq!(style.fg, None);
            assert!(!styles[..at].contains(style));
        }
    }
}
