//! The keys.
//!
//! What reads them does not see the terminal's end: crossterm 0.29 takes it for an empty read and tries again, for
//! ever. `Watched::end` does.

use std::{io, thread, time::Duration};

use crossterm::event::{self, Event};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// How long the reading thread outlives the view at most, unless within a key's escape sequence.
const LINGER: Duration = Duration::from_millis(200);

/// Events read ahead; text pasted by mistake then waits in the terminal.
const AHEAD: usize = 64;

/// The keys, and changes of the terminal's size.
pub(super) struct Keys(Receiver<Event>);

impl Keys {
    /// Starts to read. In a thread: crossterm blocks within an escape sequence that is not complete.
    pub(super) fn start() -> io::Result<Self> {
        let (sender, receiver) = channel(AHEAD);
        thread::Builder::new()
            .name("keys".to_owned())
            .spawn(move || read(&sender))?;
        Ok(Self(receiver))
    }

    /// The next event; none if there will be no more.
    pub(super) async fn next(&mut self) -> Option<Event> {
        self.0.recv().await
    }

    /// `first` and what is there already, so that a held key costs no frame each.
    pub(super) fn waiting(&mut self, first: Event) -> impl Iterator<Item = Event> {
        let more = (1..AHEAD).map_while(|_| self.0.try_recv().ok());
        [first].into_iter().chain(more)
    }
}

fn read(sender: &Sender<Event>) {
    while !sender.is_closed() {
        match event::poll(LINGER) {
            Ok(false) => {}
            Ok(true) => {
                let Ok(event) = event::read() else { return };
                if sender.blocking_send(event).is_err() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}
