//! Pictures of `psitrace top` for the documents: the real program in a real terminal, on cgroups with real loads.
//! Writes one JSON object a picture; `screen` has escape sequences for colours.

use std::{thread::sleep, time::Duration};

use serde_json::json;
use tests::{
    cgroup::Cgroup,
    disk,
    load::{self, Load},
    program,
    terminal::Terminal,
};

/// Until the averages and the charts tell something.
const WARM_UP: Duration = Duration::from_secs(45);
/// For a frame with new figures, and details of a cgroup.
const A_MOMENT: Duration = Duration::from_millis(2500);

const POD: &str = "kubepods-burstable-pod1a2b3c4d_5e6f_4a7b_8c9d_0e1f2a3b4c5d.slice";
const CONTAINER: &str = "cri-containerd-7f3c9a1b2d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8.scope";

/// A picture: its name, the terminal's size, and the keys that lead there from the one before.
const PICTURES: [(&str, u16, u16, &[&str]); 8] = [
    ("tree", 100, 20, &[]),
    ("list", 100, 16, &["t"]),
    ("bars", 120, 16, &["t", "f"]),
    ("filter", 100, 16, &["f", "f", "C", "/", "d", "b"]),
    ("details", 120, 44, &["Enter", "Down", "Down", "Enter"]),
    ("help", 80, 24, &["Escape", "Escape", "Escape", "?"]),
    ("small", 60, 15, &["x"]),
    ("tiny", 10, 3, &[]),
];

fn main() {
    let psi_load = load::program().expect("psi-load lies beside this program");
    let terminal = Terminal::sized(100, 20).expect("tmux is installed");
    let file = disk::filled(&std::env::temp_dir());
    let file = file.path();

    let web = Cgroup::named("web.slice");
    let (api, db) = (web.child("api.service"), web.child("db.service"));
    let batch = Cgroup::named("batch.slice");
    let backup = batch.child("backup.service");
    let pods = Cgroup::named("kubepods.slice");
    let burstable = pods.child("kubepods-burstable.slice");
    let pod = burstable.child(POD);
    let container = pod.child(CONTAINER);
    let start = |cgroup: &Cgroup| Load::new(psi_load.to_str().expect("UTF-8")).within(cgroup).behind();
    let _loads = [
        start(&api).start(&["ping-pong", "--pairs", "2"]),
        start(&db).start_on(&["read"], file),
        start(&db).start(&["spin"]),
        start(&backup).start(&["spin", "--threads", "2"]),
        start(&container).start(&["processes"]),
    ];

    take(&terminal, "", &PICTURES);
    // The same without colour and beyond ASCII.
    terminal.resize(100, 20);
    take(&terminal, "LC_ALL=C NO_COLOR=1", &[("ascii", 100, 20, &[])]);
}

fn take(terminal: &Terminal, environment: &str, pictures: &[(&str, u16, u16, &[&str])]) {
    let words = program::words(&["top"]);
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    terminal.type_line(format!("{environment} {}", words.join(" ")).trim());
    terminal.wait_for("the cgroups", |screen| screen.contains("kubepods"));
    sleep(WARM_UP);
    for (name, columns, lines, keys) in pictures {
        terminal.resize(*columns, *lines);
        sleep(A_MOMENT);
        for key in *keys {
            terminal.press(&[key]);
        }
        sleep(A_MOMENT);
        let screen = terminal.coloured_screen();
        println!(
            "{}",
            json!({ "name": name, "columns": columns, "lines": lines, "screen": screen })
        );
    }
    terminal.press(&["q"]);
    terminal.wait_for("the shell", |screen| screen.contains('$'));
    terminal.type_line("clear");
}
