//! A line that is being typed.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::filter::Filter;

/// The longest text: more than any path that people type.
const MOST: usize = 512;

/// A line that is being typed.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) of: Of,
    pub(super) text: String,
    /// Why the text cannot be used as it is.
    pub(super) error: Option<String>,
}

/// What is asked for.
#[derive(Debug)]
pub(super) enum Of {
    Filter {
        /// Back to this if it is given up.
        before: Filter,
    },
    Time,
}

/// What a key did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// The text is another one.
    Changed,
    Done,
    GivenUp,
    /// Not a key for a prompt.
    Other,
}

impl Prompt {
    pub(super) const fn new(of: Of, text: String) -> Self {
        Self { of, text, error: None }
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Typed {
        let Self { text, error, .. } = self;
        let is_plain = (key.modifiers - KeyModifiers::SHIFT).is_empty();
        let is_control = key.modifiers == KeyModifiers::CONTROL;
        match key.code {
            KeyCode::Enter => return Typed::Done,
            KeyCode::Esc => return Typed::GivenUp,
            KeyCode::Backspace if text.is_empty() => return Typed::GivenUp,
            KeyCode::Backspace => _ = text.pop(),
            KeyCode::Char('h') if is_control => _ = text.pop(),
            KeyCode::Char('u') if is_control => text.clear(),
            KeyCode::Char('w') if is_control => {
                let kept = text.trim_end_matches('/').rfind('/').map_or(0, |slash| slash + 1);
                text.truncate(kept);
            }
            KeyCode::Char(c) if is_plain && !c.is_control() && text.len() < MOST => text.push(c),
            _ => return Typed::Other,
        }
        *error = None;
        Typed::Changed
    }

    /// What stands before the text.
    pub(super) const fn title(&self) -> &'static str {
        match self.of {
            Of::Filter { .. } => "/",
            Of::Time => "go to: ",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_edited_as_in_a_shell() {
        let mut prompt = Prompt::new(Of::Time, String::new());
        let mut press = |code, modifiers| {
            let typed = prompt.key(KeyEvent::new(code, modifiers));
            (typed, prompt.text.clone())
        };
        for c in "/a/bc".chars() {
            press(KeyCode::Char(c), KeyModifiers::NONE);
        }
        let control = |c| (KeyCode::Char(c), KeyModifiers::CONTROL);
        for ((code, modifiers), typed, text) in [
            ((KeyCode::Backspace, KeyModifiers::NONE), Typed::Changed, "/a/b"),
            ((KeyCode::Char('C'), KeyModifiers::SHIFT), Typed::Changed, "/a/bC"),
            (control('w'), Typed::Changed, "/a/"),
            (control('x'), Typed::Other, "/a/"),
            ((KeyCode::Up, KeyModifiers::NONE), Typed::Other, "/a/"),
            (control('w'), Typed::Changed, "/"),
            (control('u'), Typed::Changed, ""),
            ((KeyCode::Enter, KeyModifiers::NONE), Typed::Done, ""),
            ((KeyCode::Backspace, KeyModifiers::NONE), Typed::GivenUp, ""),
            ((KeyCode::Esc, KeyModifiers::NONE), Typed::GivenUp, ""),
        ] {
            assert_eq!(press(code, modifiers), (typed, text.to_owned()));
        }
    }
}
