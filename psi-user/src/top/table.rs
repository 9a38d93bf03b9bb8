//! The table: which columns there is room for, and its lines.

use std::{fmt::Write as _, iter};

use ratatui::{
    style::Style,
    text::{Line, Span},
};

use super::{
    columns::{SortKey, Window},
    escape::{cut_middle, escape},
    order::Row,
    state::{INDENT, State},
    style::Palette,
};
use crate::model::CgroupPressure;

/// A name's room: at least this with one figure, this with more, and this if there is plenty.
const NAME_ALONE: usize = 8;
const NAME_SHORT: usize = 15;
const NAME_USUAL: usize = 24;

/// Room for 100.00, and for a title in one line with its arrow.
const FIGURE: usize = 6;
const FIGURE_WITH_TITLE: usize = 9;

/// The table's columns.
pub(super) struct Table {
    two_titles: bool,
    name: usize,
    /// Room for a figure.
    figure: usize,
    figures: Vec<Figure>,
    sort: SortKey,
    window: Window,
    palette: Palette,
}

/// A column with a figure.
#[derive(Clone, Copy)]
struct Figure {
    key: SortKey,
    /// What is left free before it: more where another resource begins.
    gap: usize,
}

impl Table {
    /// Takes in as many columns as `columns` of the screen have room for. Titles in two lines make narrow ones.
    pub(super) fn new(state: &State, columns: usize, two_titles: bool, palette: Palette) -> Self {
        let State { sort, window, .. } = *state;
        let figure = if two_titles { FIGURE } else { FIGURE_WITH_TITLE };
        let all = SortKey::figures().count();
        let fitting = (1..=all).rev().map(|count| first_figures(count, sort)).find(|figures| {
            let name = if figures.len() == 1 { NAME_ALONE } else { NAME_SHORT };
            name + taken(figures, figure) <= columns
        });
        let figures = fitting.unwrap_or_default();
        let name = state
            .widest()
            .max(NAME_USUAL)
            .min(columns.saturating_sub(taken(&figures, figure)));
        Self {
            two_titles,
            name,
            figure,
            figures,
            sort,
            window,
            palette,
        }
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
            name, figure, figures, ..
        } = self;
        let mut text = " ".repeat(*name);
        for group in figures.chunk_by(|a, b| a.key.resource() == b.key.resource()) {
            let [Figure { key, gap }, ..] = *group else { continue };
            let columns = taken(group, *figure) - gap;
            let title = format!(" {} ", key.resource());
            _ = write!(text, "{:gap$}{title:─^columns$}", "");
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
        let mut cgroup = SortKey::Cgroup.title();
        if self.sort == SortKey::Cgroup {
            cgroup.push('▲');
        }
        let figures = self.figures.iter().map(|&Figure { key, .. }| {
            let arrow = if key == self.sort { "▼" } else { "" };
            let title = if self.two_titles {
                key.line().to_owned()
            } else {
                key.title()
            };
            Span::styled(format!("{arrow}{title}"), style(key))
        });
        self.aligned(Span::styled(cgroup, style(SortKey::Cgroup)), figures)
    }

    /// The line of one cgroup.
    pub(super) fn line(&self, name: String, cgroup: &CgroupPressure) -> Line<'static> {
        let figures = self
            .figures
            .iter()
            .map(|Figure { key, .. }| match key.figure(cgroup, self.window) {
                Some(percent) => Span::styled(format!("{percent:.2}"), self.palette.figure(percent)),
                None => Span::styled("-", Palette::calm()),
            });
        self.aligned(Span::raw(name), figures)
    }

    /// The name that `row` shows, cut to its room.
    pub(super) fn name(&self, state: &State, row: Row) -> String {
        // Deep rows must not be all indentation.
        let indent = (row.depth * INDENT).min(self.name / 2);
        let name = escape(state.name(row));
        format!("{:indent$}{}", "", cut_middle(&name, self.name - indent))
    }

    /// Puts the name on the left, the figures on the right of their columns.
    fn aligned(&self, name: Span<'static>, figures: impl Iterator<Item = Span<'static>>) -> Line<'static> {
        let mut fill = self.name.saturating_sub(name.width());
        let mut spans = vec![name];
        for (column, figure) in self.figures.iter().zip(figures) {
            fill += column.gap + self.figure.saturating_sub(figure.width());
            spans.push(Span::styled(" ".repeat(fill), Style::new()));
            spans.push(figure);
            fill = 0;
        }
        Line::from(spans)
    }
}

/// The first `count` columns; the one that is sorted by takes the last one's place, if it is not among them.
fn first_figures(count: usize, sort: SortKey) -> Vec<Figure> {
    let mut keys: Vec<_> = SortKey::figures().take(count).collect();
    if sort != SortKey::Cgroup
        && !keys.contains(&sort)
        && let Some(last) = keys.last_mut()
    {
        *last = sort;
    }
    let before = iter::once(None).chain(keys.iter().copied().map(Some));
    let gaps = before.zip(&keys).map(|(before, key)| match before {
        Some(before) if before.resource() == key.resource() => 1,
        _ => 2,
    });
    keys.iter().zip(gaps).map(|(&key, gap)| Figure { key, gap }).collect()
}

/// What `figures` take with their gaps.
fn taken(figures: &[Figure], figure: usize) -> usize {
    figures.iter().map(|Figure { gap, .. }| gap + figure).sum()
}
