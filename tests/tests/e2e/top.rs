//! `top` in a real terminal.

use std::fs;

use rustix::process::{Signal, kill_process};
use tests::{PATIENCE, cgroup::Cgroup, eventually, machine, program, session::Session, terminal::Terminal};

use crate::load;

#[test]
fn top_shows_cgroups_and_q_leaves() {
    let Some((_session, terminal, cgroup)) = set_up("top_shows_cgroups_and_q_leaves") else {
        return;
    };
    start(&terminal, "", &[]);
    terminal.wait_for("the cgroup", |screen| screen.contains(name(&cgroup)));
    terminal.press(&["q"]);
    is_sane(&terminal, 0);
}

#[test]
fn top_restores_the_terminal_when_terminated() {
    let Some((_session, terminal, cgroup)) = set_up("top_restores_the_terminal_when_terminated") else {
        return;
    };
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT, Signal::HUP] {
        start(&terminal, "", &[]);
        terminal.wait_for("the cgroup", |screen| screen.contains(name(&cgroup)));
        let pid = terminal.process("psitrace");
        kill_process(pid, signal).expect("psitrace runs");
        is_sane(&terminal, 0);
    }
}

#[test]
fn top_restores_the_terminal_when_it_panics() {
    let Some((_session, terminal, _cgroup)) = set_up("top_restores_the_terminal_when_it_panics") else {
        return;
    };
    start(
        &terminal,
        "RUST_BACKTRACE=0",
        &["--interval", "100ms", "--panic-after", "3"],
    );
    let screen = terminal.wait_for("the end", |screen| screen.contains("complete"));
    // Not on the screen that has gone.
    assert!(screen.contains("asked for by --panic-after"), "{screen}");
    is_sane(&terminal, 101);
}

#[test]
fn top_gives_the_terminal_back_while_it_is_stopped() {
    let Some((_session, terminal, cgroup)) = set_up("top_gives_the_terminal_back_while_it_is_stopped") else {
        return;
    };
    terminal.type_line(&command("", &[]));
    let is_shown = |screen: &str| screen.contains(name(&cgroup));
    terminal.wait_for("the cgroup", is_shown);
    let pid = terminal.process("psitrace");
    let stops: [&dyn Fn(); 2] = [&|| terminal.press(&["C-z"]), &|| {
        kill_process(pid, Signal::TSTP).expect("psitrace runs");
    }];
    for stop in stops {
        stop();
        terminal.wait_for("the shell", |screen| screen.contains("Stopped"));
        terminal.type_line("clear; stty -a; echo seen''by-shell");
        let screen = terminal.wait_for("the shell's answer", |screen| screen.contains("seenby-shell"));
        assert_usual(&screen);
        terminal.type_line("clear; fg");
        terminal.wait_for("the cgroup again", is_shown);
        // It takes keys as before.
        terminal.press(&["?"]);
        terminal.wait_for("help", |screen| screen.contains("any key closes"));
        terminal.press(&["?"]);
        terminal.wait_for("the cgroup", is_shown);
    }
    // Stopped, told to end, and continued for that in the background, as shells do.
    terminal.press(&["C-z"]);
    terminal.wait_for("the shell", |screen| screen.contains("Stopped"));
    terminal.type_line("clear; kill %1; kill -CONT %1");
    let stat = format!("/proc/{}/stat", pid.as_raw_nonzero());
    // A zombie until the shell looks.
    eventually("psitrace ends", PATIENCE, || {
        fs::read_to_string(&stat).map_or(Some(()), |stat| stat.contains(") Z ").then_some(()))
    });
    terminal.type_line("clear; stty -a; echo seen''by-shell");
    let screen = terminal.wait_for("the shell's answer", |screen| screen.contains("seenby-shell"));
    assert_usual(&screen);
}

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

fn set_up(test: &'static str) -> Option<(Session, Terminal, Cgroup)> {
    let session = Session::start(test)?;
    let Some(terminal) = Terminal::new() else {
        session.skip("tmux is not installed");
        return None;
    };
    let cgroup = Cgroup::new(session.name());
    Some((session, terminal, cgroup))
}

fn name(cgroup: &Cgroup) -> &str {
    // It may be cut to the width of its column.
    &cgroup.path()[1..20]
}

fn start(terminal: &Terminal, environment: &str, arguments: &[&str]) {
    // Not in one piece, so that the line itself is not taken for its output.
    let afterwards = "; echo ended=$?; stty -a; echo com''plete";
    terminal.type_line(&(command(environment, arguments) + afterwards));
}

/// What starts it in a shell.
fn command(environment: &str, arguments: &[&str]) -> String {
    let words = program::words(&[&["top"], arguments].concat());
    let quoted = words.iter().map(|word| format!(" '{}'", word.to_str().expect("UTF-8")));
    let command = environment.to_owned() + &quoted.collect::<String>();
    command.trim().to_owned()
}

/// It has left its screen with this exit code, and the terminal takes and shows lines as before.
fn is_sane(terminal: &Terminal, code: i32) {
    let screen = terminal.wait_for("the end", |screen| screen.contains("complete"));
    assert!(
        screen.contains(&format!("ended={code}")),
        "expected exit code {code}, saw\n{screen}"
    );
    assert_usual(&screen);
    terminal.type_line("clear");
    terminal.wait_for("an empty screen", |screen| !screen.contains("complete"));
}

/// The terminal's settings, as stty prints them, are a shell's.
#[track_caller]
fn assert_usual(screen: &str) {
    let settings: Vec<&str> = screen
        .split_whitespace()
        .map(|word| word.trim_end_matches(';'))
        .collect();
    for setting in ["icanon", "echo", "isig", "opost"] {
        assert!(settings.contains(&setting), "expected {setting}, saw\n{screen}");
    }
}
