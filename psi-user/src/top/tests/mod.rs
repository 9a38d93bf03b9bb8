//! The view on terminals of all sizes.

mod acts;
mod details;
mod state;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use insta::assert_snapshot;
use ratatui::{
    Terminal,
    backend::TestBackend,
    buffer::Buffer,
    style::{Color, Modifier},
};

use super::{
    Inspection, Options, Palette, Task, Tasks, View, Window,
    fixture::{cgroup, pod_machine, snapshot, unmeasured},
    keys::HELP,
    state::Asked,
};
use crate::model::{CgroupPressure, Quality, Snapshot};

const SECOND: u64 = 1_000_000_000;

fn view(snapshot: Snapshot) -> View {
    let mut view = View::new(Options::default(), Palette::new(false, true));
    view.update(snapshot);
    view
}

fn tree(snapshot: Snapshot) -> View {
    let options = Options {
        tree: true,
        ..Options::default()
    };
    let mut view = View::new(options, Palette::new(false, true));
    view.update(snapshot);
    view
}

/// What the terminal gets, through ratatui's own way.
fn buffer(view: &mut View, width: u16, height: u16) -> Buffer {
    let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height));
    let Ok(_) = terminal.draw(|frame| view.draw(frame.buffer_mut()));
    terminal.backend().buffer().clone()
}

/// The screen's lines without what is blank at their ends.
fn lines(view: &mut View, width: u16, height: u16) -> Vec<String> {
    let buffer = buffer(view, width, height);
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| line(y).trim_end().to_owned()).collect()
}

/// With its edge, so that what is blank is seen.
fn screen(view: &mut View, width: u16, height: u16) -> String {
    let line = |line: String| format!("{line}\n");
    lines(view, width, height).into_iter().map(line).collect::<String>() + "--"
}

/// Presses keys: characters, or names.
fn press(view: &mut View, keys: &[&str]) -> Asked {
    let mut asked = Asked::Nothing;
    for key in keys {
        let code = match *key {
            "Enter" => KeyCode::Enter,
            "Esc" => KeyCode::Esc,
            "Tab" => KeyCode::Tab,
            "Up" => KeyCode::Up,
            "Down" => KeyCode::Down,
            "Left" => KeyCode::Left,
            "Right" => KeyCode::Right,
            "PgDn" => KeyCode::PageDown,
            "PgUp" => KeyCode::PageUp,
            "End" => KeyCode::End,
            _ => {
                for c in key.chars() {
                    asked = view.asked(&Event::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)));
                }
                continue;
            }
        };
        asked = view.asked(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    }
    asked
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

fn selected(view: &View) -> Option<&str> {
    view.state.selected().map(|(_, cgroup)| cgroup.path.as_str())
}

/// The versions in the first line change.
fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
}

fn check(name: &str, view: &mut View, width: u16, height: u16) {
    let text = screen(view, width, height).replace(env!("CARGO_PKG_VERSION"), "VERSION");
    settings().bind(|| assert_snapshot!(format!("{name}-{width}x{height}"), text));
}

#[test]
fn list_in_each_size() {
    let mut view = view(snapshot(machine()));
    for (width, height) in [(10, 3), (20, 5), (60, 15), (80, 24), (120, 12), (240, 12)] {
        check("list", &mut view, width, height);
    }
}

#[test]
fn tree_in_each_size() {
    let mut view = tree(snapshot(pod_machine()));
    press(&mut view, &["j"]);
    for (width, height) in [(10, 3), (20, 5), (60, 15), (80, 24), (200, 24)] {
        check("tree", &mut view, width, height);
    }
    press(&mut view, &["w"]);
    check("tree-whole-names", &mut view, 160, 24);
}

#[test]
fn columns_as_picked() {
    let mut view = view(snapshot(machine()));
    press(&mut view, &["f", "a", "D"]);
    check("some-avg60-by-io", &mut view, 80, 12);
    press(&mut view, &["f", "r"]);
    check("full-reversed", &mut view, 80, 12);
}

#[test]
fn ascii_without_colour() {
    let options = Options {
        tree: true,
        ..Options::default()
    };
    let mut view = View::new(options, Palette::new(false, false));
    view.update(snapshot(pod_machine()));
    press(&mut view, &["j", "Enter"]);
    let text = screen(&mut view, 100, 40);
    assert!(text.is_ascii(), "{text}");
    check("ascii", &mut view, 100, 40);
}

#[test]
fn help_lists_all_keys() {
    let mut view = view(snapshot(machine()));
    press(&mut view, &["?"]);
    check("help", &mut view, 80, 24);
    let text = screen(&mut view, 80, 24);
    for (key, does) in HELP {
        assert!(text.contains(key) && text.contains(does), "{key} {does}");
    }
    press(&mut view, &["q"]);
    assert!(!view.state.help);
}

