//! What the view knows: the figures, what the reader chose, the line that is selected.

use std::{collections::HashSet, ops::Range, time::Duration};

use jiff::tz::TimeZone;
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
    /// Where the figure that is sorted by gets high next, or did before.
    Spike {
        /// The next one.
        forward: bool,
    },
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
    pub(super) zone: TimeZone,
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
    /// Ids of the cgroups whose names are no wider than that: each is looked at once, for with thousands it takes longer
    /// than all else.
    measured: HashSet<u64>,
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
            zone,
        } = options;
        Self {
            interval: interval.clamp(MIN_INTERVAL, MAX_INTERVAL),
            sort,
            reversed: false,
            window,
            zone,
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
            measured: HashSet::new(),
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
    pub(super) fn forget_widest(&mut self) {
        self.widest = 0;
        self.measured.clear();
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
        self.measure();
        if let Some(Selected { id, row }) = self.selected {
            let found = self
                .rows
                .iter()
                .position(|row| self.cgroup(*row).is_some_and(|cgroup| cgroup.id == id));
            self.put(found.unwrap_or(row));
        }
    }

    fn measure(&mut self) {
        if self.measured.len() > 2 * self.cgroups.len() {
            self.measured.clear();
        }
        let mut measured = std::mem::take(&mut self.measured);
        for row in &self.rows {
            if self.cgroup(*row).is_some_and(|cgroup| measured.insert(cgroup.id)) {
                self.widest = self.widest.max(self.name_width(*row));
            }
        }
        self.measured = measured;
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
