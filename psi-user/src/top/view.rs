//! Draws the state.

use ratatui::{
    Frame,
    buffer::Buffer,
    layout::Rect,
    text::Line,
    widgets::{Block, Clear, Paragraph},
};

use super::{header, keys::HELP, state::State, style::Palette, table::Table};

/// Below this, nothing can be told.
const MIN_COLUMNS: u16 = 20;
const MIN_LINES: u16 = 4;

/// Heights from which a line is shown, the most important first.
const QUALITY_FROM: u16 = 7;
const SOURCES_FROM: u16 = 8;
const TWO_TITLES_FROM: u16 = 10;
const FOOTER_FROM: u16 = 12;

/// Room for a key's name in the help.
const KEY: usize = 13;

/// Draws all of `state`.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut State, palette: Palette) {
    let area = frame.area();
    if area.width < MIN_COLUMNS || area.height < MIN_LINES {
        frame.render_widget(Line::from("terminal too small"), area);
        return;
    }

    let mut lines = Lines {
        free: area,
        buffer: frame.buffer_mut(),
    };
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
    if area.height >= FOOTER_FROM {
        lines.bottom(&header::footer(state, columns));
    }
    let table = Table::new(state, columns, area.height >= TWO_TITLES_FROM, palette);
    rows(&mut lines, state, &table);

    if state.help {
        help(frame);
    }
}

/// The part of the screen that is still free.
struct Lines<'a> {
    free: Rect,
    buffer: &'a mut Buffer,
}