#[test]
fn the_selected_line_stands_out_and_is_named_in_full() {
    let mut view = view(snapshot(machine()));
    press(&mut view, &["j"]);
    let shown = buffer(&mut view, 80, 24);
    let reversed = |y| (0..80).all(|x| shown[(x, y)].modifier.contains(Modifier::REVERSED));
    assert_eq!((0..24).filter(|y| reversed(*y)).collect::<Vec<u16>>(), [6]);
    let path = "/system.slice/a-rather-long-name-of-a-service.service  1/4";
    assert_eq!(lines(&mut view, 80, 24)[23], path);
}

#[test]
fn no_size_panics() {
    for keys in [
        &[][..],
        &["t", "G"],
        &["?"],
        &["S", "p"],
        &["j", "Enter"],
        &["/", "s*", "["],
        &["Enter", "Tab", "G"],
    ] {
        let mut view = tree(snapshot(machine()));
        press(&mut view, keys);
        for (width, height) in (0..200)
            .step_by(3)
            .flat_map(|width| [0, 1, 3, 4, 7, 8, 10, 12, 24, 50].map(|height| (width, height)))
        {
            buffer(&mut view, width, height);
        }
    }
}

#[test]
fn nothing_is_there_before_the_first_figures() {
    let mut view = View::new(Options::default(), Palette::new(false, true));
    press(&mut view, &["j", "s", "t", "p", "Enter", "h", "l", "="]);
    check("collecting", &mut view, 80, 12);
    view.update(snapshot(machine()));
    assert!(lines(&mut view, 80, 24)[5].starts_with("system"));
}

#[test]
fn a_lonely_root_says_so() {
    let mut view = view(snapshot(vec![cgroup("/", 1, 0.0)]));
    assert_eq!(lines(&mut view, 80, 24)[6], "no cgroups below the root");
    press(&mut view, &["/", "x"]);
    assert_eq!(lines(&mut view, 80, 24)[6], "no cgroup matches");
}

#[test]
fn names_cannot_reach_the_terminal() {
    let name = "/\u{1b}[2J\nx\u{202e}日本";
    let mut view = view(snapshot(vec![cgroup("/", 1, 0.0), cgroup(name, 2, 1.0)]));
    let evil = Task {
        pid: 1,
        state: 'S',
        name: "\u{1b}[31mx".to_owned(),
        waited_ns: None,
    };
    press(&mut view, &["j", "Enter"]);
    view.inspected(
        Some(Inspection {
            tasks: Tasks {
                count: 1,
                seen: vec![evil],
            },
            ..Inspection::default()
        }),
        1,
    );
    let text = lines(&mut view, 120, 50).concat();
    assert_eq!(text.matches("/\\u{1b}[2J\\nx\\u{202e}日 本").count(), 3, "{text}");
    assert!(text.contains("\\u{1b}[31mx"), "{text}");
    assert!(!text.contains(char::is_control));
}

#[test]
fn colours_follow_the_figures_and_can_be_off() {
    let missed = Snapshot {
        quality: Quality {
            repaired: 2,
            ..Quality::default()
        },
        ..snapshot(machine())
    };
    let colours = |shown: &Buffer, y: u16| (0..80).map(|x| shown[(x, y)].fg).find(|colour| *colour != Color::Reset);
    let mut coloured = View::new(Options::default(), Palette::new(true, true));
    coloured.update(missed.clone());
    let shown = buffer(&mut coloured, 80, 24);
    assert_eq!(
        [2, 5, 6, 8].map(|y| colours(&shown, y)),
        [Some(Color::Yellow), Some(Color::Yellow), Some(Color::Red), None]
    );
    let mut view = view(missed);
    press(&mut view, &["j", "Enter"]);
    let shown = buffer(&mut view, 80, 24);
    assert!((0..24).all(|y| colours(&shown, y).is_none()));
    assert!(lines(&mut view, 80, 24)[2].starts_with("!repaired 2  missed 0"));
}

#[test]
fn what_is_gone_fades_for_one_interval() {
    let mut view = view(snapshot(machine()));
    let mut rest = machine();
    rest.remove(4);
    let later = |n| Snapshot {
        time_ns: snapshot(Vec::new()).time_ns + n * SECOND,
        ..snapshot(rest.clone())
    };
    view.update(later(1));
    check("gone", &mut view, 80, 12);
    let shown = buffer(&mut view, 80, 12);
    assert!(shown[(0, 7)].modifier.contains(Modifier::DIM | Modifier::CROSSED_OUT));
    view.update(later(2));
    assert!(!screen(&mut view, 80, 12).contains("user.slice"));
}

#[test]
fn the_last_interval_is_a_window_too() {
    let options = Options {
        window: Window::LAST,
        ..Options::default()
    };
    let mut view = View::new(options, Palette::new(false, true));
    view.update(snapshot(machine()));
    let lines = lines(&mut view, 80, 24);
    assert!(lines[0].contains("last interval"), "{}", lines[0]);
    assert!(lines[5].contains("25.00"), "{}", lines[5]);
}
