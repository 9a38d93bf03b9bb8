//! The view: a state and how it is drawn.

use crossterm::event::Event;
use ratatui::{buffer::Buffer, layout::Rect, style::Style, text::Line};

use super::{
    Options,
    columns::SortKey,
    detail, glyph, header,
    inspect::Inspection,
    keys::{HELP, REPLAY_HELP},
    player::Place,
    state::{Asked, Hits, State},
    style::{HIGH, Palette},
    table::Table,
};
use crate::{fields::Stall, model::Snapshot, record::Spikes};

/// Below this, a table is of no use.
const MIN_COLUMNS: u16 = 20;
const MIN_LINES: u16 = 4;

/// Heights from which a line is shown, the most important first.
const QUALITY_FROM: u16 = 7;
const SOURCES_FROM: u16 = 8;
const TWO_TITLES_FROM: u16 = 10;
const FOOTER_FROM: u16 = 12;

/// From here on, details stand beside the table, which needs the rest.
const BESIDE_FROM: u16 = 170;
const TABLE_BESIDE: u16 = 84;
/// From here on, details stand below the table, with so many parts of this many.
const BELOW_FROM: u16 = 20;
const BELOW: (u16, u16) = (2, 3);

/// Room for a key's name in the help.
const KEY: usize = 15;

/// The live view, or a replayed one, apart from any terminal.
#[derive(Debug)]
pub struct View {
    pub(super) state: State,
    palette: Palette,
}

impl View {
    /// A view without figures yet.
    pub fn new(options: Options, palette: Palette) -> Self {
        Self {
            state: State::new(options),
            palette,
        }
    }

    /// Takes new figures.
    pub fn update(&mut self, snapshot: Snapshot) {
        self.state.update(snapshot);
    }

    /// Takes a key, the mouse, or a new size.
    pub fn event(&mut self, event: &Event) {
        self.state.event(event);
    }

    pub(super) fn asked(&mut self, event: &Event) -> Asked {
        self.state.event(event)
    }

    /// Path of the cgroup whose tasks and kernel figures are to be shown and are not known as of now.
    pub(super) fn wants(&self) -> Option<&str> {
        let pane = self.state.pane.as_ref().filter(|pane| pane.wants())?;
        Some(&pane.cgroup.path)
    }

    /// Takes what is told of the cgroup that the view [wants](Self::wants) to know of.
    pub(super) fn inspected(&mut self, inspection: Option<Inspection>, at_ns: u64) {
        if let Some(pane) = &mut self.state.pane {
            pane.inspected(inspection, at_ns);
        }
    }

    /// The view shows a frame of a recording.
    pub(super) fn at(&mut self, place: Place) {
        if self.state.place.is_none() {
            // A recording stands still until it is played.
            self.state.paused = true;
        }
        self.state.place = Some(place);
    }

    /// What spikes are looked for in: the figure that is sorted by, of the selected cgroup or of any.
    pub(super) fn spikes(&self) -> Spikes {
        let State { sort, window, .. } = &self.state;
        let stall = match sort {
            SortKey::Cgroup => Stall::CPU_SOME,
            SortKey::Stall(stall) => *stall,
        };
        Spikes {
            cgroup: self.state.selected().map(|(_, cgroup)| cgroup.path.clone()),
            figure: window.of(stall),
            threshold: Some(HIGH),
        }
    }

    /// Draws all of it.
    pub fn draw(&mut self, buffer: &mut Buffer) {
        let Self { state, palette } = self;
        draw(buffer, state, *palette);
        if !palette.unicode {
            glyph::to_ascii(buffer);
        }
    }
}

fn draw(buffer: &mut Buffer, state: &mut State, palette: Palette) {
    let area = buffer.area;
    state.hits = Hits::default();
    if area.width < MIN_COLUMNS || area.height < MIN_LINES {
        tiny(buffer, state, palette);
        return;
    }

    let mut lines = Lines { free: area, buffer };
    let columns = usize::from(area.width);
    lines.top(&header::status(state, columns));
    let snapshot = state.snapshot();
    if area.height >= SOURCES_FROM {
        let sources = snapshot.map(|snapshot| header::sources(&snapshot.source, columns));
        lines.top(&sources.unwrap_or_default());
    }
    if area.height >= QUALITY_FROM {
        let quality = snapshot.map(|snapshot| header::quality(&snapshot.quality, palette, columns));
        lines.top(&quality.unwrap_or_default());
    }
    match header::urgent(state, palette, columns) {
        Some(line) => lines.bottom(&line),
        None if area.height >= FOOTER_FROM => lines.bottom(&header::footer(state, columns)),
        None => {}
    }

    let body = lines.free;
    let (table, pane) = match state.pane {
        None => (body, Rect::default()),
        Some(_) if body.width >= BESIDE_FROM => {
            let table = Rect {
                width: TABLE_BESIDE.max(body.width / 2 - 20),
                ..body
            };
            // A blank column between both.
            let x = table.right() + 1;
            (table, Rect::new(x, body.y, body.right() - x, body.height))
        }
        Some(_) if body.height >= BELOW_FROM => {
            let height = body.height * BELOW.0 / BELOW.1;
            let (table, pane) = (body.height - height, body.bottom() - height);
            (
                Rect { height: table, ..body },
                Rect {
                    y: pane,
                    height,
                    ..body
                },
            )
        }
        Some(_) => (Rect { height: 0, ..body }, body),
    };
    let two_titles = area.height >= TWO_TITLES_FROM;
    let columns = Table::new(state, usize::from(table.width), two_titles, palette);
    rows(&mut Lines { free: table, buffer }, state, &columns);
    if !pane.is_empty() {
        state.hits.pane = pane;
        detail::draw(buffer, pane, state, palette);
    }

    if state.help {
        help(buffer, state.place.is_some());
    }
}

