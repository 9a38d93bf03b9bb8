//! Requests to a running tracer: a Unix socket in [`DIRECTORY`], one request a line in JSON, one answer a line.
//!
//! A request is an object whose `request` names what is wanted; a new kind is a new variant of [`Request`]. A tracer
//! that does not know it says so.

use std::{
    fs, io,
    io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::{
            fs::{DirBuilderExt as _, PermissionsExt as _},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    process,
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// Where the sockets are, one for each running tracer: its process id and `.sock`. Only root may enter.
pub const DIRECTORY: &str = "/run/psitrace";
/// Longest request, bytes.
const LONGEST: usize = 64 << 10;
/// Connections at a time.
const MOST: usize = 16;
/// How long an asker waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Lets a cgroup's times stand still, and hides it.
    Disable {
        /// Its path from the root of the hierarchy.
        cgroup: String,
    },
    /// Lets its times go on.
    Enable {
        /// Its path from the root of the hierarchy.
        cgroup: String,
    },
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The root.
    #[error("the root is the whole system and cannot be disabled: the kernel has no cgroup.pressure for it either")]
    Root,
    /// No such directory in the hierarchy that is traced.
    #[error("no such cgroup")]
    NoCgroup,
    /// It has no figures: left out, or without a slot.
    #[error("that cgroup has no figures there: left out by --track, no slot left (--max-cgroups), or too deep")]
    NotTracked,
    /// The request is not understood.
    #[error("that version of psitrace does not know this request")]
    Unknown,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Why not; absent if it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refusal>,
}

/// The tracer's end.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: UnixListener,
    path: PathBuf,
    connections: Vec<Connection>,
}

#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    /// What was read of a request that is not whole yet.
    begun: Vec<u8>,
}

impl Listener {
    /// Makes this process's socket, and removes those of processes that were killed.
    pub(crate) fn new() -> io::Result<Self> {
        let directory = Path::new(DIRECTORY);
        let path = directory.join(format!("{}.sock", process::id()));
        let bind = || {
            match fs::DirBuilder::new().mode(0o700).create(directory) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => sweep(directory),
            }
            UnixListener::bind(&path)
        };
        let socket = match bind() {
            // The last one in it has just left and taken it along.
            Err(error) if error.kind() == ErrorKind::NotFound => bind(),
            other => other,
        }?;
        let this = Self {
            socket,
            path,
            connections: Vec::new(),
        };
        fs::set_permissions(&this.path, fs::Permissions::from_mode(0o700))?;
        this.socket.set_nonblocking(true)?;
        Ok(this)
    }

    /// Takes new connections; `watch` is to wake whoever calls [`Self::answer`] when one can be read.
    pub(crate) fn accept(&mut self, watch: impl Fn(BorrowedFd<'_>) -> io::Result<()>) {
        while let Ok((stream, _)) = self.socket.accept() {
            let is_ready = stream
                .set_nonblocking(true)
                .and_then(|()| watch(stream.as_fd()))
                .is_ok();
            if is_ready && self.connections.len() < MOST {
                self.connections.push(Connection {
                    stream,
                    begun: Vec::new(),
                });
            }
        }
    }

    /// Answers what was asked. Never waits.
    pub(crate) fn answer(&mut self, mut answer: impl FnMut(&Request) -> Result<(), Refusal>) {
        self.connections
            .retain_mut(|connection| connection.answer(&mut answer).is_ok());
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // It may have been removed already.
        let _ = fs::remove_file(&self.path);
        // Fails while others are in it.
        let _ = fs::remove_dir(DIRECTORY);
    }
}

impl Connection {
    /// Answers all requests that are whole. An error ends the connection.
    fn answer(&mut self, answer: &mut impl FnMut(&Request) -> Result<(), Refusal>) -> io::Result<()> {
        let mut buffer = [0; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.begun.extend(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            while let Some(end) = self.begun.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.begun.drain(..=end).collect();
                let refused = match serde_json::from_slice(&line) {
                    Ok(request) => answer(&request).err(),
                    Err(_) => Some(Refusal::Unknown),
                };
                // Whoever does not read its answers, so that there is no room for one, gets no more.
                write_line(&mut self.stream, &Answer { refused })?;
            }
            if self.begun.len() > LONGEST {
                return Err(ErrorKind::InvalidData.into());
            }
        }
    }
}

/// Writes one line of JSON.
fn write_line(stream: &mut UnixStream, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Removes sockets that nobody listens at.
fn sweep(directory: &Path) {
    for (_, path) in sockets(directory) {
        if is_stale(&path) {
            let _ = fs::remove_file(path);
        }
    }
}

fn is_stale(path: &Path) -> bool {
    UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// The processes' ids and sockets, by id.
fn sockets(directory: &Path) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut sockets: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.strip_suffix(".sock")?.parse().ok()?;
            Some((pid, entry.path()))
        })
        .collect();
    sockets.sort_unstable();
    sockets
}

/// Asks all running tracers, or the one with this process id. Yields who answered what; those that went meanwhile are
/// left out.
///
/// # Errors
/// When [`DIRECTORY`] may not be entered.
pub fn ask(pid: Option<u32>, request: &Request) -> io::Result<Vec<(u32, io::Result<Answer>)>> {
    match fs::read_dir(DIRECTORY) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => drop(other?),
    }
    let mut answers = Vec::new();
    for (owner, path) in sockets(Path::new(DIRECTORY)) {
        if pid.is_some_and(|pid| pid != owner) {
            continue;
        }
        match UnixStream::connect(&path) {
            Ok(stream) => answers.push((owner, ask_one(stream, request))),
            Err(error) if [ErrorKind::ConnectionRefused, ErrorKind::NotFound].contains(&error.kind()) => {}
            Err(error) => answers.push((owner, Err(error))),
        }
    }
    Ok(answers)
}

fn ask_one(mut stream: UnixStream, request: &Request) -> io::Result<Answer> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write_line(&mut stream, request)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    if line.is_empty() {
        return Err(io::Error::other("it ended"));
    }
    Ok(serde_json::from_str(&line)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_lines_of_json() {
        let request = Request::Disable {
            cgroup: "/a\nb".to_owned(),
        };
        let text = serde_json::to_string(&request).expect("JSON");
        assert_eq!(text, r#"{"request":"disable","cgroup":"/a\nb"}"#);
        assert_eq!(serde_json::from_str::<Request>(&text).ok(), Some(request));
        assert!(serde_json::from_str::<Request>(r#"{"request":"stats"}"#).is_err());
        let refused = Answer {
            refused: Some(Refusal::NoCgroup),
        };
        assert_eq!(
            serde_json::to_string(&refused).expect("JSON"),
            r#"{"refused":"no-cgroup"}"#
        );
    }
}
