//! Details of a cgroup, and recordings.

use std::time::{Duration, Instant};

use super::{SECOND, check, press, screen, selected, tree};
use crate::{
    model::Snapshot,
    pressure_file::{Line, Lines},
    top::{
        Inspection, Options, Palette, Task, Tasks, View,
        fixture::{Recording, cgroup, pod_machine, snapshot},
        keys::REPLAY_HELP,
        player::{Player, Travel},
        search::Looked,
        state::Asked,
    },
};

/// Five minutes with a figure that rises and falls, and then what the kernel tells.
fn with_details() -> View {
    let mut view = tree(snapshot(pod_machine()));
    let start = snapshot(Vec::new()).time_ns - 200 * SECOND;
    view.state.trails.clear();
    for n in 0..=100u64 {
        let mut frame = pod_machine();
        for cgroup in &mut frame {
            let percent = if n < 50 { n as f64 } else { 0.0 };
            cgroup.cpu.some.last = percent;
            cgroup.io.some.last = percent / 50.0;
        }
        view.update(Snapshot {
            time_ns: start + 2 * n * SECOND,
            interval_ns: 2 * SECOND,
            ..snapshot(frame)
        });
    }
    press(&mut view, &["/", "db", "Enter", "G", "Enter"]);
    let path = view.wants().expect("details are asked for").to_owned();
    assert!(path.ends_with("db.service"), "{path}");
    let task = |pid, state, waited_ns| Task {
        pid,
        state,
        name: format!("task {pid}"),
        waited_ns,
    };
    for (waited_ns, at_ns) in [(0, SECOND), (SECOND / 4, 2 * SECOND)] {
        let line = Line {
            avg10: 12.34,
            avg60: 5.0,
            avg300: 1.0,
            total_us: 1_234_567,
        };
        let both = Some(Lines {
            some: Some(line),
            full: Some(line),
        });
        let seen = vec![
            task(77, 'S', Some(0)),
            task(78, 'R', Some(waited_ns)),
            task(79, 'D', None),
        ];
        let inspection = Inspection {
            tasks: Tasks { count: 3, seen },
            kernel: [both, both, both, None],
        };
        view.inspected(Some(inspection), at_ns);
    }
    assert_eq!(view.wants(), None);
    view
}

#[test]
fn details_in_each_size() {
    let mut view = with_details();
    for (width, height) in [(60, 15), (80, 24), (100, 50), (140, 50), (240, 30)] {
        check("details", &mut view, width, height);
    }
    // All of it can be reached where there is no room.
    press(&mut view, &["Tab", "G"]);
    check("details-end", &mut view, 60, 15);
    press(&mut view, &["Esc"]);
    assert!(view.state.pane.is_none() && !view.state.in_pane);
}

#[test]
fn details_follow_the_selection_and_outlive_the_cgroup() {
    let mut view = with_details();
    press(&mut view, &["Esc", "Esc", "g", "Enter"]);
    let first = view.state.pane.as_ref().map(|pane| pane.id);
    press(&mut view, &["j"]);
    assert_ne!(view.state.pane.as_ref().map(|pane| pane.id), first);
    assert_eq!(
        view.state.pane.as_ref().map(|pane| pane.cgroup.path.as_str()),
        selected(&view)
    );
    let path = selected(&view).expect("a selection").to_owned();
    let mut rest = pod_machine();
    rest.retain(|cgroup| !cgroup.path.starts_with(&path));
    for n in 1..3 {
        view.update(Snapshot {
            time_ns: snapshot(Vec::new()).time_ns + n * SECOND,
            ..snapshot(rest.clone())
        });
        let text = screen(&mut view, 100, 50);
        assert!(text.contains(&format!("── {path}  gone  id ")), "{text}");
        assert_eq!(text.contains("(gone)"), n == 1, "{text}");
    }
}

fn look(player: &mut Player<'_>, forward: bool, view: &View) -> Looked {
    let mut search = player.search(forward, view.spikes());
    let until = Instant::now() + Duration::from_mins(1);
    player.look(&mut search, until).expect("frames can be read")
}

#[test]
fn a_recording_is_shown_as_one() {
    let frame = |n: u64, percent: f64| Snapshot {
        time_ns: snapshot(Vec::new()).time_ns + 5 * n * SECOND,
        interval_ns: 5 * SECOND,
        ..snapshot(vec![
            cgroup("/", 1, 1.0),
            cgroup("/a", 2, percent),
            cgroup("/b", 3, 1.0),
        ])
    };
    let figures = [1.0, 2.0, 50.0, 60.0, 3.0];
    let mut recording = Recording((0..).zip(figures).map(|(n, percent)| frame(n, percent)).collect());
    let mut player = Player::new(&mut recording).expect("frames");
    let mut view = View::new(Options::default(), Palette::new(false, true));
    view.at(player.place());
    view.update(player.frame().expect("a frame"));
    check("replay", &mut view, 100, 12);
    assert_eq!(press(&mut view, &["Right"]), Asked::Travel(Travel::Frames(1)));
    assert_eq!(
        press(&mut view, &["PgUp"]),
        Asked::Travel(Travel::Span(-60_000_000_000))
    );

    assert_eq!(press(&mut view, &["n"]), Asked::Spike { forward: true });
    let looked = look(&mut player, true, &view);
    assert_eq!(looked, Looked::Found(2));
    assert_eq!(player.place().index, 2);
    view.at(player.place());
    view.update(player.frame().expect("a frame"));
    check("replay-spike", &mut view, 100, 12);
    // What is selected is looked at alone.
    press(&mut view, &["G"]);
    assert_eq!(selected(&view), Some("/b"));
    assert_eq!(look(&mut player, false, &view), Looked::Nowhere);

    assert_eq!(press(&mut view, &["g", "3:04:x", "Enter"]), Asked::Nothing);
    check("replay-jump", &mut view, 100, 12);
    press(&mut view, &["Esc", "g"]);
    let asked = press(&mut view, &["03:04:10", "Enter"]);
    assert_eq!(asked, Asked::Travel(Travel::To(frame(1, 0.0).time_ns)));
    press(&mut view, &["?"]);
    let text = screen(&mut view, 100, 40);
    for (key, does) in REPLAY_HELP {
        assert!(text.contains(key) && text.contains(does), "{key} {does}");
    }
    press(&mut view, &["?", "Enter"]);
    view.inspected(None, 1);
    assert!(screen(&mut view, 100, 40).contains("tasks: not recorded"));
}
