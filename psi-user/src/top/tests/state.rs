//! What stays and what goes as figures come and keys are pressed.

use std::time::Duration;

use crate::{
    model::{CgroupPressure, Snapshot},
    top::{
        MAX_INTERVAL, MIN_INTERVAL, Options, SortKey,
        fixture::{cgroup, snapshot},
        keys::Action,
        state::{Asked, State},
    },
};

fn state(cgroups: Vec<CgroupPressure>) -> State {
    let mut state = State::new(Options::default());
    state.update(snapshot(cgroups));
    state.visible(10);
    state
}

/// Takes these figures a second after the last ones.
fn later(state: &mut State, cgroups: Vec<CgroupPressure>) {
    let time_ns = state.snapshot().map_or(0, |snapshot| snapshot.time_ns + 1_000_000_000);
    state.update(Snapshot {
        time_ns,
        ..snapshot(cgroups)
    });
}

fn press(state: &mut State, actions: &[Action]) {
    for action in actions {
        assert_ne!(state.apply(Some(*action)), Asked::Quit);
    }
}

fn names(state: &State) -> Vec<&str> {
    state.rows().iter().map(|row| state.name(*row)).collect()
}

fn selected(state: &State) -> Option<(usize, &str)> {
    state.selected().map(|(row, cgroup)| (row, cgroup.path.as_str()))
}

fn letters() -> Vec<CgroupPressure> {
    vec![
        cgroup("/", 1, 0.0),
        cgroup("/a", 2, 3.0),
        cgroup("/b", 3, 2.0),
        cgroup("/c", 4, 1.0),
    ]
}

#[test]
fn the_selection_stays_on_its_cgroup() {
    let mut state = state(letters());
    press(&mut state, &[Action::Down, Action::Down]);
    assert_eq!(selected(&state), Some((1, "/b")));
    let mut moved = letters();
    moved[2] = cgroup("/b", 3, 0.5);
    later(&mut state, moved);
    assert_eq!(names(&state), ["/a", "/c", "/b"]);
    assert_eq!(selected(&state), Some((2, "/b")));
    press(&mut state, &[Action::SortPrevious]);
    assert_eq!(state.sort, SortKey::Cgroup);
    assert_eq!(selected(&state), Some((1, "/b")));
}

#[test]
fn a_cgroup_of_the_same_name_is_another_one() {
    let mut state = state(letters());
    press(&mut state, &[Action::Down]);
    let made_anew = vec![cgroup("/", 1, 0.0), cgroup("/b", 3, 9.0), cgroup("/a", 20, 3.0)];
    later(&mut state, made_anew);
    assert_eq!(names(&state), ["/b", "/a", "/c"]);
    assert_eq!(selected(&state), Some((0, "/b")));
}

#[test]
fn a_vanished_cgroup_leaves_the_selection_on_its_row() {
    let mut state = state(letters());
    press(&mut state, &[Action::Last]);
    assert_eq!(selected(&state), Some((2, "/c")));
    // It fades first.
    later(&mut state, letters()[..3].to_vec());
    assert_eq!(selected(&state), Some((2, "/c")));
    assert!(state.is_gone(4));
    assert_eq!(state.count(), 3);
    later(&mut state, letters()[..3].to_vec());
    assert_eq!(names(&state), ["/a", "/b"]);
    assert_eq!(selected(&state), Some((1, "/b")));
    later(&mut state, Vec::new());
    later(&mut state, Vec::new());
    assert_eq!(selected(&state), None);
    press(&mut state, &[Action::Down, Action::PageUp, Action::Last, Action::First]);
    assert_eq!(selected(&state), None);
}

#[test]
fn the_page_follows_the_selection_only() {
    let cgroups = (1..=100).map(|id| cgroup(&format!("/{id:03}"), id, 0.0)).collect();
    let mut state = state(cgroups);
    assert_eq!(state.visible(10), 0..10);
    press(&mut state, &[Action::PageDown, Action::PageDown]);
    assert_eq!(selected(&state), Some((19, "/020")));
    assert_eq!(state.visible(10), 10..20);
    press(&mut state, &[Action::Last]);
    assert_eq!(state.visible(10), 90..100);
    assert_eq!(state.visible(40), 60..100);
    assert_eq!(state.visible(1000), 0..100);
    assert_eq!(state.visible(0), 99..100);
    press(&mut state, &[Action::First, Action::PageUp, Action::Up, Action::Up]);
    assert_eq!(selected(&state), None);
    assert_eq!(state.visible(10), 0..10);
}

#[test]
fn a_pause_holds_the_view() {
    let mut state = state(letters());
    press(&mut state, &[Action::Pause]);
    later(&mut state, vec![cgroup("/new", 9, 0.0)]);
    assert_eq!(names(&state), ["/a", "/b", "/c"]);
    press(&mut state, &[Action::Pause]);
    assert_eq!(names(&state), ["/a", "/b", "/c", "/new"]);
    assert_eq!(state.count(), 1);
}

#[test]
fn nothing_fades_when_time_goes_back() {
    let mut state = state(letters());
    state.update(Snapshot {
        time_ns: 1,
        ..snapshot(letters()[..2].to_vec())
    });
    assert_eq!(names(&state), ["/a"]);
}

#[test]
fn the_wheel_moves_the_page_alone() {
    let cgroups = (1..=100).map(|id| cgroup(&format!("/{id:03}"), id, 0.0)).collect();
    let mut state = state(cgroups);
    press(&mut state, &[Action::Down]);
    state.scroll(50);
    assert_eq!(state.visible(10), 50..60);
    assert_eq!(selected(&state), Some((0, "/001")));
    state.scroll(500);
    assert_eq!(state.visible(10), 90..100);
    state.scroll(-1);
    assert_eq!(state.visible(10), 89..99);
    press(&mut state, &[Action::Down]);
    assert_eq!(state.visible(10), 1..11);
}

#[test]
fn any_key_closes_the_help() {
    let mut state = state(letters());
    for action in [None, Some(Action::Quit), Some(Action::Help), Some(Action::Down)] {
        press(&mut state, &[Action::Help]);
        assert!(state.help);
        assert_eq!(state.apply(action), Asked::Nothing);
        assert!(!state.help);
        assert_eq!(selected(&state), None);
    }
    assert_eq!(state.apply(Some(Action::Quit)), Asked::Quit);
    press(&mut state, &[Action::Help]);
    assert_eq!(state.apply(Some(Action::Interrupt)), Asked::Quit);
}

#[test]
fn the_interval_has_ends() {
    let mut state = State::new(Options {
        interval: Duration::from_millis(1500),
        ..Options::default()
    });
    press(&mut state, &[Action::Faster]);
    assert_eq!(state.interval, Duration::from_secs(1));
    press(&mut state, &[Action::Faster; 9]);
    assert_eq!(state.interval, MIN_INTERVAL);
    press(&mut state, &[Action::Slower; 20]);
    assert_eq!(state.interval, MAX_INTERVAL);
}

#[test]
fn windows_have_figures_of_their_own() {
    let mut state = state(vec![cgroup("/a", 1, 3.0)]);
    let shown = |state: &State| {
        state
            .sort
            .figure(state.cgroup(state.rows()[0]).expect("a row"), state.window)
    };
    assert_eq!(shown(&state), Some(3.0));
    press(&mut state, &[Action::Window, Action::Window, Action::Window]);
    assert_eq!(shown(&state), Some(6.0));
}
