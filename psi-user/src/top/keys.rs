//! What each key does.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{columns::SortKey, player::Travel};
use crate::fields::Stall;

const MINUTE_NS: i64 = 60_000_000_000;

/// What the reader asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// End now, whatever is shown.
    Interrupt,
    Quit,
    /// Close what is open.
    Back,
    Help,
    Redraw,
    Suspend,
    Window,
    Lines,
    SortNext,
    SortPrevious,
    /// By this column; if it is the one already, by the resource's other line.
    SortBy(SortKey),
    Reverse,
    Tree,
    Names,
    Mouse,
    Pause,
    Slower,
    Faster,
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Fold,
    Unfold,
    FoldChildren,
    UnfoldAll,
    Details,
    Focus,
    Filter,
    /// To a time in a recording.
    Jump,
    Travel(Travel),
    Spike {
        forward: bool,
    },
}

/// The keys, for the reader.
pub(super) const HELP: [(&str, &str); 20] = [
    ("q Ctrl-C", "quit"),
    ("Up Down k j", "move; Up from the first line: no line"),
    ("PgUp PgDn", "move by a page; also Ctrl-B Ctrl-F"),
    ("Home End g G", "move to the first, last line"),
    ("Left Right h l", "fold, unfold; to the parent"),
    ("= *", "fold the children or unfold them, unfold all"),
    ("Enter", "details of the line; Tab: into them and back"),
    ("Esc", "close details, filter, selection"),
    ("/", "filter: a part of the path, or a glob"),
    ("s S < >", "sort by the next, previous column"),
    ("C M D I N", "sort by cpu, memory, io (disk), irq, name"),
    ("r", "reverse the order"),
    ("a", "figures: last interval, avg10, avg60, avg300"),
    ("f", "columns: some and full, some, full"),
    ("t w", "tree or list; names short or whole"),
    ("p Space", "pause the view; measuring goes on"),
    ("+ -", "refresh less, more often"),
    ("m", "mouse: click, wheel; or text selection"),
    ("Ctrl-L Ctrl-Z", "draw anew, suspend"),
    ("!", "marks what was missed or repaired"),
];

/// The keys that a recording has in addition, or in their place.
pub(super) const REPLAY_HELP: [(&str, &str); 5] = [
    ("Left Right", "a frame back, on"),
    ("PgUp PgDn", "a minute back, on"),
    ("g", "go to a time"),
    ("n N", "next, previous spike: what is sorted by gets over 10"),
    ("p Space", "play, stop"),
];

/// What `key` asks for; in a recording, if `replay`.
pub(super) fn action(key: KeyEvent, replay: bool) -> Option<Action> {
    let KeyEvent {
        code, modifiers, kind, ..
    } = key;
    if kind == KeyEventKind::Release {
        return None;
    }
    // Shift is part of the character.
    match modifiers - KeyModifiers::SHIFT {
        KeyModifiers::NONE if replay => travel(code).or_else(|| plain(code)),
        KeyModifiers::NONE => plain(code),
        KeyModifiers::CONTROL => match code {
            KeyCode::Char('c') => Some(Action::Interrupt),
            KeyCode::Char('l') => Some(Action::Redraw),
            KeyCode::Char('z') => Some(Action::Suspend),
            KeyCode::Char('b' | 'u') => Some(Action::PageUp),
            KeyCode::Char('f' | 'd') => Some(Action::PageDown),
            _ => None,
        },
        _ => None,
    }
}

