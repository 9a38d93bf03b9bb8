//! Draws one cgroup in detail: charts of the last five minutes, its figures beside the kernel's own, its tasks.

use std::fmt::Write as _;

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

use super::{
    escape::{cut_middle, escape, width},
    glyph,
    pane::{Pane, Told},
    state::State,
    style::Palette,
    trail::POINTS,
};
use crate::{
    fields::{Resource, Stall},
    model::Pressure,
    pressure_file::Lines,
};

/// Before a chart: the name of the figure and the chart's scale.
const LABEL: usize = 15;
/// Columns of a block of figures without their names: three averages and a total.
const BLOCK: usize = 35;
const NAME: usize = 10;
/// Between our figures and the kernel's.
const KERNEL: &str = "  kernel";
/// Ours and the kernel's beside each other.
const BOTH: usize = NAME + BLOCK + KERNEL.len() + BLOCK;
/// Between charts and figures.
const GAP: usize = 2;
/// Charts and figures stand beside each other from here on, but only where they have no room below each other.
const SIDE_BY_SIDE: usize = LABEL + 30 + GAP + BOTH;
const STACKED_FROM: usize = 22;

/// Scales of the charts, %.
const SCALES: [f64; 7] = [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0];

/// Draws `state`'s pane.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, state: &mut State, palette: Palette) {
    let Some(mut pane) = state.pane.take() else { return };
    let columns = usize::from(area.width);
    let room = usize::from(area.height.saturating_sub(1));
    buffer.set_line(area.x, area.y, &title(&pane, state.in_pane, columns), area.width);

    let mut lines = fixed(state, &pane, columns, room, palette);
    let heads = lines.len();
    // The tasks' own lines only as far as they show.
    let count = heads + pane.tasks.len();
    let first = pane.visible(count, room);
    let shown = pane.tasks.iter().skip((first).saturating_sub(heads));
    lines.extend(shown.take(room).map(|task| task_line(task, columns, palette)));
    let skipped = first.min(heads);
    for (line, y) in lines.iter().skip(skipped).zip(area.y + 1..area.bottom()) {
        buffer.set_line(area.x, y, line, area.width);
    }
    state.pane = Some(pane);
}

fn title(pane: &Pane, in_pane: bool, columns: usize) -> Line<'static> {
    let gone = if pane.is_gone { "  gone" } else { "" };
    let facts = format!("{gone}  id {}  level {} ", pane.id, pane.cgroup.level);
    let room = columns.saturating_sub(width(&facts) + 4);
    let path = escape(&pane.cgroup.path);
    let text = format!("── {}{facts}", cut_middle(&path, room));
    let text = format!("{text}{}", "─".repeat(columns.saturating_sub(width(&text))));
    let style = if in_pane { Palette::chosen() } else { Palette::title() };
    Line::styled(text, style)
}

/// All lines but the tasks' own.
fn fixed(state: &State, pane: &Pane, columns: usize, room: usize, palette: Palette) -> Vec<Line<'static>> {
    let figures_count = Stall::ALL.len();
    let mut lines;
    if columns >= SIDE_BY_SIDE && room < STACKED_FROM {
        let rows = (room.saturating_sub(6) / figures_count).clamp(1, 3);
        let room = columns - BOTH - GAP;
        lines = charts(state, pane, room, rows, palette);
        let figures = figures(pane, BOTH, palette);
        for (at, figures) in figures.into_iter().enumerate() {
            if lines.len() == at {
                lines.push(Line::default());
            }
            let fill = (room + GAP).saturating_sub(lines[at].width());
            lines[at].push_span(Span::raw(" ".repeat(fill)));
            lines[at].spans.extend(figures.spans);
        }
    } else {
        let rows = (room.saturating_sub(16) / figures_count).clamp(1, 3);
        lines = charts(state, pane, columns, rows, palette);
        lines.extend(figures(pane, columns, palette));
    }
    lines.extend(task_titles(pane));
    lines
}

fn charts(state: &State, pane: &Pane, columns: usize, rows: usize, palette: Palette) -> Vec<Line<'static>> {
    let plot = columns.saturating_sub(LABEL).clamp(1, POINTS);
    let ago = "5 min ago";
    let fill = plot.saturating_sub(ago.len() + "now".len());
    let axis = format!("{:LABEL$}{ago}{}now", "", " ".repeat(fill));
    let mut lines = vec![Line::styled(axis, Palette::calm())];
    let now_ns = state.snapshot().map_or(0, |snapshot| snapshot.time_ns);
    for stall in Stall::ALL {
        let title = stall.title();
        if stall.of(&pane.cgroup).is_none() {
            lines.push(Line::from(vec![
                Span::raw(format!("{title:LABEL$}")),
                Span::styled("not measured", Palette::calm()),
            ]));
            continue;
        }
        let points = squeeze(&state.trails.points(pane.id, stall, now_ns), plot);
        let highest = points.iter().flatten().copied().fold(0.0, f64::max);
        let scale = SCALES.into_iter().find(|scale| highest <= *scale).unwrap_or(100.0);
        for row in (0..rows).rev() {
            let name = if row == 0 { title.as_str() } else { "" };
            let top = if row == rows - 1 {
                format!("{scale}%")
            } else {
                String::new()
            };
            let mut plot: Vec<Span<'static>> = Vec::new();
            for point in &points {
                let glyph = glyph::chart(point.map(|percent| percent / scale), row, rows);
                let style = point.map_or_else(Style::new, |percent| palette.chart(percent));
                match plot.last_mut() {
                    Some(last) if last.style == style => last.content.to_mut().push(glyph),
                    _ => plot.push(Span::styled(glyph.to_string(), style)),
                }
            }
            let label = Span::raw(format!("{name:9}{top:>5} "));
            lines.push([label].into_iter().chain(plot).collect());
        }
    }
    lines
}

