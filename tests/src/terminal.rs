//! A real terminal, by tmux.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::Pid;
use tempfile::TempDir;

use crate::PATIENCE;

/// A terminal with a shell, on a tmux server of its own that ends when this is dropped.
#[derive(Debug)]
pub struct Terminal {
    /// Holds the server's socket.
    folder: TempDir,
}

impl Terminal {
    /// A new one of 160 columns and 50 lines; none without tmux.
    pub fn new() -> Option<Self> {
        Self::sized(160, 50)
    }

    /// A new one of another size.
    pub fn sized(columns: u16, lines: u16) -> Option<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path)
            .any(|folder| folder.join("tmux").is_file())
            .then_some(())?;
        let terminal = Self {
            folder: tempfile::tempdir().expect("a folder"),
        };
        let (columns, lines) = (columns.to_string(), lines.to_string());
        let size = ["-x", &columns, "-y", &lines];
        // The locale's character set is the terminal's.
        let shell = "env PS1='$ ' LC_ALL=C.UTF-8 sh";
        terminal.tmux(&[&["-f", "/dev/null", "new-session", "-d"], &size[..], &[shell]].concat());
        terminal.wait_for("a prompt", |screen| screen.starts_with('$'));
        Some(terminal)
    }

    /// Types a line.
    pub fn type_line(&self, line: &str) {
        self.press(&["-l", line]);
        self.press(&["Enter"]);
    }

    /// Presses a key, by tmux's name of it.
    pub fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Clicks on a place, counted from 0; what runs there must have asked for the mouse.
    pub fn click(&self, column: usize, line: usize) {
        for end in ["M", "m"] {
            self.press(&["-l", &format!("\u{1b}[<0;{};{}{end}", column + 1, line + 1)]);
        }
    }

    /// Changes its size.
    pub fn resize(&self, columns: u16, lines: u16) {
        let (columns, lines) = (columns.to_string(), lines.to_string());
        self.tmux(&["resize-window", "-x", &columns, "-y", &lines]);
    }

    /// What it shows.
    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The same with escape sequences for colours and the like.
    pub fn coloured_screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// What comes from now on is written to a file, byte by byte.
    pub fn record(&self, file: &Path) {
        self.tmux(&["pipe-pane", "-O", &format!("cat > '{}'", file.display())]);
    }

    /// The process of this name that reads from it.
    pub fn process(&self, name: &str) -> Pid {
        let tty = self.tmux(&["display-message", "-p", "#{pane_tty}"]);
        let reads_here = |process: &Path| {
            fs::read_to_string(process.join("comm")).is_ok_and(|comm| comm.trim() == name)
                && fs::read_link(process.join("fd/0")).is_ok_and(|stdin| stdin == Path::new(tty.trim()))
        };
        let mut processes = fs::read_dir("/proc").expect("/proc is mounted").flatten();
        let process = processes.find(|entry| reads_here(&entry.path()));
        process
            .and_then(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
            .unwrap_or_else(|| panic!("expected {name} on {tty}, saw\n{}", self.screen()))
    }

    /// Waits until it shows what is wanted, and returns that.
    #[track_caller]
    pub fn wait_for(&self, what: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        let mut screen = String::new();
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            screen = self.screen();
            if is_wanted(&screen) {
                return screen;
            }
            sleep(Duration::from_millis(100));
        }
        panic!("expected {what}, saw:\n{screen}");
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        // Not within another one, and with a locale that lets it show all characters.
        command
            .env_remove("TMUX")
            .env("TERM", "xterm-256color")
            .args(["-u", "-S"])
            .arg(self.socket())
            .args(arguments);
        let output = command.stdin(Stdio::null()).output().expect("tmux starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {arguments:?}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        let command = command.arg("-S").arg(self.socket()).arg("kill-server");
        // Not a panic: a failed test may be on its way out already.
        let _ = command.stderr(Stdio::null()).status();
    }
}
