//! Keys and the mouse, live and in a recording.

use tests::{machine, program};

use super::{is_sane, name, set_up, start};
use crate::load;

#[test]
fn top_takes_all_keys() {
    let Some((session, terminal, cgroup)) = set_up("top_takes_all_keys") else {
        return;
    };
    let child = cgroup.child("the-child");
    let load = load().within(&child).behind().start(&["spin"]);
    start(&terminal, "", &["--interval", "500ms"]);
    let has = |what: &'static str| terminal.wait_for(what, |screen| screen.contains(what));
    let lacks = |what: &'static str| terminal.wait_for(what, |screen| !screen.contains(what));
    has("▾ psitrace-e2e-");
    has("the-child");

    for (key, effect) in [
        ("a", "avg60"),
        ("a", "avg300"),
        ("a", "last interval"),
        ("a", "avg10"),
        ("s", "sort cpu full"),
        ("S", "sort cpu some"),
        (">", "sort cpu full"),
        ("<", "sort cpu some"),
        ("M", "sort mem some"),
        ("D", "sort io some"),
        ("I", "sort irq full"),
        ("N", "sort cgroup"),
        ("r", "sort reversed cgroup"),
        ("r", "sort cgroup"),
        ("C", "sort cpu some"),
        ("+", "every 1 s"),
        ("-", "every 0.5 s"),
        ("p", "PAUSED"),
    ] {
        terminal.press(&[key]);
        has(effect);
    }
    terminal.press(&["Space"]);
    lacks("PAUSED");
    terminal.press(&["?"]);
    has("any key closes");
    terminal.press(&["x"]);
    lacks("any key closes");
    // Interrupts have `full` alone.
    for (some, full) in [(3, 1), (0, 4), (3, 4)] {
        terminal.press(&["f"]);
        terminal.wait_for("other columns", |screen| {
            let titles = screen.lines().nth(4).unwrap_or_default();
            titles.matches("some").count() == some && titles.matches("full").count() == full
        });
    }
    terminal.press(&["m"]);
    has("the mouse is the terminal's");
    terminal.press(&["m"]);
    has("the mouse selects");

    // Filter, as it is typed; a glob.
    terminal.press(&["/"]);
    terminal.press(&["-l", "no-such-cgroup"]);
    has("no cgroup matches");
    terminal.press(&["C-u"]);
    terminal.press(&["-l", "the-ch*"]);
    has("▾ psitrace-e2e-");
    terminal.press(&["Enter"]);
    has("filter the-ch*");
    terminal.press(&["Escape"]);
    lacks("filter the-ch*");

    // Select, fold, unfold: this test's cgroup is the only one with a child.
    let last_line = |screen: &str| screen.trim_end().lines().last().unwrap_or_default().to_owned();
    let own = format!("{}  ", cgroup.path());
    terminal.press(&["g"]);
    let mut shown = last_line(&terminal.wait_for("a selection", |screen| last_line(screen).starts_with('/')));
    while !shown.starts_with(&own) {
        terminal.press(&["j"]);
        shown = last_line(&terminal.wait_for("the next line", |screen| last_line(screen) != shown));
    }
    for (fold, unfold) in [("h", "l"), ("Left", "Right")] {
        terminal.press(&[fold]);
        has("▸ psitrace-e2e-");
        lacks("the-child");
        terminal.press(&[unfold]);
        has("the-child");
    }
    terminal.press(&["h"]);
    lacks("the-child");
    terminal.press(&["*"]);
    has("the-child");

    // Details of the child: its task, and the kernel's figures where it has any.
    terminal.press(&["Down"]);
    terminal.press(&["Enter"]);
    has("5 min ago");
    has("tasks of its own: 1");
    let pid = load.pid().to_string();
    let screen = terminal.wait_for("its task", |screen| {
        screen.contains(&pid) && screen.contains("psi-load")
    });
    let kernel = machine::has_kernel_psi() && child.dir().join("cpu.pressure").exists();
    assert_eq!(screen.contains("  kernel  avg10"), kernel, "{screen}");
    terminal.press(&["Escape"]);
    lacks("5 min ago");

    // The list has whole paths. A vanished cgroup is marked, then goes.
    terminal.press(&["t"]);
    has("/the-child");
    drop(load);
    child.wait_until_empty();
    terminal.press(&["+"]);
    terminal.press(&["+"]);
    has("every 2 s");
    child.remove();
    has("the-child (gone)");
    lacks("the-child");
    terminal.press(&["C-l"]);
    has("psitrace-e2e-");
    terminal.press(&["q"]);
    is_sane(&terminal, 0);
    drop(session);
}