/// The part of the screen that is still free.
struct Lines<'a> {
    free: Rect,
    buffer: &'a mut Buffer,
}

impl Lines<'_> {
    /// Draws at the top of what is free; says where.
    fn top(&mut self, line: &Line<'_>) -> Rect {
        let Self { free, buffer } = self;
        let taken = Rect {
            height: free.height.min(1),
            ..*free
        };
        if free.height > 0 {
            buffer.set_line(free.x, free.y, line, free.width);
            free.y += 1;
            free.height -= 1;
        }
        taken
    }

    /// Draws at the bottom of what is free.
    fn bottom(&mut self, line: &Line<'_>) {
        let Self { free, buffer } = self;
        if free.height > 0 {
            free.height -= 1;
            buffer.set_line(free.x, free.bottom(), line, free.width);
        }
    }
}

/// What a terminal without room for a table shows: the machine's figures, as far as they fit.
fn tiny(buffer: &mut Buffer, state: &State, palette: Palette) {
    let area = buffer.area;
    let mut lines = Lines { free: area, buffer };
    let Some(root) = state.root() else {
        lines.top(&Line::styled("collecting…", Palette::calm()));
        return;
    };
    for stall in [Stall::CPU_SOME, Stall::MEMORY_SOME, Stall::IO_SOME, Stall::IRQ_FULL] {
        let figure = state.window.of(stall).of(root);
        let text = figure.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.2}"));
        let style = figure.map_or(Palette::calm(), |percent| palette.figure(percent));
        lines.top(&Line::styled(format!("{:3} {text:>6}", stall.resource.title()), style));
    }
}

fn rows(lines: &mut Lines<'_>, state: &mut State, table: &Table) {
    let area = lines.free;
    for titles in table.titles() {
        lines.top(&titles);
    }
    state.hits.titles = Rect {
        height: lines.free.y - area.y,
        ..area
    };
    state.hits.columns = table.hits(area.x);
    if let Some(root) = state.root() {
        lines.top(&table.line("system".to_owned(), root));
    }
    if state.rows().is_empty() {
        let why = if state.snapshot().is_none() {
            "collecting…"
        } else if state.filter.is_active() {
            "no cgroup matches"
        } else {
            "no cgroups below the root"
        };
        lines.top(&Line::styled(why, Palette::calm()));
    }

    state.hits.rows = lines.free;
    if lines.free.height == 0 {
        return;
    }
    let visible = state.visible(usize::from(lines.free.height));
    let selected = state.selected().map(|(row, _)| row);
    for (at, row) in state.rows().iter().enumerate().take(visible.end).skip(visible.start) {
        let Some(cgroup) = state.cgroup(*row) else { continue };
        let is_gone = state.is_gone(cgroup.id);
        let area = lines.top(&table.line(table.name(state, *row, is_gone), cgroup));
        // Over the figures' own styles, so that the whole line stands out.
        if selected == Some(at) {
            lines.buffer.set_style(area, Palette::chosen());
        }
        if is_gone {
            lines.buffer.set_style(area, Palette::gone());
        } else if !row.is_match {
            lines.buffer.set_style(area, Palette::calm());
        }
    }
}

/// The keys, over all else.
fn help(buffer: &mut Buffer, replay: bool) {
    let recorded: &[_] = if replay { &REPLAY_HELP } else { &[] };
    let text: Vec<String> = recorded
        .iter()
        .chain(&HELP)
        .map(|(key, does)| format!("{key:KEY$} {does}"))
        .collect();
    let area = buffer.area;
    let columns = text.iter().map(String::len).max().unwrap_or_default() as u16;
    let width = (columns + 4).min(area.width);
    let height = (text.len() as u16 + 2).min(area.height);
    let (x, y) = (area.x + (area.width - width) / 2, area.y + (area.height - height) / 2);
    let inner = usize::from(width.saturating_sub(2));
    let title = "─ Keys: any key closes ";
    let mut lines = vec![format!("┌{title:─<inner$}┐")];
    let room = usize::from(height.saturating_sub(2));
    lines.extend(
        text.iter()
            .take(room)
            .map(|line| format!("│ {line:0$.0$} │", inner.saturating_sub(2))),
    );
    lines.push(format!("└{:─<inner$}┘", ""));
    for (line, y) in lines.iter().zip(y..area.bottom()) {
        buffer.set_style(Rect::new(x, y, width, 1), Style::reset());
        buffer.set_stringn(x, y, line, usize::from(width), Style::new());
    }
}