impl Lines<'_> {
    /// Draws at the top of what is free.
    fn top(&mut self, line: &Line<'_>) {
        let Self { free, buffer } = self;
        if free.height > 0 {
            buffer.set_line(free.x, free.y, line, free.width);
            free.y += 1;
            free.height -= 1;
        }
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

fn rows(lines: &mut Lines<'_>, state: &mut State, table: &Table) {
    for titles in table.titles() {
        lines.top(&titles);
    }
    if let Some(root) = state.root() {
        lines.top(&table.line("system".to_owned(), root));
    }
    if state.rows().is_empty() {
        let why = if state.snapshot().is_some() {
            "no cgroups below the root"
        } else {
            "collecting…"
        };
        lines.top(&Line::styled(why, Palette::calm()));
    }

    let visible = state.visible(usize::from(lines.free.height));
    let selected = state.selected().map(|(row, _)| row);
    for (at, row) in state.rows().iter().enumerate().take(visible.end).skip(visible.start) {
        let Some(cgroup) = state.cgroup(*row) else { continue };
        let line = table.line(table.name(state, *row), cgroup);
        // Over the figures' own styles, so that the whole line stands out.
        let chosen = selected == Some(at);
        lines.top(&if chosen { reversed(line) } else { line });
    }
}

fn reversed(mut line: Line<'static>) -> Line<'static> {
    for span in &mut line.spans {
        span.style = span.style.patch(Palette::chosen());
    }
    line
}

/// The keys, over all else.
fn help(frame: &mut Frame<'_>) {
    let text: Vec<Line<'_>> = HELP
        .iter()
        .map(|(key, does)| Line::from(format!("{key:KEY$} {does}")))
        .collect();
    let columns = text.iter().map(Line::width).max().unwrap_or_default() as u16;
    let area = frame.area();
    let (width, height) = ((columns + 4).min(area.width), (text.len() as u16 + 2).min(area.height));
    let area = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    let block = Block::bordered().title(" Keys: any key closes ");
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(text).block(block), area);
}

#[cfg(test)]
mod tests {
    use ratatui::{
        Terminal,
        backend::TestBackend,
        style::{Color, Modifier},
    };

    use super::*;
    use crate::{
        model::{CgroupPressure, Quality, Snapshot},
        top::{
            Options,
            columns::SortKey,
            fixture::{cgroup, snapshot, unmeasured},
            keys::Action,
        },
    };

    fn state(snapshot: Snapshot) -> State {
        let mut state = State::new(Options::default());
        state.update(snapshot);
        state
    }

    fn buffer(state: &mut State, width: u16, height: u16, color: bool) -> Buffer {
        let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height));
        let Ok(_) = terminal.draw(|frame| draw(frame, state, Palette::new(color)));
        terminal.backend().buffer().clone()
    }

    /// The screen's lines without what is blank at their ends.
    fn screen(state: &mut State, width: u16, height: u16) -> Vec<String> {
        let buffer = buffer(state, width, height, false);
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(|y| line(y).trim_end().to_owned()).collect()
    }

    fn machine() -> Vec<CgroupPressure> {
        vec![
            cgroup("/", 1, 12.5),
            cgroup("/system.slice", 2, 3.0),
            cgroup("/system.slice/a-rather-long-name-of-a-service.service", 3, 99.994),
            cgroup("/system.slice/short.service", 4, 0.0),
            unmeasured("/user.slice", 5, 20.0),
        ]
    }

    fn press(state: &mut State, actions: &[Action]) {
        for action in actions {
            assert!(state.apply(Some(*action)).is_continue());
        }
    }

    const NAME: &str = concat!("psitrace ", env!("CARGO_PKG_VERSION"));

    #[test]
    fn the_usual_size_shows_all() {
        let mut state = state(snapshot(machine()));
        let screen = screen(&mut state, 80, 24);
        assert_eq!(
            screen[..10],
            [
                &format!("{NAME}  03:04:05 UTC  v2  5 cgroups  every 1 s  avg10  sort cpu some"),
                "memory: fentry  irq: softirq irq_handler",
                "missed 0  repaired 0  drift 0  storage failures 0  without slot 0",
                "                             ──── cpu ────  ──── mem ────  ──── io ─────   irq ─",
                "cgroup                        ▼some   full    some   full    some   full    full",
                "system                        12.50   6.25    0.00   0.00    0.00   0.00    0.00",
                "/system.slice…rvice.service   99.99  50.00    0.00   0.00    0.00   0.00    0.00",
                "/user.slice                   20.00  10.00       -      -    0.00   0.00       -",
                "/system.slice                  3.00   1.50    0.00   0.00    0.00   0.00    0.00",
                "/system.slice/short.service    0.00   0.00    0.00   0.00    0.00   0.00    0.00",
            ]
        );
        assert_eq!(screen[10..23].concat(), "");
        assert_eq!(
            screen[23],
            "q quit  ? help  s sort  t tree  a average  p pause  + - interval"
        );
    }

    #[test]
    fn a_tree_is_indented() {
        let mut state = state(snapshot(machine()));
        press(&mut state, &[Action::Tree]);
        assert_eq!(
            screen(&mut state, 200, 50)[5..10],
            [
                "system                                      12.50   6.25    0.00   0.00    0.00   0.00    0.00",
                "user.slice                                  20.00  10.00       -      -    0.00   0.00       -",
                "system.slice                                 3.00   1.50    0.00   0.00    0.00   0.00    0.00",
                "  a-rather-long-name-of-a-service.service   99.99  50.00    0.00   0.00    0.00   0.00    0.00",
                "  short.service                              0.00   0.00    0.00   0.00    0.00   0.00    0.00",
            ]
        );
    }

    #[test]
    fn narrow_drops_columns_but_not_the_sorted_one() {
        let mut state = state(snapshot(machine()));
        let lines = screen(&mut state, 60, 15);
        assert_eq!(lines[4], "cgroup            ▼some   full    some   full    some   full");
        assert_eq!(lines[6], "/system…service   99.99  50.00    0.00   0.00    0.00   0.00");
        state.sort = SortKey::IrqFull;
        let lines = screen(&mut state, 60, 15);
        assert_eq!(lines[3], "                        ──── cpu ────  ──── mem ────   irq ─");
        assert_eq!(lines[4], "cgroup                    some   full    some   full   ▼full");
    }

    #[test]
    fn the_smallest_size_shows_the_most_important() {
        let mut state = state(snapshot(machine()));
        assert_eq!(
            screen(&mut state, 20, 5),
            [
                "avg10  sort cpu some",
                "cgroup     ▼cpu some",
                "system         12.50",
                "/sys…vice      99.99",
                "/use…lice      20.00",
            ]
        );
    }

    #[test]
    fn too_small_is_said_as_far_as_there_is_room() {
        let mut state = state(snapshot(machine()));
        assert_eq!(screen(&mut state, 19, 5)[0], "terminal too small");
        assert_eq!(screen(&mut state, 80, 3)[0], "terminal too small");
        assert_eq!(screen(&mut state, 1, 1), ["t"]);
        assert!(screen(&mut state, 0, 0).is_empty());
    }

    #[test]
    fn no_size_panics() {
        for actions in [
            &[][..],
            &[Action::Tree, Action::Last],
            &[Action::Help],
            &[Action::SortPrevious, Action::Pause],
        ] {
            let mut state = state(snapshot(machine()));
            press(&mut state, actions);
            for (width, height) in
                (0..100).flat_map(|width| [0, 1, 3, 4, 7, 8, 10, 12, 24].map(|height| (width, height)))
            {
                buffer(&mut state, width, height, true);
            }
        }
    }

    #[test]
    fn nothing_is_there_before_the_first_figures() {
        let mut state = State::new(Options::default());
        press(
            &mut state,
            &[Action::Down, Action::SortNext, Action::Tree, Action::Pause],
        );
        let lines = screen(&mut state, 80, 24);
        assert_eq!(
            lines[0],
            format!("{NAME}  collecting…  every 1 s  avg10  sort cpu full  tree  PAUSED")
        );
        assert_eq!(lines[5], "collecting…");
        state.update(snapshot(machine()));
        assert_eq!(screen(&mut state, 80, 24)[5].split_whitespace().next(), Some("system"));
        state.update(snapshot(vec![cgroup("/", 1, 0.0)]));
    }

    #[test]
    fn a_lonely_root_says_so() {
        let mut state = state(snapshot(vec![cgroup("/", 1, 0.0)]));
        assert_eq!(screen(&mut state, 80, 24)[6], "no cgroups below the root");
    }

    #[test]
    fn the_selected_line_stands_out_and_is_named_in_full() {
        let mut state = state(snapshot(machine()));
        press(&mut state, &[Action::Down]);
        let shown = buffer(&mut state, 80, 24, false);
        let reversed = |y| (0..80).all(|x| shown[(x, y)].modifier.contains(Modifier::REVERSED));
        assert_eq!((0..24).filter(|y| reversed(*y)).collect::<Vec<u16>>(), [6]);
        let path = "/system.slice/a-rather-long-name-of-a-service.service  1/4";
        assert_eq!(screen(&mut state, 80, 24)[23], path);
    }

    #[test]
    fn names_cannot_reach_the_terminal() {
        let mut state = state(snapshot(vec![
            cgroup("/", 1, 0.0),
            cgroup("/\u{1b}[2J\nx\u{202e}日本", 2, 1.0),
        ]));
        press(&mut state, &[Action::Down]);
        let screen = screen(&mut state, 120, 12);
        assert!(screen[6].starts_with("/\\u{1b}[2J\\nx\\u{202e}日 本"), "{screen:?}");
        assert!(screen[11].starts_with("/\\u{1b}[2J\\nx\\u{202e}日 本"), "{screen:?}");
        assert!(!screen.concat().contains(char::is_control));
    }

    #[test]
    fn colors_follow_the_figures_and_can_be_off() {
        let missed = Snapshot {
            quality: Quality {
                repaired: 2,
                ..Quality::default()
            },
            ..snapshot(machine())
        };
        let mut state = state(missed);
        let colors = |shown: &Buffer, y: u16| (0..80).map(|x| shown[(x, y)].fg).find(|color| *color != Color::Reset);
        let shown = buffer(&mut state, 80, 24, true);
        assert_eq!(
            [2, 5, 6, 8].map(|y| colors(&shown, y)),
            [Some(Color::Yellow), Some(Color::Yellow), Some(Color::Red), None]
        );
        let shown = buffer(&mut state, 80, 24, false);
        assert!((0..24).all(|y| colors(&shown, y).is_none()));
        assert!(screen(&mut state, 80, 24)[2].starts_with("!repaired 2  missed 0"));
    }

    #[test]
    fn help_is_drawn_over_the_table() {
        let mut state = state(snapshot(machine()));
        press(&mut state, &[Action::Help]);
        let text = screen(&mut state, 80, 24).join("\n");
        for (key, does) in HELP {
            assert!(text.contains(&format!("{key:KEY$} {does}")), "{text}");
        }
    }
}
