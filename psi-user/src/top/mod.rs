//! The live view: `psitrace top`.
//!
//! Runs one way: `Source` -> `state` -> `view` -> `terminal`. One task does it all; only the keys come from a thread of
//! their own (`input`).

mod columns;
mod escape;
#[cfg(test)]
mod fixture;
mod header;
mod input;
mod keys;
mod order;
mod state;
mod style;
mod table;
mod terminal;
mod view;
mod watch;

use std::{
    io::{self, IsTerminal as _, stdin, stdout},
    os::fd::{AsFd as _, BorrowedFd},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use crossterm::event::Event;
use tokio::{
    select,
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, sleep_until},
};

pub(crate) use self::columns::{SortKey, Window};
use self::{
    input::Keys,
    keys::{Action, action},
    state::State,
    style::Palette,
    terminal::Screen,
    watch::Watched,
};
use crate::model::Snapshot;

/// Shortest time between two refreshes.
pub(crate) const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// Longest time between two refreshes.
pub(crate) const MAX_INTERVAL: Duration = Duration::from_mins(1);

/// The figures come at most this long after the start, however long the interval is.
const FIRST_INTERVAL: Duration = Duration::from_secs(1);

/// What the view shows.
pub(crate) trait Source {
    /// Takes the figures as of now. Called once per interval, also while the view is paused.
    fn snapshot(&mut self) -> Result<Snapshot>;

    /// A descriptor that is readable when there is work to do; asked for once.
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Does all the work that made [`wake_fd`](Self::wake_fd) readable: what it leaves waits for the next wake-up.
    fn housekeeping(&mut self) -> Result<()> {
        Ok(())
    }
}

/// How the view starts; keys change all of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Time between two refreshes; brought into [`MIN_INTERVAL`] to [`MAX_INTERVAL`].
    pub(crate) interval: Duration,
    /// Children below their parents, rather than one sorted list.
    pub(crate) tree: bool,
    /// Column to sort by.
    pub(crate) sort: SortKey,
    /// Time that the figures cover.
    pub(crate) window: Window,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            tree: false,
            sort: SortKey::CpuSome,
            window: Window::Avg10,
        }
    }
}

/// Shows the live view until a key, a signal (SIGINT, SIGTERM, SIGHUP) or the end of the terminal ends it, or
/// `source` fails. However it ends, the terminal is left as it was found.
///
/// Needs a runtime with IO and time. Its signal handlers stay: once it returned, these signals no longer end the
/// process by themselves.
pub(crate) async fn run(source: &mut dyn Source, options: Options) -> Result<()> {
    ensure!(
        stdin().is_terminal() && stdout().is_terminal(),
        "top needs a terminal on standard input and output; use `psitrace dump` for pipes"
    );
    // Before the terminal changes: from here on, a signal no longer ends the process on the spot.
    let mut signals = Signals::new().context("cannot handle signals")?;
    let work = source
        .wake_fd()
        .map(Watched::for_work)
        .transpose()
        .context("cannot wait for the tracer")?;
    let terminal = Watched::for_end(stdin().as_fd()).context("cannot watch the terminal")?;
    let mut screen = Screen::enter().context("cannot set up the terminal")?;
    let mut keys = Keys::start().context("cannot read keys")?;

    let mut state = State::new(options);
    let palette = Palette::from_environment();
    let mut pace = Pace::new(Instant::now(), state.interval);
    loop {
        screen.draw(|frame| view::draw(frame, &mut state, palette))?;
        // Housekeeping changes nothing that is shown.
        let event = loop {
            select! {
                () = signals.received() => return Ok(()),
                () = terminal.end() => return Ok(()),
                event = keys.next() => match event {
                    Some(event) => break Some(event),
                    None => return Ok(()),
                },
                () = sleep_until(pace.due) => break None,
                woken = Watched::work(work.as_ref()) => {
                    woken.context("cannot wait for the tracer")?;
                    source.housekeeping()?;
                }
            }
        };
        let Some(first) = event else {
            state.update(source.snapshot()?);
            pace.ticked(Instant::now());
            continue;
        };
        for event in keys.waiting(first) {
            // Other events, such as a new size, need a new frame only.
            let Event::Key(key) = event else { continue };
            match action(key) {
                Some(Action::Redraw) => screen.clear()?,
                action => {
                    if state.apply(action).is_break() {
                        return Ok(());
                    }
                }
            }
        }
        pace.changed(Instant::now(), state.interval);
    }
}

/// The signals that end the program.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn received(&mut self) {
        let Self {
            interrupt,
            terminate,
            hangup,
        } = self;
        select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// When the next snapshot is due.
struct Pace {
    last: Instant,
    due: Instant,
    interval: Duration,
}

impl Pace {
    fn new(now: Instant, interval: Duration) -> Self {
        Self {
            last: now,
            due: now + interval.min(FIRST_INTERVAL),
            interval,
        }
    }

    /// A snapshot was taken. Intervals that were missed, as in a suspended machine, are not made up for.
    fn ticked(&mut self, now: Instant) {
        let Self { last, due, interval } = self;
        *last = now;
        *due += *interval;
        if *due <= now {
            *due = now + *interval;
        }
    }

    /// The interval may have changed; if so, it counts from the last snapshot.
    fn changed(&mut self, now: Instant, interval: Duration) {
        if self.interval != interval {
            self.due = (self.last + interval).max(now);
            self.interval = interval;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_first_figures_do_not_wait_for_a_long_interval() {
        let start = Instant::now();
        let mut pace = Pace::new(start, 10 * SECOND);
        assert_eq!(pace.due, start + SECOND);
        pace.changed(start, 10 * SECOND);
        assert_eq!(pace.due, start + SECOND);
        pace.ticked(start + SECOND);
        assert_eq!(pace.due, start + 11 * SECOND);
    }

    #[test]
    fn pace_has_no_drift_and_makes_up_for_nothing() {
        let start = Instant::now();
        let mut pace = Pace::new(start, SECOND);
        pace.ticked(start + SECOND + SECOND / 10);
        assert_eq!(pace.due, start + 2 * SECOND);
        pace.ticked(start + 10 * SECOND);
        assert_eq!(pace.due, start + 11 * SECOND);
    }

    #[test]
    fn a_new_interval_counts_from_the_last_snapshot() {
        let start = Instant::now();
        let mut pace = Pace::new(start, SECOND);
        pace.ticked(start + SECOND);
        pace.changed(start + SECOND, 5 * SECOND);
        assert_eq!(pace.due, start + 6 * SECOND);
        let now = start + 4 * SECOND;
        pace.changed(now, 2 * SECOND);
        assert_eq!(pace.due, now);
    }
}
