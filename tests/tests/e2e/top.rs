//! `top` in a real terminal.

mod acts;
mod ending;
mod terminals;

use tests::{cgroup::Cgroup, program, session::Session, terminal::Terminal};

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
