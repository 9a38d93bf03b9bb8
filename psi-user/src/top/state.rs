//! What the view knows: the figures, what the reader chose, the line that is selected.

use std::{
    ops::{ControlFlow, Range},
    time::Duration,
};

use super::{
    MAX_INTERVAL, MIN_INTERVAL, Options,
    columns::{SortKey, Window},
    escape::{escape, width},
    keys::Action,
    order::{Row, flat, tree},
};
use crate::model::{CgroupPressure, Snapshot};

/// Columns by which a child is moved to the right of its parent.
pub(super) const INDENT: usize = 2;

/// Steps of the interval, ms.
const INTERVALS: [u64; 9] = [100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000];

/// The state of the view.
#[derive(Debug)]
pub(super) struct State {
    pub(super) interval: Duration,
    pub(super) sort: SortKey,
    pub(super) window: Window,
    pub(super) tree: bool,
    pub(super) paused: bool,
    pub(super) help: bool,
    /// What is shown.
    snapshot: Option<Snapshot>,
    /// The newest, not shown while paused.
    held: Option<Snapshot>,
    rows: Vec<Row>,
    widest: usize,
    selected: Option<Selected>,
    /// First row that is shown.
    first: usize,
    /// Rows of a page, as of the last frame.
    page: usize,
}

/// The selected cgroup.
#[derive(Clone, Copy, Debug)]
struct Selected {
    id: u64,
    row: usize,
}

impl State {
    pub(super) fn new(options: Options) -> Self {
        let Options {
            interval,
            tree,
            sort,
            window,
        } = options;
        Self {
            interval: interval.clamp(MIN_INTERVAL, MAX_INTERVAL),
            sort,
            window,
            tree,
            paused: false,
            help: false,
            snapshot: None,
            held: None,
            rows: Vec::new(),
            widest: 0,
            selected: None,
            first: 0,
            page: 1,
        }
    }

    /// Takes new figures.
    pub(super) fn update(&mut self, snapshot: Snapshot) {
        if self.paused && self.snapshot.is_some() {
            self.held = Some(snapshot);
        } else {
            self.snapshot = Some(snapshot);
            self.rebuild();
        }
    }

    /// Does what a key asks for; breaks if the view is to end. No action stands for any other key.
    pub(super) fn apply(&mut self, action: Option<Action>) -> ControlFlow<()> {
        if action == Some(Action::Interrupt) {
            return ControlFlow::Break(());
        }
        if self.help {
            self.help = false;
            return ControlFlow::Continue(());
        }
        let page = self.page.cast_signed();
        match action {
            Some(Action::Quit) => return ControlFlow::Break(()),
            Some(Action::Help) => self.help = true,
            Some(Action::Window) => {
                self.window = self.window.next();
                self.rebuild();
            }
            Some(Action::SortNext) => {
                self.sort = self.sort.next();
                self.rebuild();
            }
            Some(Action::SortPrevious) => {
                self.sort = self.sort.previous();
                self.rebuild();
            }
            Some(Action::Tree) => {
                self.tree = !self.tree;
                self.widest = 0;
                self.rebuild();
            }
            Some(Action::Pause) => {
                self.paused = !self.paused;
                if let Some(held) = self.held.take() {
                    self.update(held);
                }
            }
            Some(Action::Slower) => self.interval = slower(self.interval),
            Some(Action::Faster) => self.interval = faster(self.interval),
            Some(Action::Up) if self.selected.is_some_and(|selected| selected.row == 0) => self.selected = None,
            Some(Action::Up) => self.step(-1),
            Some(Action::Down) => self.step(1),
            Some(Action::PageUp) => self.step(-page),
            Some(Action::PageDown) => self.step(page),
            Some(Action::First) => self.select(0),
            Some(Action::Last) => self.select(usize::MAX),
            Some(Action::Interrupt | Action::Redraw) | None => {}
        }
        ControlFlow::Continue(())
    }

    pub(super) const fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    /// The hierarchy's root.
    pub(super) fn root(&self) -> Option<&CgroupPressure> {
        self.cgroups().iter().find(|cgroup| cgroup.level == 0)
    }

