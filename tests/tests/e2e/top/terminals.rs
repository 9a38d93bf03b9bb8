//! Terminals of all sizes, and such that can do little.

use std::fs;

use tests::machine;

use super::{is_sane, name, set_up, start};
use crate::load;

#[test]
fn top_fits_all_sizes() {
    let Some((_session, terminal, cgroup)) = set_up("top_fits_all_sizes") else {
        return;
    };
    start(&terminal, "", &[]);
    terminal.wait_for("the cgroup", |screen| screen.contains(name(&cgroup)));
    for (columns, lines, shown) in [
        (60, 15, "cgroup"),
        (10, 3, "cpu "),
        (300, 80, "+ - interval"),
        (20, 4, "system"),
        (80, 24, "q quit"),
    ] {
        terminal.resize(columns, lines);
        let screen = terminal.wait_for("the new size", |screen| {
            // Each line may be as wide as the terminal, and none is left from before.
            screen.contains(shown) && screen.contains("help") == (lines > 12) && screen.lines().count() <= lines.into()
        });
        assert!(
            screen.lines().all(|line| line.chars().count() <= columns.into()),
            "{screen}"
        );
    }
    terminal.press(&["q"]);
    is_sane(&terminal, 0);
}

#[test]
fn top_does_without_colour_and_without_a_cursor() {
    let Some((_session, terminal, cgroup)) = set_up("top_does_without_colour_and_without_a_cursor") else {
        return;
    };
    let threads = (2 * machine::cpus().len()).to_string();
    let _load = load().within(&cgroup).behind().start(&["spin", "--threads", &threads]);
    // Foreground colours: 3 and a digit, or xterm's palette by 38;5.
    let has_colours = |screen: &str| {
        let codes = screen.split("\u{1b}[").skip(1).filter_map(|part| part.split_once('m'));
        let mut codes = codes.flat_map(|(codes, _)| codes.split(';'));
        codes.any(|code| code == "38" || code.len() == 2 && code.starts_with('3') && code != "39")
    };
    for (environment, coloured) in [("NO_COLOR=", true), ("NO_COLOR=1", false)] {
        start(&terminal, environment, &["--flat"]);
        let is_high = |screen: &str| {
            let line = screen.lines().find(|line| line.contains(name(&cgroup)));
            let figure = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
            figure.is_some_and(|percent| percent > 10.0)
        };
        terminal.wait_for("pressure", is_high);
        let screen = terminal.coloured_screen();
        assert_eq!(has_colours(&screen), coloured, "{environment}: {screen:?}");
        terminal.press(&["q"]);
        is_sane(&terminal, 0);
    }

    let folder = tempfile::tempdir().expect("a folder");
    let bytes = folder.path().join("bytes");
    terminal.record(&bytes);
    // The shell's own line comes first, then frames as plain text, one below the other.
    start(&terminal, "TERM=dumb LC_ALL=C", &[]);
    terminal.wait_for("a frame", |screen| screen.matches("vsome").count() >= 2);
    terminal.type_line("s");
    terminal.wait_for("a frame in another order", |screen| screen.contains("vfull"));
    terminal.type_line("q");
    terminal.wait_for("the end", |screen| screen.contains("complete"));
    let bytes = fs::read(&bytes).expect("what was written");
    assert!(bytes.windows(5).any(|part| part == b"vfull"));
    let text = String::from_utf8_lossy(&bytes);
    assert!(
        !text.contains('\u{1b}'),
        "escape sequences on a dumb terminal: {text:?}"
    );
    assert!(text.contains("ended=0"), "{text}");
}
