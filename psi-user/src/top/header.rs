//! The lines above the table, and the one below it.

use std::time::Duration;

use ratatui::{
    style::Style,
    text::{Line, Span},
};

use super::{
    escape::{cut_middle, escape, width},
    player::Place,
    state::State,
    style::Palette,
};
use crate::{
    model::{MemstallSource, Quality, Source},
    when::{local, time_of_day},
};

/// Between two parts of a line.
const GAP: usize = 2;

/// A part of a line; those with the highest rank go first if the line is too long.
type Part = (u8, Span<'static>);

/// What is shown, and how.
pub(super) fn status(state: &State, columns: usize) -> Line<'static> {
    let plain = |rank, text: String| (rank, Span::raw(text));
    let mut parts = vec![plain(5, concat!("psitrace ", env!("CARGO_PKG_VERSION")).to_owned())];
    match state.snapshot() {
        Some(snapshot) => {
            if let Some(Place { index, count, .. }) = state.place {
                parts.push((1, Span::styled("REPLAY", Palette::chosen())));
                // As `dump --begin` takes it.
                parts.push(plain(1, local(snapshot.time_ns, &state.zone).to_string()));
                parts.push(plain(3, format!("frame {}/{count}", index + 1)));
            } else {
                parts.push(plain(3, time_of_day(snapshot.time_ns, &state.zone).to_string()));
            }
            parts.push(plain(8, escape(&snapshot.source.hierarchy).into_owned()));
            parts.push(plain(6, count(state.count())));
        }
        None => parts.push(plain(3, "collecting…".to_owned())),
    }
    match state.place {
        Some(_) if state.paused => {}
        Some(_) => parts.push(plain(2, format!("playing, every {}", seconds(state.interval)))),
        None => parts.push(plain(7, format!("every {}", seconds(state.interval)))),
    }
    parts.push((0, Span::styled(state.window.title(), Palette::title())));
    let order = if state.reversed { "reversed " } else { "" };
    parts.push(plain(2, format!("sort {order}{}", state.sort.title())));
    if state.tree {
        parts.push(plain(9, "tree".to_owned()));
    }
    if state.filter.is_active() {
        let filter = format!("filter {}", escape(state.filter.text()));
        parts.push((2, Span::styled(cut_middle(&filter, 30).into_owned(), Palette::title())));
    }
    if state.paused && state.place.is_none() {
        parts.push((1, Span::styled("PAUSED", Palette::chosen())));
    }
    fit(parts, columns)
}

/// Where the figures come from.
pub(super) fn sources(source: &Source, columns: usize) -> Line<'static> {
    let memory = match source.memstall {
        Some(memstall @ MemstallSource::Tracepoints) => format!("memory: {} (partial)", memstall.name()),
        Some(memstall) => format!("memory: {}", memstall.name()),
        None => "memory: not measured".to_owned(),
    };
    let room = columns.saturating_sub(width(&memory) + GAP);
    let irq = interrupts(&source.irq, room);
    fit(vec![(0, Span::raw(memory)), (1, Span::raw(irq))], columns)
}

/// As many interrupt kinds as fit.
fn interrupts(kinds: &[String], room: usize) -> String {
    if kinds.is_empty() {
        return "irq: not measured".to_owned();
    }
    let mut text = "irq:".to_owned();
    for (at, kind) in kinds.iter().enumerate() {
        let left = kinds.len() - at;
        let next = format!("{text} {}", escape(kind));
        let rest = if left > 1 { width(&format!(" +{left}")) } else { 0 };
        if width(&next) + rest > room {
            let more = if at == 0 {
                format!(" {left} kinds")
            } else {
                format!(" +{left}")
            };
            return text + &more;
        }
        text = next;
    }
    text
}

/// Counters that are shown only when they count something, after the others: their names in JSON.
const RARE: [&str; 3] = ["missed_irqs", "overflows", "rejected_readings"];

/// What was missed or repaired: marked first, then what is 0.
pub(super) fn quality(quality: &Quality, palette: Palette, columns: usize) -> Line<'static> {
    let rarity = |name: &str| RARE.iter().position(|rare| *rare == name);
    let mut counters: Vec<(Option<usize>, &str, u64)> = quality
        .counters()
        .iter()
        .zip(Quality::SHORT_TITLES)
        .map(|((name, count), title)| (rarity(name), title, *count))
        .collect();
    counters.sort_by_key(|(rarity, ..)| *rarity);

    let marked = counters.iter().filter(|(.., count)| *count > 0);
    let marked = marked.map(|(_, title, count)| Span::styled(format!("!{title} {count}"), palette.marked()));
    let calm = counters
        .iter()
        .filter(|(rarity, _, count)| rarity.is_none() && *count == 0);
    let calm = calm.map(|(_, title, _)| Span::styled(format!("{title} 0"), Palette::calm()));
    fit(
        marked.chain(calm).zip(0..).map(|(span, rank)| (rank, span)).collect(),
        columns,
    )
}