    /// The selected row and its cgroup.
    pub(super) fn selected(&self) -> Option<(usize, &CgroupPressure)> {
        let Selected { row, .. } = self.selected?;
        Some((row, self.cgroup(*self.rows.get(row)?)?))
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(super) fn cgroup(&self, row: Row) -> Option<&CgroupPressure> {
        self.cgroups().get(row.index)
    }

    /// Columns that the longest name takes. Does not shrink, or else all columns would move as cgroups come and go.
    pub(super) const fn widest(&self) -> usize {
        self.widest
    }

    /// The rows that a page of `page` rows shows: with the selected one, else from the first.
    pub(super) fn visible(&mut self, page: usize) -> Range<usize> {
        let page = page.max(1);
        self.page = page;
        self.first = match self.selected {
            Some(Selected { row, .. }) => {
                let last = self.rows.len().saturating_sub(page);
                self.first.clamp((row + 1).saturating_sub(page), row).min(last)
            }
            None => 0,
        };
        self.first..self.rows.len().min(self.first + page)
    }

    fn cgroups(&self) -> &[CgroupPressure] {
        self.snapshot.as_ref().map_or(&[], |snapshot| &snapshot.cgroups)
    }

    /// Orders the rows anew; the selection stays on its cgroup, or on its row if the cgroup is gone.
    fn rebuild(&mut self) {
        let order = if self.tree { tree } else { flat };
        self.rows = order(self.cgroups(), self.sort, self.window);
        let widest = self
            .rows
            .iter()
            .map(|row| self.name_width(*row))
            .max()
            .unwrap_or_default();
        self.widest = self.widest.max(widest);
        if let Some(Selected { id, row }) = self.selected {
            let found = self
                .rows
                .iter()
                .position(|row| self.cgroup(*row).is_some_and(|cgroup| cgroup.id == id));
            self.select(found.unwrap_or(row));
        }
    }

    fn name_width(&self, row: Row) -> usize {
        row.depth * INDENT + width(&escape(self.name(row)))
    }

    /// The name that `row` shows, as it is: not escaped.
    pub(super) fn name(&self, row: Row) -> &str {
        self.cgroup(row)
            .and_then(|cgroup| cgroup.path.get(row.name_at..))
            .unwrap_or_default()
    }

    fn step(&mut self, rows: isize) {
        let row = match self.selected {
            Some(Selected { row, .. }) => row.saturating_add_signed(rows),
            None if rows > 0 => rows.unsigned_abs() - 1,
            None => return,
        };
        self.select(row);
    }

    fn select(&mut self, row: usize) {
        let row = row.min(self.rows.len().saturating_sub(1));
        self.selected = self
            .rows
            .get(row)
            .and_then(|found| self.cgroup(*found))
            .map(|&CgroupPressure { id, .. }| Selected { id, row });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::fixture::{cgroup, snapshot};

    fn state(cgroups: Vec<CgroupPressure>) -> State {
        let mut state = State::new(Options::default());
        state.update(snapshot(cgroups));
        state.visible(10);
        state
    }

    fn press(state: &mut State, actions: &[Action]) {
        for action in actions {
            assert!(state.apply(Some(*action)).is_continue());
        }
    }

    fn names(state: &State) -> Vec<&str> {
        state.rows().iter().map(|row| state.name(*row)).collect()
    }

    fn selected(state: &State) -> Option<(usize, &str)> {
        state.selected().map(|(row, cgroup)| (row, cgroup.path.as_str()))
    }

    fn letters() -> Vec<CgroupPressure> {
        vec![
            cgroup("/", 1, 0.0),
            cgroup("/a", 2, 3.0),
            cgroup("/b", 3, 2.0),
            cgroup("/c", 4, 1.0),
        ]
    }

    #[test]
    fn the_selection_stays_on_its_cgroup() {
        let mut state = state(letters());
        press(&mut state, &[Action::Down, Action::Down]);
        assert_eq!(selected(&state), Some((1, "/b")));
        let mut moved = letters();
        moved[2] = cgroup("/b", 3, 0.5);
        state.update(snapshot(moved));
        assert_eq!(names(&state), ["/a", "/c", "/b"]);
        assert_eq!(selected(&state), Some((2, "/b")));
        press(&mut state, &[Action::SortPrevious]);
        assert_eq!(state.sort, SortKey::Cgroup);
        assert_eq!(selected(&state), Some((1, "/b")));
    }

    #[test]
    fn a_cgroup_of_the_same_name_is_another_one() {
        let mut state = state(letters());
        press(&mut state, &[Action::Down]);
        state.update(snapshot(vec![
            cgroup("/", 1, 0.0),
            cgroup("/b", 3, 9.0),
            cgroup("/a", 20, 3.0),
        ]));
        assert_eq!(selected(&state), Some((0, "/b")));
    }

    #[test]
    fn a_vanished_cgroup_leaves_the_selection_on_its_row() {
        let mut state = state(letters());
        press(&mut state, &[Action::Last]);
        assert_eq!(selected(&state), Some((2, "/c")));
        state.update(snapshot(letters()[..3].to_vec()));
        assert_eq!(selected(&state), Some((1, "/b")));
        state.update(snapshot(Vec::new()));
        assert_eq!(selected(&state), None);
        press(&mut state, &[Action::Down, Action::PageUp, Action::Last, Action::First]);
        assert_eq!(selected(&state), None);
    }

    #[test]
    fn the_page_follows_the_selection_only() {
        let cgroups = (1..=100).map(|id| cgroup(&format!("/{id:03}"), id, 0.0)).collect();
        let mut state = state(cgroups);
        assert_eq!(state.visible(10), 0..10);
        press(&mut state, &[Action::PageDown, Action::PageDown]);
        assert_eq!(selected(&state), Some((19, "/020")));
        assert_eq!(state.visible(10), 10..20);
        press(&mut state, &[Action::Last]);
        assert_eq!(state.visible(10), 90..100);
        assert_eq!(state.visible(40), 60..100);
        assert_eq!(state.visible(1000), 0..100);
        assert_eq!(state.visible(0), 99..100);
        press(&mut state, &[Action::First, Action::PageUp, Action::Up, Action::Up]);
        assert_eq!(selected(&state), None);
        assert_eq!(state.visible(10), 0..10);
    }

    #[test]
    fn a_pause_holds_the_view() {
        let mut state = state(letters());
        press(&mut state, &[Action::Pause]);
        state.update(snapshot(vec![cgroup("/new", 9, 0.0)]));
        assert_eq!(names(&state), ["/a", "/b", "/c"]);
        press(&mut state, &[Action::Pause]);
        assert_eq!(names(&state), ["/new"]);
    }

    #[test]
    fn any_key_closes_the_help() {
        let mut state = state(letters());
        for action in [None, Some(Action::Quit), Some(Action::Help), Some(Action::Down)] {
            press(&mut state, &[Action::Help]);
            assert!(state.help);
            assert!(state.apply(action).is_continue());
            assert!(!state.help);
            assert_eq!(selected(&state), None);
        }
        assert!(state.apply(Some(Action::Quit)).is_break());
        press(&mut state, &[Action::Help]);
        assert!(state.apply(Some(Action::Interrupt)).is_break());
    }

    #[test]
    fn the_interval_has_ends() {
        let mut state = State::new(Options {
            interval: Duration::from_millis(1500),
            ..Options::default()
        });
        press(&mut state, &[Action::Faster]);
        assert_eq!(state.interval, Duration::from_secs(1));
        press(&mut state, &[Action::Faster; 9]);
        assert_eq!(state.interval, MIN_INTERVAL);
        press(&mut state, &[Action::Slower; 20]);
        assert_eq!(state.interval, MAX_INTERVAL);
    }

    #[test]
    fn windows_have_figures_of_their_own() {
        let mut state = state(vec![cgroup("/a", 1, 3.0)]);
        let shown = |state: &State| state.sort.figure(&state.cgroups()[0], state.window);
        assert_eq!(shown(&state), Some(3.0));
        press(&mut state, &[Action::Window, Action::Window, Action::Window]);
        assert_eq!(shown(&state), Some(6.0));
    }
}