const fn plain(code: KeyCode) -> Option<Action> {
    Some(match code {
        KeyCode::Char('q') => Action::Quit,
        KeyCode::Esc => Action::Back,
        KeyCode::Char('?') | KeyCode::F(1) => Action::Help,
        KeyCode::Char('a') => Action::Window,
        KeyCode::Char('f') => Action::Lines,
        KeyCode::Char('s' | '>') => Action::SortNext,
        KeyCode::Char('S' | '<') => Action::SortPrevious,
        KeyCode::Char('C') => Action::SortBy(SortKey::Stall(Stall::CPU_SOME)),
        KeyCode::Char('M') => Action::SortBy(SortKey::Stall(Stall::MEMORY_SOME)),
        KeyCode::Char('D') => Action::SortBy(SortKey::Stall(Stall::IO_SOME)),
        KeyCode::Char('I') => Action::SortBy(SortKey::Stall(Stall::IRQ_FULL)),
        KeyCode::Char('N') => Action::SortBy(SortKey::Cgroup),
        KeyCode::Char('r') => Action::Reverse,
        KeyCode::Char('t') => Action::Tree,
        KeyCode::Char('w') => Action::Names,
        KeyCode::Char('m') => Action::Mouse,
        KeyCode::Char('p' | ' ') => Action::Pause,
        KeyCode::Char('+') => Action::Slower,
        KeyCode::Char('-') => Action::Faster,
        KeyCode::Char('k') | KeyCode::Up => Action::Up,
        KeyCode::Char('j') | KeyCode::Down => Action::Down,
        KeyCode::PageUp => Action::PageUp,
        KeyCode::PageDown => Action::PageDown,
        KeyCode::Char('g') | KeyCode::Home => Action::First,
        KeyCode::Char('G') | KeyCode::End => Action::Last,
        KeyCode::Char('h') | KeyCode::Left => Action::Fold,
        KeyCode::Char('l') | KeyCode::Right => Action::Unfold,
        KeyCode::Char('=') => Action::FoldChildren,
        KeyCode::Char('*') => Action::UnfoldAll,
        KeyCode::Enter => Action::Details,
        KeyCode::Tab => Action::Focus,
        KeyCode::Char('/') => Action::Filter,
        _ => return None,
    })
}

/// What a recording has other keys for.
const fn travel(code: KeyCode) -> Option<Action> {
    Some(match code {
        KeyCode::Left => Action::Travel(Travel::Frames(-1)),
        KeyCode::Right => Action::Travel(Travel::Frames(1)),
        KeyCode::PageUp => Action::Travel(Travel::Span(-MINUTE_NS)),
        KeyCode::PageDown => Action::Travel(Travel::Span(MINUTE_NS)),
        KeyCode::Char('g') => Action::Jump,
        KeyCode::Char('n') => Action::Spike { forward: true },
        KeyCode::Char('N') => Action::Spike { forward: false },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(code: KeyCode, modifiers: KeyModifiers) -> Option<Action> {
        action(KeyEvent::new(code, modifiers), false)
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
        assert_eq!(pressed(KeyCode::Char('x'), KeyModifiers::CONTROL), None);
    }

    #[test]
    fn a_recording_has_keys_of_its_own() {
        let key = |code, replay| action(KeyEvent::new(code, KeyModifiers::NONE), replay);
        assert_eq!(key(KeyCode::Left, false), Some(Action::Fold));
        assert_eq!(key(KeyCode::Left, true), Some(Action::Travel(Travel::Frames(-1))));
        assert_eq!(key(KeyCode::Char('h'), true), Some(Action::Fold));
        assert_eq!(key(KeyCode::Char('g'), false), Some(Action::First));
        assert_eq!(key(KeyCode::Char('g'), true), Some(Action::Jump));
        assert_eq!(key(KeyCode::Char('n'), false), None);
    }

    #[test]
    fn all_keys_that_the_help_names_do_something() {
        let is_known = |name: &str, replay| {
            let code = match name {
                "Up" => KeyCode::Up,
                "Down" => KeyCode::Down,
                "Left" => KeyCode::Left,
                "Right" => KeyCode::Right,
                "PgUp" => KeyCode::PageUp,
                "PgDn" => KeyCode::PageDown,
                "Home" => KeyCode::Home,
                "End" => KeyCode::End,
                "Enter" => KeyCode::Enter,
                "Esc" => KeyCode::Esc,
                "Space" => KeyCode::Char(' '),
                _ => KeyCode::Char(name.chars().last().expect("not empty").to_ascii_lowercase()),
            };
            let code = match (code, name.len()) {
                (KeyCode::Char(_), 1) => KeyCode::Char(name.chars().next().expect("not empty")),
                _ => code,
            };
            let modifiers = if name.starts_with("Ctrl-") {
                KeyModifiers::CONTROL
            } else {
                KeyModifiers::NONE
            };
            action(KeyEvent::new(code, modifiers), replay).is_some()
        };
        let live = HELP.iter().map(|(keys, _)| (keys, false));
        let replay = REPLAY_HELP.iter().map(|(keys, _)| (keys, true));
        for (keys, replay) in live.chain(replay) {
            for key in keys.split(' ').filter(|key| *key != "!") {
                assert!(is_known(key, replay), "{key}");
            }
        }
    }
}