#[test]
fn top_takes_the_mouse() {
    let Some((_session, terminal, cgroup)) = set_up("top_takes_the_mouse") else {
        return;
    };
    start(&terminal, "", &["--flat"]);
    let place = |what: &str| {
        let find = |screen: &str| {
            let mut lines = screen.lines().enumerate();
            lines.find_map(|(y, line)| Some((line[..line.find(what)?].chars().count(), y)))
        };
        find(&terminal.wait_for(what, |screen| find(screen).is_some())).expect("it was there")
    };
    let (column, line) = place(name(&cgroup));
    terminal.click(column, line);
    let is_selected = |screen: &str| {
        screen
            .trim_end()
            .lines()
            .last()
            .is_some_and(|line| line.starts_with(cgroup.path()))
    };
    terminal.wait_for("a selection", is_selected);
    let (column, line) = place("cgroup  ");
    terminal.click(column, line);
    terminal.wait_for("another order", |screen| screen.contains("sort cgroup"));
    terminal.click(column, line);
    terminal.wait_for("the reverse order", |screen| screen.contains("sort reversed cgroup"));
    terminal.press(&["q"]);
    is_sane(&terminal, 0);
}

#[test]
fn top_shows_a_recording() {
    let Some((_session, terminal, cgroup)) = set_up("top_shows_a_recording") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("recording");
    let file = file.to_str().expect("UTF-8");
    let finished = program::run(&["record", "--output", file, "--interval", "500ms", "--duration", "3s"]);
    finished.expect_success();
    let path = program::path().to_str().expect("UTF-8");
    terminal.type_line(&format!(
        "'{path}' top --replay '{file}'; echo ended=$?; stty -a; echo com''plete"
    ));
    terminal.wait_for("the cgroup", |screen| {
        screen.contains("REPLAY") && screen.contains("frame 1/") && screen.contains(name(&cgroup))
    });
    for (key, place) in [
        ("Right", "frame 2/"),
        ("Right", "frame 3/"),
        ("Left", "frame 2/"),
        ("PageUp", "frame 1/"),
    ] {
        terminal.press(&[key]);
        terminal.wait_for(place, |screen| screen.contains(place));
    }
    terminal.press(&["PageDown"]);
    terminal.wait_for("the last frame", |screen| {
        let place = screen
            .split_once("frame ")
            .and_then(|(_, rest)| rest.split_whitespace().next()?.split_once('/'));
        place.is_some_and(|(at, count)| at == count)
    });
    terminal.press(&["Right"]);
    terminal.wait_for("a message", |screen| screen.contains("the recording ends here"));
    terminal.press(&["g"]);
    terminal.press(&["-l", "--", "-1h"]);
    terminal.press(&["Enter"]);
    terminal.wait_for("the first frame", |screen| screen.contains("frame 1/"));
    // Played to its end.
    terminal.press(&["p"]);
    terminal.wait_for("the end", |screen| screen.contains("the recording ends here"));
    terminal.press(&["Enter"]);
    terminal.wait_for("details", |screen| screen.contains("tasks: not recorded"));
    terminal.press(&["q"]);
    is_sane(&terminal, 0);
}