/// The highest of the points that share a column: short spikes must not get lost.
fn squeeze(points: &[Option<f64>; POINTS], columns: usize) -> Vec<Option<f64>> {
    let highest = |points: &[Option<f64>]| points.iter().flatten().copied().reduce(f64::max);
    (0..columns)
        .map(|column| highest(&points[column * POINTS / columns..(column + 1) * POINTS / columns]))
        .collect()
}

/// Averages and totals, ours and the kernel's: beside each other if there is room, else below.
fn figures(pane: &Pane, columns: usize, palette: Palette) -> Vec<Line<'static>> {
    let kernel = pane.inspection().map(|inspection| &inspection.kernel);
    let has_kernel = kernel.is_some_and(|kernel| kernel.iter().any(Option::is_some));
    let ours = |stall: Stall| stall.of(&pane.cgroup).map(Numbers::from);
    let theirs = |stall: Stall| kernel.and_then(|kernel| kernel_line(kernel, stall));

    let titles = format!("{:>7}{:>7}{:>7}{:>14}", "avg10", "avg60", "avg300", "total");
    let none = match pane.told {
        Told::Nothing => "  kernel: not recorded",
        _ => "  kernel: has no PSI here, or it is off",
    };
    let is_beside = columns >= BOTH;
    let more = match (is_beside, has_kernel) {
        (true, true) => format!("{KERNEL}{titles}"),
        (true, false) => none.to_owned(),
        (false, _) => String::new(),
    };
    let title = format!("{:NAME$}{titles}{more}", "");
    let mut lines = vec![Line::styled(title, Palette::calm())];
    for stall in Stall::ALL {
        let mut spans = vec![Span::raw(format!("{:NAME$}", stall.title()))];
        spans.extend(block(ours(stall), palette));
        if is_beside && has_kernel {
            spans.push(Span::raw(" ".repeat(KERNEL.len())));
            spans.extend(block(theirs(stall), palette));
        }
        lines.push(Line::from(spans));
    }
    if !is_beside {
        let title = if has_kernel { KERNEL } else { none };
        lines.push(Line::styled(title.trim_start(), Palette::calm()));
        for stall in Stall::ALL.into_iter().filter(|_| has_kernel) {
            let mut spans = vec![Span::raw(format!("{:NAME$}", stall.title()))];
            spans.extend(block(theirs(stall), palette));
            lines.push(Line::from(spans));
        }
    }
    lines
}

/// One line's figures.
#[derive(Clone, Copy)]
struct Numbers {
    averages: [f64; 3],
    total_us: u64,
}

impl From<&Pressure> for Numbers {
    fn from(pressure: &Pressure) -> Self {
        Self {
            averages: [pressure.avg10, pressure.avg60, pressure.avg300],
            total_us: pressure.total_ns / 1000,
        }
    }
}

fn kernel_line(kernel: &[Option<Lines>; Resource::ALL.len()], stall: Stall) -> Option<Numbers> {
    let resource = Resource::ALL.iter().position(|resource| *resource == stall.resource)?;
    let line = kernel[resource]?.of(stall.kind)?;
    Some(Numbers {
        averages: [line.avg10, line.avg60, line.avg300],
        total_us: line.total_us,
    })
}

/// [`BLOCK`] columns.
fn block(numbers: Option<Numbers>, palette: Palette) -> Vec<Span<'static>> {
    let Some(Numbers { averages, total_us }) = numbers else {
        return vec![Span::styled(
            format!("{:>7}{:>7}{:>7}{:>14}", "-", "-", "-", "-"),
            Palette::calm(),
        )];
    };
    let mut spans: Vec<_> = averages
        .into_iter()
        .flat_map(|percent| {
            let text = format!("{percent:.2}");
            let fill = " ".repeat(7usize.saturating_sub(text.len()));
            [Span::raw(fill), Span::styled(text, palette.figure(percent))]
        })
        .collect();
    spans.push(Span::raw(format!("{:>14}", format!("{:.3} s", total_us as f64 / 1e6))));
    spans
}

fn task_titles(pane: &Pane) -> Vec<Line<'static>> {
    let Some(inspection) = pane.inspection() else {
        return vec![Line::styled("tasks: not recorded", Palette::calm())];
    };
    let count = inspection.tasks.count;
    if pane.is_gone {
        return vec![Line::styled("the cgroup is gone; its last tasks:", Palette::calm())];
    }
    let mut text = format!("tasks of its own: {count}");
    for (state, number) in pane.states() {
        _ = write!(text, "  {state} {number}");
    }
    if count > pane.tasks.len() {
        _ = write!(text, "  (looked at {})", pane.tasks.len());
    }
    let mut lines = vec![Line::styled(text, Palette::title())];
    if !pane.tasks.is_empty() {
        lines.push(Line::styled(
            format!("{:>10} S {:>9}  name", "tid", "cpu wait"),
            Palette::calm(),
        ));
    }
    lines
}

fn task_line((task, share): &(super::inspect::Task, Option<f64>), columns: usize, palette: Palette) -> Line<'static> {
    let (text, style) = match share {
        Some(percent) => (format!("{percent:.2}"), palette.figure(*percent)),
        None => ("-".to_owned(), Palette::calm()),
    };
    let name = escape(&task.name);
    let name = cut_middle(&name, columns.saturating_sub(24)).into_owned();
    let fill = " ".repeat(10usize.saturating_sub(text.len()));
    Line::from(vec![
        Span::raw(format!("{:>10} {}{fill}", task.pid, task.state)),
        Span::styled(text, style),
        Span::raw(format!("  {name}")),
    ])
}
