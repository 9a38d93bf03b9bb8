//! `top` in a real terminal.

use rustix::process::{Signal, kill_process};
use tests::{cgroup::Cgroup, program, session::Session, terminal::Terminal};

#[test]
fn top_shows_cgroups_and_q_leaves() {
    let Some(session) = Session::start("top_shows_cgroups_and_q_leaves") else {
        return;
    };
    let Some(terminal) = Terminal::new() else {
        return session.skip("tmux is not installed");
    };
    let cgroup = Cgroup::new(session.name());
    start(&terminal);
    terminal.wait_for("the cgroup", |screen| screen.contains(name(&cgroup)));
    terminal.press(&["q"]);
    is_sane(&terminal, 0);
}

#[test]
fn top_restores_the_terminal_when_terminated() {
    let Some(session) = Session::start("top_restores_the_terminal_when_terminated") else {
        return;
    };
    let Some(terminal) = Terminal::new() else {
        return session.skip("tmux is not installed");
    };
    let cgroup = Cgroup::new(session.name());
    for signal in [Signal::TERM, Signal::INT] {
        start(&terminal);
        terminal.wait_for("the cgroup", |screen| screen.contains(name(&cgroup)));
        let pid = terminal.process("psitrace");
        kill_process(pid, signal).expect("psitrace runs");
        is_sane(&terminal, 0);
    }
}

fn name(cgroup: &Cgroup) -> &str {
    // It may be cut to the width of its column.
    &cgroup.path()[1..20]
}

fn start(terminal: &Terminal) {
    let words = program::words(&["top"]);
    let words: Vec<String> = words
        .iter()
        .map(|word| format!("'{}'", word.to_str().expect("UTF-8")))
        .collect();
    // Not in one piece, so that the line itself is not taken for its output.
    terminal.type_line(&format!("{}; echo ended=$?; stty -a; echo com''plete", words.join(" ")));
}

/// It has left its screen with this exit code, and the terminal takes and shows lines as before.
fn is_sane(terminal: &Terminal, code: i32) {
    let screen = terminal.wait_for("the end", |screen| screen.contains("complete"));
    assert!(
        screen.contains(&format!("ended={code}")),
        "expected exit code {code}, saw\n{screen}"
    );
    let settings: Vec<&str> = screen
        .split_whitespace()
        .map(|word| word.trim_end_matches(';'))
        .collect();
    for setting in ["icanon", "echo", "isig", "opost"] {
        assert!(settings.contains(&setting), "expected {setting}, saw\n{screen}");
    }
    terminal.type_line("clear");
    terminal.wait_for("an empty screen", |screen| !screen.contains("complete"));
}
