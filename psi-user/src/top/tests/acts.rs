//! What keys and the mouse do to the list and the tree.

use crossterm::event::{Event, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::{check, lines, machine, press, selected, tree, view};
use crate::top::{
    View,
    fixture::{cgroup, pod_machine, snapshot},
};

fn mouse(view: &mut View, kind: MouseEventKind, column: u16, row: u16) {
    view.event(&Event::Mouse(MouseEvent {
        kind,
        column,
        row,
        modifiers: KeyModifiers::NONE,
    }));
}

const CLICK: MouseEventKind = MouseEventKind::Down(MouseButton::Left);

#[test]
fn folding_goes_as_in_a_file_manager() {
    let mut view = tree(snapshot(machine()));
    press(&mut view, &["N", "j", "l"]);
    assert_eq!(selected(&view), Some("/system.slice"));
    press(&mut view, &["Left"]);
    check("folded", &mut view, 80, 12);
    press(&mut view, &["j"]);
    assert_eq!(selected(&view), Some("/user.slice"));
    press(&mut view, &["k", "Right", "j"]);
    assert_eq!(
        selected(&view),
        Some("/system.slice/a-rather-long-name-of-a-service.service")
    );
    // Nothing to fold: to the parent.
    press(&mut view, &["h"]);
    assert_eq!(selected(&view), Some("/system.slice"));
    press(&mut view, &["k", "="]);
    assert_eq!(view.state.rows().len(), 2);
    press(&mut view, &["="]);
    assert_eq!(view.state.rows().len(), 4);
    press(&mut view, &["=", "*"]);
    assert_eq!(view.state.rows().len(), 4);
}

#[test]
fn the_filter_works_as_it_is_typed() {
    let mut view = tree(snapshot(pod_machine()));
    press(&mut view, &["/", "db"]);
    check("filter", &mut view, 80, 15);
    press(&mut view, &["["]);
    let last = lines(&mut view, 80, 15).pop().expect("a line");
    assert!(
        last.starts_with("/db[ ") && last.contains("unclosed character class"),
        "{last}"
    );
    // What was found before half a glob stays, and that is no filter to be kept.
    press(&mut view, &["Enter"]);
    assert!(view.state.prompt.is_some());
    press(&mut view, &["]"]);
    press(&mut view, &["Esc"]);
    assert!(!view.state.filter.is_active() && view.state.prompt.is_none());
    press(&mut view, &["/", "q*", "Enter"]);
    assert_eq!(view.state.filter.text(), "q*");
    assert_eq!(lines(&mut view, 80, 15)[6], "no cgroup matches");
    press(&mut view, &["Esc"]);
    assert!(!view.state.filter.is_active());
}

#[test]
fn sort_keys() {
    let mut view = view(snapshot(machine()));
    for (key, expected) in [
        ("C", "cpu full"),
        ("C", "cpu some"),
        ("M", "mem some"),
        ("M", "mem full"),
        ("D", "io some"),
        ("I", "irq full"),
        ("I", "irq full"),
        ("N", "cgroup"),
        (">", "cpu some"),
        ("<", "cgroup"),
        ("S", "irq full"),
        ("s", "cgroup"),
    ] {
        press(&mut view, &[key]);
        assert_eq!(view.state.sort.title(), expected, "after {key}");
    }
}

#[test]
fn the_mouse_selects_scrolls_and_sorts() {
    let mut view = view(snapshot(machine()));
    let lines_before = lines(&mut view, 80, 24);
    mouse(&mut view, CLICK, 3, 7);
    assert_eq!(selected(&view), Some("/user.slice"));
    assert!(lines_before[7].starts_with("/user.slice"));
    mouse(&mut view, CLICK, 3, 20);
    assert_eq!(selected(&view), Some("/user.slice"));
    // Again: details.
    mouse(&mut view, CLICK, 30, 7);
    assert!(view.state.pane.is_some());
    press(&mut view, &["Esc"]);
    lines(&mut view, 80, 24);
    let title = lines_before[4].find("full").expect("a title") as u16;
    mouse(&mut view, CLICK, title, 4);
    assert_eq!(view.state.sort.title(), "cpu full");
    mouse(&mut view, CLICK, title, 3);
    assert!(view.state.reversed);
    mouse(&mut view, CLICK, 0, 4);
    assert_eq!(view.state.sort.title(), "cgroup");

    press(&mut view, &["Esc", "N", "r"]);
    let many: Vec<_> = (1..=100).map(|id| cgroup(&format!("/{id:03}"), id, 0.0)).collect();
    view.update(snapshot(many));
    lines(&mut view, 80, 24);
    for _ in 0..4 {
        mouse(&mut view, MouseEventKind::ScrollDown, 3, 10);
    }
    lines(&mut view, 80, 24);
    assert_eq!(view.state.first(), 12);
    mouse(&mut view, MouseEventKind::ScrollUp, 3, 10);
    let shown = lines(&mut view, 80, 24);
    let first = shown.iter().position(|line| line.starts_with("/0")).expect("a row");
    mouse(&mut view, CLICK, 3, first as u16);
    assert_eq!(view.state.selected().map(|(row, _)| row), Some(9));
}