/// What is being typed or has to be told.
pub(super) fn urgent(state: &State, palette: Palette, columns: usize) -> Option<Line<'static>> {
    if let Some(prompt) = &state.prompt {
        let text = escape(&prompt.text);
        let error = prompt.error.as_ref().map(|error| format!("  {}", escape(error)));
        let error = error.unwrap_or_default();
        let room = columns.saturating_sub(width(prompt.title()) + 1);
        // The end is where it is typed.
        let text = match width(&text).checked_sub(room) {
            Some(over) if over > 0 => text.chars().skip(over).collect(),
            _ => text.into_owned(),
        };
        return Some(Line::from(vec![
            Span::styled(prompt.title(), Palette::title()),
            Span::raw(text),
            Span::styled(" ", Palette::chosen()),
            Span::styled(error, palette.marked()),
        ]));
    }
    let message = state.message.as_ref()?;
    Some(Line::styled(escape(message).into_owned(), palette.marked()))
}

/// The selected cgroup in full, or the keys.
pub(super) fn footer(state: &State, columns: usize) -> Line<'static> {
    let Some((row, cgroup)) = state.selected() else {
        const LIVE: [&str; 9] = [
            "q quit",
            "? help",
            "/ filter",
            "Enter details",
            "s sort",
            "t tree",
            "a average",
            "p pause",
            "+ - interval",
        ];
        const REPLAY: [&str; 8] = [
            "q quit",
            "? help",
            "Left Right frame",
            "PgUp PgDn minute",
            "g go to",
            "n next spike",
            "p play",
            "Enter details",
        ];
        let hints: &[&str] = if state.place.is_some() { &REPLAY } else { &LIVE };
        let hints = hints
            .iter()
            .zip(0..)
            .map(|(hint, rank)| (rank, Span::styled(*hint, Palette::calm())));
        return fit(hints.collect(), columns);
    };
    let at = format!("{}/{}", row + 1, state.rows().len());
    let path = escape(&cgroup.path);
    let path = cut_middle(&path, columns.saturating_sub(width(&at) + GAP)).into_owned();
    fit(
        vec![(0, Span::styled(path, Palette::title())), (1, Span::raw(at))],
        columns,
    )
}

/// Joins parts; leaves out those of the highest rank until they fit, but the last one, which may be cut.
fn fit(mut parts: Vec<Part>, columns: usize) -> Line<'static> {
    let taken = |parts: &[Part]| parts.iter().map(|(_, span)| span.width() + GAP).sum::<usize>();
    while parts.len() > 1 && taken(&parts) > columns + GAP {
        let last = parts.iter().enumerate().max_by_key(|(_, (rank, _))| *rank);
        let Some((last, _)) = last else { break };
        parts.remove(last);
    }
    let mut spans = Vec::with_capacity(2 * parts.len());
    for (_, span) in parts {
        if !spans.is_empty() {
            spans.push(Span::styled(" ".repeat(GAP), Style::new()));
        }
        spans.push(span);
    }
    Line::from(spans)
}

fn count(cgroups: usize) -> String {
    if cgroups == 1 {
        "1 cgroup".to_owned()
    } else {
        format!("{cgroups} cgroups")
    }
}

fn seconds(interval: Duration) -> String {
    format!("{} s", interval.as_millis() as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::fixture::snapshot;

    fn source() -> Source {
        snapshot(Vec::new()).source
    }

    #[test]
    fn what_is_not_measured_is_said() {
        let source = Source {
            memstall: None,
            irq: Vec::new(),
            ..source()
        };
        assert_eq!(
            sources(&source, 80).to_string(),
            "memory: not measured  irq: not measured"
        );
        let source = Source {
            memstall: Some(MemstallSource::Tracepoints),
            ..source
        };
        assert_eq!(sources(&source, 30).to_string(), "memory: tracepoints (partial)");
    }

    #[test]
    fn interrupt_kinds_are_shown_as_far_as_they_fit() {
        let kinds = ["softirq", "irq_handler", "local_timer"].map(str::to_owned);
        for (room, expected) in [
            (80, "irq: softirq irq_handler local_timer"),
            (36, "irq: softirq irq_handler local_timer"),
            (35, "irq: softirq irq_handler +1"),
            (26, "irq: softirq +2"),
            (14, "irq: 3 kinds"),
        ] {
            assert_eq!(interrupts(&kinds, room), expected);
        }
    }

    #[test]
    fn what_was_missed_comes_first_and_is_marked() {
        let palette = Palette::new(false, true);
        let calm = quality(&Quality::default(), palette, 80);
        assert_eq!(
            calm.to_string(),
            "missed 0  repaired 0  drift 0  storage failures 0  without slot 0"
        );
        let missed = Quality {
            program_misses: 3,
            missed_irqs: 1,
            ..Quality::default()
        };
        let line = quality(&missed, palette, 40);
        assert_eq!(line.to_string(), "!program misses 3  !missed irqs 1");
        assert_ne!(line.spans[0].style, calm.spans[0].style);
        let all = quality(&Quality::from_counters([1, 2, 3, 4, 5, 6, 7, 8, 9]), palette, 200);
        assert_eq!(
            all.to_string(),
            "!missed 1  !repaired 2  !drift 3  !storage failures 4  !without slot 7  !program misses 8  !missed irqs 6  \
             !overflows 5  !rejected readings 9"
        );
    }

    #[test]
    fn intervals_are_short() {
        assert_eq!(seconds(Duration::from_millis(100)), "0.1 s");
        assert_eq!(seconds(Duration::from_mins(1)), "60 s");
    }
}
