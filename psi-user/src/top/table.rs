//! The table: which columns there is room for, and its lines.

use std::{fmt::Write as _, iter, ops::Range};

use ratatui::{
    style::Style,
    text::{Line, Span},
};

use super::{
    columns::{SortKey, Window},
    escape::cut_middle,
    glyph,
    names::label,
    order::{Branch, Row},
    state::{INDENT, MARK, State},
    style::Palette,
};
use crate::{fields::Stall, model::CgroupPressure};

/// A name's room: at least this with one figure, this with more, and this if there is plenty.
const NAME_ALONE: usize = 8;
const NAME_SHORT: usize = 14;
const NAME_USUAL: usize = 24;

/// Room for 100.00, and for a title in one line with its arrow.
const FIGURE: usize = 6;
const FIGURE_WITH_TITLE: usize = 9;

/// A bar upwards, and the shortest and longest to the right with the blank before them.
const BAR_UPWARDS: usize = 1;
const SHORTEST_BAR: usize = 5;
const LONGEST_BAR: usize = 14;

/// After the name of a cgroup that is no more.
const GONE: &str = " (gone)";

/// The table's columns.
pub(super) struct Table {
    two_titles: bool,
    name: usize,
    /// Room for a figure, and for its bar behind it.
    figure: usize,
    bar: usize,
    figures: Vec<Figure>,
    sort: SortKey,
    reversed: bool,
    window: Window,
    palette: Palette,
}

/// A column with a figure.
#[derive(Clone, Copy)]
struct Figure {
    stall: Stall,
    /// What is left free before it: more where another resource begins.
    gap: usize,
}

impl Table {
    /// Takes in as many columns as `columns` of the screen have room for. Titles in two lines make narrow ones.
    pub(super) fn new(state: &State, columns: usize, two_titles: bool, palette: Palette) -> Self {
        let State {
            sort, window, reversed, ..
        } = *state;
        let figure = if two_titles { FIGURE } else { FIGURE_WITH_TITLE };
        let all: Vec<_> = Stall::ALL.into_iter().filter(|stall| state.lines.has(*stall)).collect();
        let fitting = (1..=all.len())
            .rev()
            .map(|count| first_figures(&all, count, sort))
            .find(|figures| {
                let name = if figures.len() == 1 { NAME_ALONE } else { NAME_SHORT };
                name + taken(figures, figure + BAR_UPWARDS) <= columns
            });
        let mut figures = fitting.unwrap_or_default();
        let room = columns.saturating_sub(taken(&figures, figure + BAR_UPWARDS));
        let mut name = state.widest().max(NAME_USUAL).min(room);
        let mut bar = BAR_UPWARDS;
        if !figures.is_empty() {
            // What names leave free makes bars longer, which then need a blank behind them.
            let longer = (BAR_UPWARDS + (room - name) / figures.len()).saturating_sub(1);
            if longer >= SHORTEST_BAR {
                bar = longer.min(LONGEST_BAR);
                for figure in &mut figures {
                    figure.gap += 1;
                }
                name = name.min(columns.saturating_sub(taken(&figures, figure + bar)));
            }
        }
        Self {
            two_titles,
            name,
            figure,
            bar,
            figures,
            sort,
            reversed,
            window,
            palette,
        }
    }

    /// Where the columns are.
    pub(super) fn hits(&self, x: u16) -> Vec<(Range<u16>, SortKey)> {
        let mut end = x + self.name as u16;
        let mut hits = vec![(x..end, SortKey::Cgroup)];
        for Figure { stall, gap } in &self.figures {
            let start = end;
            end += (gap + self.figure + self.bar) as u16;
            hits.push((start..end, SortKey::Stall(*stall)));
        }
        hits
    }

