//! What each key does.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// What the reader asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// End now, whatever is shown.
    Interrupt,
    Quit,
    Help,
    Redraw,
    Window,
    SortNext,
    SortPrevious,
    Tree,
    Pause,
    Slower,
    Faster,
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

/// The keys, for the reader.
pub(super) const HELP: [(&str, &str); 12] = [
    ("q Esc Ctrl-C", "quit"),
    ("a", "figures: last interval, avg10, avg60, avg300"),
    ("s S", "sort by the next, previous column"),
    ("t", "tree or list"),
    ("Up Down k j", "move; Up from the first line: no line"),
    ("PgUp PgDn", "move by a page"),
    ("Home End g G", "move to the first, last line"),
    ("p Space", "pause the view; measuring goes on"),
    ("+ -", "refresh less, more often"),
    ("Ctrl-L", "draw anew"),
    ("? h", "this help"),
    ("!", "marks what was missed or repaired"),
];

/// What `key` asks for.
pub(super) fn action(key: KeyEvent) -> Option<Action> {
    let KeyEvent {
        code, modifiers, kind, ..
    } = key;
    if kind == KeyEventKind::Release {
        return None;
    }
    // Shift is part of the character.
    match modifiers - KeyModifiers::SHIFT {
        KeyModifiers::NONE => plain(code),
        KeyModifiers::CONTROL => match code {
            KeyCode::Char('c') => Some(Action::Interrupt),
            KeyCode::Char('l') => Some(Action::Redraw),
            _ => None,
        },
        _ => None,
    }
}

const fn plain(code: KeyCode) -> Option<Action> {
    Some(match code {
        KeyCode::Char('q') | KeyCode::Esc => Action::Quit,
        KeyCode::Char('?' | 'h') => Action::Help,
        KeyCode::Char('a') => Action::Window,
        KeyCode::Char('s') => Action::SortNext,
        KeyCode::Char('S') => Action::SortPrevious,
        KeyCode::Char('t') => Action::Tree,
        KeyCode::Char('p' | ' ') => Action::Pause,
        KeyCode::Char('+') => Action::Slower,
        KeyCode::Char('-') => Action::Faster,
        KeyCode::Char('k') | KeyCode::Up => Action::Up,
        KeyCode::Char('j') | KeyCode::Down => Action::Down,
        KeyCode::PageUp => Action::PageUp,
        KeyCode::PageDown => Action::PageDown,
        KeyCode::Char('g') | KeyCode::Home => Action::First,
        KeyCode::Char('G') | KeyCode::End => Action::Last,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(code: KeyCode, modifiers: KeyModifiers) -> Option<Action> {
        action(KeyEvent::new(code, modifiers))
    }

    #[test]
    fn shift_is_part_of_the_character() {
        assert_eq!(
            pressed(KeyCode::Char('S'), KeyModifiers::SHIFT),
            Some(Action::SortPrevious)
        );
        assert_eq!(pressed(KeyCode::Char('s'), KeyModifiers::NONE), Some(Action::SortNext));
    }

    #[test]
    fn other_modifiers_make_another_key() {
        assert_eq!(
            pressed(KeyCode::Char('c'), KeyModifiers::CONTROL),
            Some(Action::Interrupt)
        );
        assert_eq!(pressed(KeyCode::Char('q'), KeyModifiers::ALT), None);
        assert_eq!(pressed(KeyCode::Char('z'), KeyModifiers::CONTROL), None);
    }
}
