//! A `psitrace dump` that runs while the test goes on.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Read as _},
    process::{Child, Stdio},
    sync::mpsc::{Receiver, channel},
    thread::{self, JoinHandle},
    time::SystemTime,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{PATIENCE, eventually, program, program::Finished, record::Record};

/// A running `psitrace dump`. It is killed when this is dropped.
#[derive(Debug)]
pub struct Dump {
    child: Child,
    lines: Receiver<String>,
    stderr: Option<JoinHandle<io::Result<String>>>,
    at_ns: u64,
}

impl Dump {
    /// Starts it, with these arguments after `dump`.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_command(&[&["dump"], arguments].concat())
    }

    /// Starts another command than `dump`.
    pub fn start_command(arguments: &[&str]) -> Self {
        let mut child = program::command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("psitrace starts");
        let stdout = child.stdout.take().expect("a pipe");
        let mut stderr = child.stderr.take().expect("a pipe");
        let (sender, lines) = channel();
        thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            let mut line = String::new();
            // With their ends: a line without one is not whole.
            while stdout.read_line(&mut line).is_ok_and(|length| length > 0) {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    break;
                }
            }
        });
        let stderr = thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).map(|_| text)
        });
        Self {
            child,
            lines,
            stderr: Some(stderr),
            at_ns: 0,
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line, with its end.
    #[track_caller]
    pub fn line(&mut self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap_or_else(|error| {
            self.signal(Signal::KILL);
            panic!("expected another line, but {error}; messages: {:?}", self.messages());
        })
    }

    /// The next record.
    #[track_caller]
    pub fn record(&mut self) -> Record {
        let line = self.line();
        self.parse(&line)
    }

    /// The next record that is made from now on: there may be older ones that are not read yet.
    #[track_caller]
    pub fn fresh(&mut self) -> Record {
        let now_ns = SystemTime::UNIX_EPOCH.elapsed().expect("a clock past 1970").as_nanos();
        loop {
            let record = self.record();
            if record.json["time_ns"]
                .as_u64()
                .is_some_and(|time_ns| u128::from(time_ns) >= now_ns)
            {
                return record;
            }
        }
    }

    /// The `n`th record that is made from now on.
    #[track_caller]
    pub fn fresh_after(&mut self, n: usize) -> Record {
        let mut record = self.fresh();
        for _ in 1..n {
            record = self.record();
        }
        record
    }

    /// The first of the `n` records made from now on that `is_wanted`; panics with the last one if none is.
    #[track_caller]
    pub fn find(&mut self, what: &str, n: usize, is_wanted: impl Fn(&Record) -> bool) -> Record {
        // Older ones would use up the `n`, or tell of what was before.
        let mut record = self.fresh();
        for _ in 1..n {
            if is_wanted(&record) {
                return record;
            }
            record = self.record();
        }
        assert!(
            is_wanted(&record),
            "expected within {n} records: {what}; saw {}",
            record.json
        );
        record
    }

    /// Waits until it is attached and takes signals.
    pub fn wait_until_ready(&self) {
        let is_caught =
            |set: &str| u64::from_str_radix(set, 16).is_ok_and(|set| set & 1 << (Signal::TERM.as_raw() - 1) != 0);
        eventually("psitrace takes signals", PATIENCE, || {
            let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("psitrace runs");
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
            is_caught(caught.trim()).then_some(())
        });
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid().cast_signed()).expect("a pid is not 0");
        kill_process(pid, signal).expect("psitrace can be signalled");
    }

    /// Stops reading, as `head` does when it has enough; then waits for the end.
    #[track_caller]
    pub fn hang_up(mut self) -> Finished {
        // The reading thread ends, and with it the pipe, once it cannot hand on its next line.
        self.lines = channel().1;
        self.wait()
    }

    /// Waits for the end; `stdout` is what was not read.
    #[track_caller]
    pub fn wait(mut self) -> Finished {
        let status = eventually("psitrace ends", PATIENCE, || self.child.try_wait().expect("own child"));
        let stdout = self.lines.iter().collect();
        Finished {
            code: status.code(),
            stdout,
            stderr: self.messages(),
        }
    }

    /// Ends it by SIGINT, as Ctrl-C does; panics unless that is a success without a message. Returns the last record.
    #[track_caller]
    pub fn finish(mut self) -> Record {
        let before = self.fresh();
        self.signal(Signal::INT);
        let finished = self.wait();
        finished.expect_success();
        finished
            .stdout
            .lines()
            .fold(before, |record, line| Record::parse(line, record.at_ns))
    }

    fn parse(&mut self, line: &str) -> Record {
        assert!(line.ends_with('\n'), "expected whole lines, saw {line:?}");
        let record = Record::parse(line, self.at_ns);
        self.at_ns = record.at_ns;
        record
    }

    fn messages(&mut self) -> String {
        let text = self.stderr.take().and_then(|reader| reader.join().ok());
        text.and_then(Result::ok).unwrap_or_default()
    }
}

impl Drop for Dump {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