    /// One line or two.
    pub(super) fn titles(&self) -> impl Iterator<Item = Line<'static>> {
        self.two_titles
            .then(|| self.groups())
            .into_iter()
            .chain(iter::once(self.columns()))
    }

    /// The resources, each above its columns.
    fn groups(&self) -> Line<'static> {
        let Self {
            name,
            figure,
            bar,
            figures,
            ..
        } = self;
        let mut text = " ".repeat(*name);
        let mut fill = 0;
        for group in figures.chunk_by(|a, b| a.stall.resource == b.stall.resource) {
            let [Figure { stall, gap }, ..] = *group else { continue };
            // Bars upwards stand in the gap to the next column.
            let over_bar = if *bar == BAR_UPWARDS { 0 } else { *bar };
            let columns = taken(group, figure + bar) - gap - (bar - over_bar);
            let title = format!(" {} ", stall.resource.title());
            fill += gap;
            _ = write!(text, "{:fill$}{title:─^columns$}", "");
            fill = bar - over_bar;
        }
        Line::styled(text, Palette::calm())
    }

    /// The columns' titles; their resource may stand above.
    fn columns(&self) -> Line<'static> {
        let style = |key| {
            if key == self.sort {
                Palette::chosen()
            } else {
                Palette::title()
            }
        };
        // Names begin with the lowest.
        let arrow = if (self.sort == SortKey::Cgroup) == self.reversed {
            "▼"
        } else {
            "▲"
        };
        let mut cgroup = SortKey::Cgroup.title();
        if self.sort == SortKey::Cgroup {
            cgroup.push_str(arrow);
        }
        let figures = self.figures.iter().map(|&Figure { stall, .. }| {
            let key = SortKey::Stall(stall);
            let arrow = if key == self.sort { arrow } else { "" };
            let title = if self.two_titles {
                stall.kind.name().to_owned()
            } else {
                stall.title()
            };
            (Span::styled(format!("{arrow}{title}"), style(key)), 0.0)
        });
        self.aligned(Span::styled(cgroup, style(SortKey::Cgroup)), figures)
    }

    /// The line of one cgroup.
    pub(super) fn line(&self, name: String, cgroup: &CgroupPressure) -> Line<'static> {
        let figures = self
            .figures
            .iter()
            .map(|Figure { stall, .. }| match self.window.of(*stall).of(cgroup) {
                Some(percent) => (
                    Span::styled(format!("{percent:.2}"), self.palette.figure(percent)),
                    percent,
                ),
                None => (Span::styled("-", Palette::calm()), 0.0),
            });
        self.aligned(Span::raw(name), figures)
    }

    /// The name that `row` shows, cut to its room.
    pub(super) fn name(&self, state: &State, row: Row, is_gone: bool) -> String {
        // Deep rows must not be all indentation.
        let indent = (row.depth * INDENT).min(self.name / 2);
        let mark = match row.branch {
            _ if !state.tree => "",
            Branch::Leaf => "  ",
            Branch::Open => "▾ ",
            Branch::Folded => "▸ ",
        };
        let name = label(state.name(row), state.whole_names);
        let gone = if is_gone { GONE } else { "" };
        let taken = indent + if state.tree { MARK } else { 0 } + gone.len();
        let name = cut_middle(&name, self.name.saturating_sub(taken));
        format!("{:indent$}{mark}{name}{gone}", "")
    }

    /// Puts the name on the left, the figures on the right of their columns, and each one's bar behind it.
    fn aligned(&self, name: Span<'static>, figures: impl Iterator<Item = (Span<'static>, f64)>) -> Line<'static> {
        let mut fill = self.name.saturating_sub(name.width());
        let mut spans = vec![name];
        for (column, (figure, percent)) in self.figures.iter().zip(figures) {
            fill += column.gap + self.figure.saturating_sub(figure.width());
            spans.push(Span::styled(" ".repeat(fill), Style::new()));
            spans.push(figure);
            let bar = match self.bar {
                BAR_UPWARDS => glyph::bar(percent, BAR_UPWARDS),
                longer => format!(" {}", glyph::bar(percent, longer - 1)),
            };
            spans.push(Span::styled(bar, self.palette.bar(percent)));
            fill = 0;
        }
        Line::from(spans)
    }
}

/// The first `count` columns of `all`; the one that is sorted by takes the last one's place, if it is not among them.
fn first_figures(all: &[Stall], count: usize, sort: SortKey) -> Vec<Figure> {
    let mut stalls = all[..count].to_vec();
    if let SortKey::Stall(sort) = sort
        && !stalls.contains(&sort)
        && let Some(last) = stalls.last_mut()
    {
        *last = sort;
    }
    let before = iter::once(None).chain(stalls.iter().copied().map(Some));
    let gaps = before.zip(&stalls).map(|(before, stall)| match before {
        Some(before) if before.resource == stall.resource => 0,
        _ => 1,
    });
    let figure = |(&stall, gap)| Figure { stall, gap };
    stalls.iter().zip(gaps).map(figure).collect()
}

/// What `figures` take with their gaps; `cell` for each figure and its bar.
fn taken(figures: &[Figure], cell: usize) -> usize {
    figures.iter().map(|Figure { gap, .. }| gap + cell).sum()
}
