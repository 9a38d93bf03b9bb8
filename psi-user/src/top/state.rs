//! What the view knows: the figures, what the reader chose, the line that is selected.

use std::{collections::HashSet, ops::Range, time::Duration};

use ratatui::layout::Rect;

use super::{
    MAX_INTERVAL, MIN_INTERVAL, Options,
    columns::{Lines, SortKey, Window},
    escape::width,
    filter::Filter,
    names::label,
    order::{Branch, Order, Row, flat, tree},
    pane::Pane,
    player::{Place, Travel},
    prompt::Prompt,
    trail::Trails,
};
use crate::model::{CgroupPressure, Snapshot};

/// Columns by which a child is moved to the right of its parent.
pub(super) const INDENT: usize = 2;
/// Columns of the mark that tells whether a row is folded.
pub(super) const MARK: usize = 2;

/// What the reader asks of whoever shows the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Nothing,
    Quit,
    Redraw,
    Suspend,
    /// Whether the mouse is the view's, not the terminal's.
    Mouse(bool),
    Travel(Travel),
}

/// The state of the view.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own that a key turns"
)]
pub(super) struct State {
    pub(super) interval: Duration,
    pub(super) sort: SortKey,
    pub(super) reversed: bool,
    pub(super) window: Window,
    pub(super) lines: Lines,
    pub(super) tree: bool,
    pub(super) whole_names: bool,
    pub(super) mouse: bool,
    /// In a recording: stopped.
    pub(super) paused: bool,
    pub(super) help: bool,
    pub(super) filter: Filter,
    pub(super) prompt: Option<Prompt>,
    /// Something to tell until the next key.
    pub(super) message: Option<String>,
    pub(super) pane: Option<Pane>,
    /// Whether keys move the pane's lines.
    pub(super) in_pane: bool,
    /// In a recording.
    pub(super) place: Option<Place>,
    pub(super) trails: Trails,
    /// Where things were drawn.
    pub(super) hits: Hits,
    pub(super) folded: HashSet<u64>,
    /// What is shown; its cgroups are in `cgroups`.
    snapshot: Option<Snapshot>,
    /// Those of the snapshot, and those that have just gone.
    cgroups: Vec<CgroupPressure>,
    gone: HashSet<u64>,
    /// The newest, not shown while paused.
    held: Option<Snapshot>,
    rows: Vec<Row>,
    widest: usize,
    selected: Option<Selected>,
    /// First row that is shown.
    first: usize,
    /// Whether the page has to have the selected row; not after the wheel was turned.
    follow: bool,
    /// Rows of a page, as of the last frame.
    page: usize,
}

/// The selected cgroup.
#[derive(Clone, Copy, Debug)]
struct Selected {
    id: u64,
    row: usize,
}

