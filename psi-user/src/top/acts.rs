//! What keys and the mouse do to the state.

use std::time::Duration;

use crossterm::event::{Event, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::{
    MAX_INTERVAL, MIN_INTERVAL,
    columns::SortKey,
    filter::Filter,
    keys::{Action, action},
    order::Branch,
    pane::Pane,
    player::Travel,
    prompt::{Of, Prompt, Typed},
    state::{Asked, State},
};
use crate::{model::CgroupPressure, when::When};

/// Rows for a turn of the wheel.
const WHEEL: isize = 3;

/// Steps of the interval, ms.
const INTERVALS: [u64; 9] = [100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000];

impl State {
    /// Does what a key or the mouse asks for.
    pub(super) fn event(&mut self, event: &Event) -> Asked {
        match event {
            Event::Key(key) if key.kind == KeyEventKind::Release => Asked::Nothing,
            Event::Key(key) if self.prompt.is_some() => self.type_key(*key),
            Event::Key(key) => {
                let action = action(*key, self.place.is_some());
                self.apply(action)
            }
            Event::Mouse(mouse) => {
                self.mouse(*mouse);
                Asked::Nothing
            }
            _ => Asked::Nothing,
        }
    }

    /// Does what a key asks for. No action stands for any other key.
    pub(super) fn apply(&mut self, action: Option<Action>) -> Asked {
        self.message = None;
        match action {
            Some(Action::Interrupt) => return Asked::Quit,
            Some(Action::Redraw) => return Asked::Redraw,
            Some(Action::Suspend) => return Asked::Suspend,
            _ if self.help => {
                self.help = false;
                return Asked::Nothing;
            }
            Some(Action::Quit) => return Asked::Quit,
            Some(Action::Travel(travel)) => return Asked::Travel(travel),
            Some(Action::Spike { forward }) => return Asked::Spike { forward },
            Some(Action::Mouse) => {
                self.mouse = !self.mouse;
                let what = if self.mouse {
                    "the mouse selects and scrolls"
                } else {
                    "the mouse is the terminal's: it marks text"
                };
                self.message = Some(what.to_owned());
                return Asked::Mouse(self.mouse);
            }
            Some(action) if !self.moves(action) => self.chooses(action),
            _ => {}
        }
        Asked::Nothing
    }

    /// Moves, if that is what the action is.
    fn moves(&mut self, action: Action) -> bool {
        let page = self.page().cast_signed();
        if self.in_pane
            && let Some(pane) = &mut self.pane
        {
            match action {
                Action::Up => pane.scroll(-1),
                Action::Down => pane.scroll(1),
                Action::PageUp => pane.scroll(-pane.page()),
                Action::PageDown => pane.scroll(pane.page()),
                Action::First => pane.scroll(isize::MIN),
                Action::Last => pane.scroll(isize::MAX),
                _ => return false,
            }
            return true;
        }
        match action {
            Action::Up if self.selected().is_some_and(|(row, _)| row == 0) => self.select_none(),
            Action::Up => self.step(-1),
            Action::Down => self.step(1),
            Action::PageUp => self.step(-page),
            Action::PageDown => self.step(page),
            Action::First => self.select(0),
            Action::Last => self.select(usize::MAX),
            _ => return false,
        }
        self.details_follow();
        true
    }

    fn chooses(&mut self, action: Action) {
        match action {
            Action::Help => self.help = true,
            Action::Back => self.back(),
            Action::Window => {
                self.window = self.window.next();
                self.rebuild();
            }
            Action::Lines => {
                self.lines = self.lines.next();
                if let SortKey::Stall(stall) = self.sort
                    && !self.lines.has(stall)
                {
                    self.sort_by(self.sort.other_line());
                }
            }
            Action::SortNext => self.sort_by(self.sort.next()),
            Action::SortPrevious => self.sort_by(self.sort.previous()),
            Action::SortBy(key) if key == self.sort => self.sort_by(key.other_line()),
            Action::SortBy(key) => self.sort_by(key),
            Action::Reverse => {
                self.reversed = !self.reversed;
                self.rebuild();
            }
            Action::Tree => {
                self.tree = !self.tree;
                self.forget_widest();
                self.rebuild();
            }
            Action::Names => {
                self.whole_names = !self.whole_names;
                self.forget_widest();
                self.rebuild();
            }
            Action::Pause => {
                self.paused = !self.paused;
                self.catch_up();
            }
            Action::Slower => self.interval = slower(self.interval),
            Action::Faster => self.interval = faster(self.interval),
            Action::Fold => self.fold(),
            Action::Unfold => self.unfold(),
            Action::FoldChildren => self.fold_children(),
            Action::UnfoldAll => {
                self.folded.clear();
                self.rebuild();
            }
            Action::Details if self.pane.is_some() => self.close_pane(),
            Action::Details => self.open_pane(),
            Action::Focus => self.in_pane = self.pane.is_some() && !self.in_pane,
            Action::Filter => {
                let before = self.filter.clone();
                let text = before.text().to_owned();
                self.prompt = Some(Prompt::new(Of::Filter { before }, text));
            }
            Action::Jump => self.prompt = Some(Prompt::new(Of::Time, String::new())),
            // Done elsewhere.
            _ => {}
        }
    }

    /// Closes the topmost thing that is open.
    fn back(&mut self) {
        if self.pane.is_some() {
            self.close_pane();
        } else if self.filter.is_active() {
            self.filter = Filter::default();
            self.rebuild();
        } else {
            self.select_none();
        }
    }

    fn sort_by(&mut self, key: SortKey) {
        self.sort = key;
        self.rebuild();
    }

    /// Folds the selected row; if there is nothing to fold, goes to its parent.
    fn fold(&mut self) {
        let Some((_, cgroup)) = self.selected() else { return };
        let id = cgroup.id;
        if self.selected_row().is_some_and(|row| row.branch == Branch::Open) && !self.filter.is_active() {
            self.folded.insert(id);
            self.rebuild();
        } else if let Some(parent) = self.parent_row() {
            self.select(parent);
            self.details_follow();
        }
    }

    fn unfold(&mut self) {
        if let Some((_, cgroup)) = self.selected() {
            let id = cgroup.id;
            self.folded.remove(&id);
            self.rebuild();
        }
    }

    /// Folds the children of the selected row, or of the root; unfolds them if all are.
    fn fold_children(&mut self) {
        if !self.tree {
            return;
        }
        let children = if let Some((row, _)) = self.selected() {
            self.branches_below(row)
        } else {
            let rows = self.rows().iter();
            let tops = rows.filter(|row| row.depth == 0 && row.branch != Branch::Leaf);
            tops.filter_map(|row| Some(self.cgroup(*row)?.id)).collect()
        };
        if children.iter().all(|id| self.folded.contains(id)) {
            for id in children {
                self.folded.remove(&id);
            }
        } else {
            self.folded.extend(children);
        }
        self.rebuild();
    }

    /// The cgroup whose details would be shown.
    fn to_detail(&self) -> Option<&CgroupPressure> {
        self.selected().map(|(_, cgroup)| cgroup).or_else(|| self.root())
    }

    fn open_pane(&mut self) {
        self.pane = self.to_detail().map(Pane::new);
    }

    fn close_pane(&mut self) {
        self.pane = None;
        self.in_pane = false;
    }

    /// The pane shows what the reader goes to.
    fn details_follow(&mut self) {
        let shown = self.pane.as_ref().map(|pane| pane.id);
        if shown.is_some() && shown != self.to_detail().map(|cgroup| cgroup.id) {
            self.open_pane();
        }
    }

    fn type_key(&mut self, key: KeyEvent) -> Asked {
        if let Some(action @ (Action::Interrupt | Action::Redraw | Action::Suspend)) = action(key, false)
            && key.modifiers == KeyModifiers::CONTROL
        {
            return self.apply(Some(action));
        }
        let Some(prompt) = &mut self.prompt else {
            return Asked::Nothing;
        };
        let typed = prompt.key(key);
        if typed == Typed::Other {
            // Such as the arrows: up and down in what was found.
            if let Some(action) = action(key, false) {
                self.moves(action);
            }
            return Asked::Nothing;
        }
        match &prompt.of {
            Of::Filter { before } => {
                let before = before.clone();
                self.type_filter(typed, before);
                Asked::Nothing
            }
            Of::Time => self.type_time(typed),
        }
    }

    fn type_filter(&mut self, typed: Typed, before: Filter) {
        let Some(prompt) = &mut self.prompt else { return };
        match typed {
            Typed::Changed => match Filter::new(&prompt.text) {
                Ok(filter) => self.filter = filter,
                // Half a glob: what was found with its beginning stays.
                Err(error) => prompt.error = Some(error),
            },
            Typed::Done if prompt.error.is_some() => return,
            Typed::Done => self.prompt = None,
            Typed::GivenUp => {
                self.filter = before;
                self.prompt = None;
            }
            Typed::Other => return,
        }
        self.rebuild();
    }

    fn type_time(&mut self, typed: Typed) -> Asked {
        let (Some(prompt), Some(place), Some(snapshot)) = (&self.prompt, self.place, self.snapshot()) else {
            self.prompt = None;
            return Asked::Nothing;
        };
        match typed {
            Typed::Done => {
                let span_ns = place.first_ns..=place.last_ns;
                let time_ns = When::parse_near(prompt.text.trim()).and_then(|when| {
                    when.resolve_near(snapshot.time_ns, span_ns, &self.zone)
                        .ok_or("there is no such time")
                });
                match time_ns {
                    Ok(time_ns) => {
                        self.prompt = None;
                        return Asked::Travel(Travel::To(time_ns));
                    }
                    Err(error) => {
                        if let Some(prompt) = &mut self.prompt {
                            prompt.error = Some(error.to_owned());
                        }
                    }
                }
            }
            Typed::GivenUp => self.prompt = None,
            Typed::Changed | Typed::Other => {}
        }
        Asked::Nothing
    }

    fn mouse(&mut self, mouse: MouseEvent) {
        let at = Position::new(mouse.column, mouse.row);
        let wheel = match mouse.kind {
            MouseEventKind::ScrollUp => -WHEEL,
            MouseEventKind::ScrollDown => WHEEL,
            MouseEventKind::Down(MouseButton::Left) => 0,
            _ => return,
        };
        self.message = None;
        if self.help {
            self.help = false;
        } else if wheel != 0 {
            match &mut self.pane {
                Some(pane) if self.hits.pane.contains(at) => pane.scroll(wheel),
                _ => self.scroll(wheel),
            }
        } else if self.hits.titles.contains(at) {
            let column = self.hits.columns.iter().find(|(columns, _)| columns.contains(&at.x));
            match column.map(|(_, key)| *key) {
                Some(key) if key == self.sort => self.chooses(Action::Reverse),
                Some(key) => self.sort_by(key),
                None => {}
            }
        } else if self.hits.pane.contains(at) {
            self.in_pane = true;
        } else if self.hits.rows.contains(at) {
            self.in_pane = false;
            let row = self.first() + usize::from(at.y - self.hits.rows.y);
            if row >= self.rows().len() {
                return;
            }
            if self.selected().is_some_and(|(selected, _)| selected == row) {
                // As a second click does elsewhere.
                self.chooses(Action::Details);
            } else {
                self.select(row);
                self.details_follow();
            }
        }
    }
}

fn slower(interval: Duration) -> Duration {
    INTERVALS
        .map(Duration::from_millis)
        .into_iter()
        .find(|step| *step > interval)
        .unwrap_or(MAX_INTERVAL)
}

fn faster(interval: Duration) -> Duration {
    INTERVALS
        .map(Duration::from_millis)
        .into_iter()
        .rev()
        .find(|step| *step < interval)
        .unwrap_or(MIN_INTERVAL)
}
