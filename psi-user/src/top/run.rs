//! Shows the view on the terminal and keeps it going.

use std::{
    io::{IsTerminal as _, stdin, stdout},
    os::fd::AsFd as _,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use crossterm::event::Event;
use tokio::{
    pin, select,
    task::yield_now,
    time::{Instant, sleep, sleep_until},
};

use super::{
    Feed, Options,
    input::Keys,
    shown::{Playing, Shown},
    signals::{Caught, Signals, is_foreground, stop, stop_group},
    state::Asked,
    terminal::Screen,
    watch::Watched,
};

/// The figures come at most this long after the start, however long the interval is.
const FIRST_INTERVAL: Duration = Duration::from_secs(1);

/// How long a signal that ends the program may take to come after it was continued.
const GRACE: Duration = Duration::from_millis(50);

/// Shows the view until a key, a signal (SIGINT, SIGTERM, SIGHUP, SIGQUIT) or the end of the terminal ends it, or
/// `feed` fails. However it ends, the terminal is left as it was found; so it is while the program is stopped.
///
/// Needs a runtime with IO and time. Its signal handlers stay: once it returned, these signals no longer end or stop
/// the process by themselves.
///
/// # Errors
/// When there is no terminal, it cannot be used, the recording is empty, or `feed` fails.
pub async fn run(feed: Feed<'_>, options: Options) -> Result<()> {
    ensure!(
        stdin().is_terminal() && stdout().is_terminal(),
        "top needs a terminal on standard input and output; use `psitrace dump` for pipes"
    );
    let mut shown = Shown::new(feed, options)?;
    // Before the terminal changes: from here on, a signal no longer ends the process on the spot.
    let mut signals = Signals::new().context("cannot handle signals")?;
    let work = match &shown.playing {
        Playing::Live(source) => source.wake_fd().map(Watched::for_work).transpose(),
        Playing::Replay(_) => Ok(None),
    };
    let work = work.context("cannot wait for the tracer")?;
    let terminal = Watched::for_end(stdin().as_fd()).context("cannot watch the terminal")?;
    let mut screen = Screen::enter().context("cannot set up the terminal")?;
    let mut keys = Keys::start().context("cannot read keys")?;
    let mut pace = Pace::new(Instant::now(), shown.view.state.interval);
    loop {
        screen.draw(|buffer| shown.view.draw(buffer))?;
        let ticks = shown.ticks();
        // Housekeeping changes nothing that is shown.
        let woken = loop {
            select! {
                caught = signals.received() => break Woken::Signal(caught),
                () = terminal.end() => return Ok(()),
                event = keys.next() => match event {
                    Some(event) => break Woken::Key(event),
                    None => return Ok(()),
                },
                () = sleep_until(pace.due), if ticks => break Woken::Time,
                () = yield_now(), if shown.search.is_some() => break Woken::Search,
                woken = Watched::work(work.as_ref()) => {
                    woken.context("cannot wait for the tracer")?;
                    shown.housekeeping()?;
                }
            }
        };
        match woken {
            Woken::Signal(Caught::End) => return Ok(()),
            Woken::Signal(Caught::Continue) if is_foreground() => screen.take_again()?,
            Woken::Signal(Caught::Stop | Caught::Continue) => {
                Screen::leave();
                loop {
                    stop().context("cannot stop")?;
                    if is_foreground() {
                        break;
                    }
                    // A shell ends a stopped job and continues it: is that it? In the background there is no terminal to
                    // draw on.
                    let grace = sleep(GRACE);
                    pin!(grace);
                    loop {
                        select! {
                            caught = signals.received() => if caught == Caught::End { return Ok(()) },
                            () = terminal.end() => return Ok(()),
                            () = &mut grace => break,
                        }
                    }
                }
                screen.take_again()?;
            }
            Woken::Time => {
                shown.tick()?;
                pace.ticked(Instant::now());
            }
            Woken::Search => shown.look()?,
            Woken::Key(first) => {
                for event in keys.waiting(first) {
                    if screen.is_plain() && shown.is_line_end(&event) {
                        continue;
                    }
                    match shown.asked(&event) {
                        Asked::Nothing => {}
                        Asked::Quit => return Ok(()),
                        Asked::Redraw => screen.clear()?,
                        Asked::Suspend => stop_group().context("cannot stop")?,
                        Asked::Mouse(on) => screen.set_mouse(on)?,
                        Asked::Travel(travel) => shown.travel(travel)?,
                        Asked::Spike { forward } => shown.search(forward)?,
                    }
                }
                // Played from now on, not from when it was stopped.
                if shown.ticks() && !ticks {
                    pace = Pace::new(Instant::now(), shown.view.state.interval);
                }
                pace.changed(Instant::now(), shown.view.state.interval);
            }
        }
        shown.complete()?;
    }
}

/// What ended a wait.
enum Woken {
    Signal(Caught),
    Key(Event),
    Time,
    /// There is more to look at.
    Search,
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