/// Where things were drawn, for the mouse.
#[derive(Debug, Default)]
pub(super) struct Hits {
    /// Lines with titles.
    pub(super) titles: Rect,
    /// Columns below the titles.
    pub(super) columns: Vec<(Range<u16>, SortKey)>,
    pub(super) rows: Rect,
    pub(super) pane: Rect,
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
            reversed: false,
            window,
            lines: Lines::default(),
            tree,
            whole_names: false,
            mouse: true,
            paused: false,
            help: false,
            filter: Filter::default(),
            prompt: None,
            message: None,
            pane: None,
            in_pane: false,
            place: None,
            trails: Trails::default(),
            hits: Hits::default(),
            folded: HashSet::new(),
            snapshot: None,
            cgroups: Vec::new(),
            gone: HashSet::new(),
            held: None,
            rows: Vec::new(),
            widest: 0,
            selected: None,
            first: 0,
            follow: true,
            page: 1,
        }
    }

    /// Takes new figures.
    pub(super) fn update(&mut self, snapshot: Snapshot) {
        self.trails.record(&snapshot, self.pane.as_ref().map(|pane| pane.id));
        if self.paused && self.place.is_none() && self.snapshot.is_some() {
            self.held = Some(snapshot);
        } else {
            self.show(snapshot);
        }
    }

    fn show(&mut self, mut snapshot: Snapshot) {
        let mut shown = std::mem::take(&mut snapshot.cgroups);
        // Not when a recording is gone through backwards: these are not there yet.
        let is_later = self.snapshot.as_ref().is_some_and(|old| old.time_ns < snapshot.time_ns);
        let old = std::mem::take(&mut self.cgroups);
        let vanished: Vec<_> = if is_later {
            let ids: HashSet<u64> = shown.iter().map(|cgroup| cgroup.id).collect();
            let is_gone = |cgroup: &CgroupPressure| !ids.contains(&cgroup.id) && !self.gone.contains(&cgroup.id);
            let mut vanished: Vec<_> = old.into_iter().filter(is_gone).collect();
            if !vanished.is_empty() {
                // One that was made anew takes the old one's place.
                let paths: HashSet<&str> = shown.iter().map(|cgroup| cgroup.path.as_str()).collect();
                vanished.retain(|cgroup| !paths.contains(cgroup.path.as_str()));
            }
            vanished
        } else {
            Vec::new()
        };
        self.gone = vanished.iter().map(|cgroup| cgroup.id).collect();
        if !vanished.is_empty() {
            shown.extend(vanished);
            shown.sort_by(|a, b| a.path.split('/').cmp(b.path.split('/')));
        }
        self.cgroups = shown;
        self.snapshot = Some(snapshot);
        self.rebuild();
        if let Some(pane) = &mut self.pane {
            pane.updated(&self.cgroups, &self.gone);
        }
    }

    /// Ends a pause: what came meanwhile is shown.
    pub(super) fn catch_up(&mut self) {
        if let Some(held) = self.held.take() {
            self.show(held);
        }
    }

    /// All but the cgroups.
    pub(super) const fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    /// Number of cgroups that exist.
    pub(super) fn count(&self) -> usize {
        self.cgroups.len() - self.gone.len()
    }

    /// The hierarchy's root.
    pub(super) fn root(&self) -> Option<&CgroupPressure> {
        self.cgroups.iter().find(|cgroup| cgroup.level == 0)
    }

    /// The selected row and its cgroup.
    pub(super) fn selected(&self) -> Option<(usize, &CgroupPressure)> {
        let Selected { row, .. } = self.selected?;
        Some((row, self.cgroup(*self.rows.get(row)?)?))
    }

    pub(super) fn selected_row(&self) -> Option<Row> {
        self.rows.get(self.selected?.row).copied()
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(super) fn cgroup(&self, row: Row) -> Option<&CgroupPressure> {
        self.cgroups.get(row.index)
    }

    /// Whether the cgroup with this id has just gone.
    pub(super) fn is_gone(&self, id: u64) -> bool {
        self.gone.contains(&id)
    }

    /// Columns that the longest name takes. Does not shrink, or else all columns would move as cgroups come and go.
    pub(super) const fn widest(&self) -> usize {
        self.widest
    }

    /// Has the room for names follow what is shown from now on.
    pub(super) const fn forget_widest(&mut self) {
        self.widest = 0;
    }

    pub(super) const fn page(&self) -> usize {
        self.page
    }

    /// The rows that a page of `page` rows shows: with the selected one, else from where the wheel took it.
    pub(super) fn visible(&mut self, page: usize) -> Range<usize> {
        let page = page.max(1);
        self.page = page;
        let last = self.rows.len().saturating_sub(page);
        self.first = match self.selected {
            Some(Selected { row, .. }) if self.follow => self.first.clamp((row + 1).saturating_sub(page), row),
            None if self.follow => 0,
            _ => self.first,
        }
        .min(last);
        self.first..self.rows.len().min(self.first + page)
    }

    /// Moves the page, not the selection.
    pub(super) fn scroll(&mut self, rows: isize) {
        self.first = self.first.saturating_add_signed(rows);
        self.follow = false;
    }

    /// First row of the page.
    pub(super) const fn first(&self) -> usize {
        self.first
    }

    /// Orders the rows anew; the selection stays on its cgroup, or on its row if the cgroup is gone.
    pub(super) fn rebuild(&mut self) {
        let order = Order {
            key: self.sort,
            window: self.window,
            reversed: self.reversed,
            filter: &self.filter,
            folded: &self.folded,
        };
        let by = if self.tree { tree } else { flat };
        self.rows = by(&self.cgroups, order);
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
            self.put(found.unwrap_or(row));
        }
    }

    fn name_width(&self, row: Row) -> usize {
        let mark = if self.tree { MARK } else { 0 };
        row.depth * INDENT + mark + width(&label(self.name(row), self.whole_names))
    }

    /// The name that `row` shows, as it is: not escaped.
    pub(super) fn name(&self, row: Row) -> &str {
        self.cgroup(row)
            .and_then(|cgroup| cgroup.path.get(row.name_at..))
            .unwrap_or_default()
    }

    pub(super) fn step(&mut self, rows: isize) {
        let row = match self.selected {
            Some(Selected { row, .. }) => row.saturating_add_signed(rows),
            None if rows > 0 => rows.unsigned_abs() - 1,
            None => return,
        };
        self.select(row);
    }

    pub(super) fn select(&mut self, row: usize) {
        self.follow = true;
        self.put(row);
    }

    pub(super) const fn select_none(&mut self) {
        self.follow = true;
        self.selected = None;
    }

    fn put(&mut self, row: usize) {
        let row = row.min(self.rows.len().saturating_sub(1));
        self.selected = self
            .rows
            .get(row)
            .and_then(|found| self.cgroup(*found))
            .map(|&CgroupPressure { id, .. }| Selected { id, row });
    }

    /// The row of the selected row's parent, in the tree.
    pub(super) fn parent_row(&self) -> Option<usize> {
        let (at, _) = self.selected()?;
        let depth = self.rows.get(at)?.depth;
        self.rows[..at].iter().rposition(|row| row.depth < depth)
    }

    /// Ids of the children of `row` that have children.
    pub(super) fn branches_below(&self, at: usize) -> Vec<u64> {
        let Some(row) = self.rows.get(at) else {
            return Vec::new();
        };
        let below = self.rows[at + 1..].iter().take_while(|below| below.depth > row.depth);
        below
            .filter(|below| below.depth == row.depth + 1 && below.branch != Branch::Leaf)
            .filter_map(|below| Some(self.cgroup(*below)?.id))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::{
        fixture::{cgroup, snapshot},
        keys::Action,
    };

    fn state(cgroups: Vec<CgroupPressure>) -> State {
        let mut state = State::new(Options::default());
        state.update(snapshot(cgroups));
        state.visible(10);
        state
    }

    /// Takes these figures a second after the last ones.
    fn later(state: &mut State, cgroups: Vec<CgroupPressure>) {
        let time_ns = state.snapshot().map_or(0, |snapshot| snapshot.time_ns + 1_000_000_000);
        state.update(Snapshot {
            time_ns,
            ..snapshot(cgroups)
        });
    }

    fn press(state: &mut State, actions: &[Action]) {
        for action in actions {
            assert_ne!(state.apply(Some(*action)), Asked::Quit);
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
        later(&mut state, moved);
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
        let made_anew = vec![cgroup("/", 1, 0.0), cgroup("/b", 3, 9.0), cgroup("/a", 20, 3.0)];
        later(&mut state, made_anew);
        assert_eq!(names(&state), ["/b", "/a", "/c"]);
        assert_eq!(selected(&state), Some((0, "/b")));
    }

    #[test]
    fn a_vanished_cgroup_leaves_the_selection_on_its_row() {
        let mut state = state(letters());
        press(&mut state, &[Action::Last]);
        assert_eq!(selected(&state), Some((2, "/c")));
        // It fades first.
        later(&mut state, letters()[..3].to_vec());
        assert_eq!(selected(&state), Some((2, "/c")));
        assert!(state.is_gone(4));
        assert_eq!(state.count(), 3);
        later(&mut state, letters()[..3].to_vec());
        assert_eq!(names(&state), ["/a", "/b"]);
        assert_eq!(selected(&state), Some((1, "/b")));
        later(&mut state, Vec::new());
        later(&mut state, Vec::new());
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
        later(&mut state, vec![cgroup("/new", 9, 0.0)]);
        assert_eq!(names(&state), ["/a", "/b", "/c"]);
        press(&mut state, &[Action::Pause]);
        assert_eq!(names(&state), ["/a", "/b", "/c", "/new"]);
        assert_eq!(state.count(), 1);
    }

    #[test]
    fn nothing_fades_when_time_goes_back() {
        let mut state = state(letters());
        state.update(Snapshot {
            time_ns: 1,
            ..snapshot(letters()[..2].to_vec())
        });
        assert_eq!(names(&state), ["/a"]);
    }

    #[test]
    fn the_wheel_moves_the_page_alone() {
        let cgroups = (1..=100).map(|id| cgroup(&format!("/{id:03}"), id, 0.0)).collect();
        let mut state = state(cgroups);
        press(&mut state, &[Action::Down]);
        state.scroll(50);
        assert_eq!(state.visible(10), 50..60);
        assert_eq!(selected(&state), Some((0, "/001")));
        state.scroll(500);
        assert_eq!(state.visible(10), 90..100);
        state.scroll(-1);
        assert_eq!(state.visible(10), 89..99);
        press(&mut state, &[Action::Down]);
        assert_eq!(state.visible(10), 1..11);
    }

    #[test]
    fn any_key_closes_the_help() {
        let mut state = state(letters());
        for action in [None, Some(Action::Quit), Some(Action::Help), Some(Action::Down)] {
            press(&mut state, &[Action::Help]);
            assert!(state.help);
            assert_eq!(state.apply(action), Asked::Nothing);
            assert!(!state.help);
            assert_eq!(selected(&state), None);
        }
        assert_eq!(state.apply(Some(Action::Quit)), Asked::Quit);
        press(&mut state, &[Action::Help]);
        assert_eq!(state.apply(Some(Action::Interrupt)), Asked::Quit);
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
        let shown = |state: &State| state.sort.figure(&state.cgroups[0], state.window);
        assert_eq!(shown(&state), Some(3.0));
        press(&mut state, &[Action::Window, Action::Window, Action::Window]);
        assert_eq!(shown(&state), Some(6.0));
    }
}
