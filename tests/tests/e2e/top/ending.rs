//! However it ends or stops, the terminal is as before.

use std::fs;

use rustix::process::{Signal, kill_process};
use tests::{PATIENCE, eventually};

use super::{assert_usual, command, is_sane, name, set_up, start};

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
