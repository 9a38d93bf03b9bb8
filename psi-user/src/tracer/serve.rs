//! What others ask of a running tracer, see [`crate::control`].

use std::{io, os::fd::AsFd as _, thread::sleep, time::Duration};

use super::{ROOT_SLOT, Tracer};
use crate::control::{Listener, Refusal, Request};

/// Far longer than an updater takes that is not stopped in the middle.
const UPDATERS_TIME: Duration = Duration::from_millis(1);
const MOST_ROUNDS: u32 = 8;

impl Tracer {
    /// Lets others ask this tracer for something: whoever may use [`crate::control::DIRECTORY`]. Who may not make that gets no
    /// requests. Answers are [`Self::housekeeping`]'s work.
    ///
    /// # Errors
    /// When the socket cannot be waited for.
    pub fn take_requests(&mut self) -> io::Result<()> {
        let Ok(listener) = Listener::new() else {
            return Ok(());
        };
        self.wakeups.watch(listener.as_fd())?;
        self.listener = Some(listener);
        Ok(())
    }

    pub(super) fn answer_requests(&mut self) {
        let Some(mut listener) = self.listener.take() else {
            return;
        };
        // One that cannot be waited for is not answered.
        listener.accept(|connection| self.wakeups.watch(connection));
        listener.answer(|request| self.answer(request));
        self.listener = Some(listener);
    }

    fn answer(&mut self, request: &Request) -> Result<(), Refusal> {
        match request {
            Request::Disable { cgroup } => self.disable(cgroup),
            Request::Enable { cgroup } => self.enable(cgroup),
        }
    }

    /// Lets a cgroup's times stand still and hides it, as 0 in the kernel's `cgroup.pressure` does. Ancestors, and cgroups
    /// below it, go on.
    ///
    /// # Errors
    /// When there is no such cgroup among those tracked, or it is the root.
    pub fn disable(&mut self, cgroup: &str) -> Result<(), Refusal> {
        let slot = self.slot_to_switch(cgroup)?;
        // Interrupt time goes on for the ancestors' sake: what came before this moment is the cgroup's.
        self.sample();
        self.switches.disable(&self.maps, slot);
        sleep(UPDATERS_TIME);
        self.sample();
        Ok(())
    }

    /// Lets its times go on, as 1 there does.
    ///
    /// # Errors
    /// As for [`Self::disable`].
    pub fn enable(&mut self, cgroup: &str) -> Result<(), Refusal> {
        let slot = self.slot_to_switch(cgroup)?;
        self.sample();
        self.switches.enable(&self.maps, slot);
        // What is not settled then is before one of the next flushes.
        let mut rounds_right = 0;
        for _ in 0..MOST_ROUNDS {
            sleep(UPDATERS_TIME);
            rounds_right += 1;
            if !self.switches.settle(&self.maps) {
                rounds_right = 0;
            } else if rounds_right == 2 {
                break;
            }
        }
        Ok(())
    }

    fn slot_to_switch(&mut self, cgroup: &str) -> Result<u32, Refusal> {
        self.slots.refresh(&self.maps, crate::mapped::now_ns());
        let path = match cgroup.trim_end_matches('/') {
            "" => "/",
            path => path,
        };
        let found = self
            .slots
            .iter()
            .find(|(_, known)| known.exists && known.path.as_deref() == Some(path));
        match found {
            Some((ROOT_SLOT, _)) => Err(Refusal::Root),
            Some((slot, _)) => Ok(slot),
            None if self.hierarchy.directory(path).is_dir() => Err(Refusal::NotTracked),
            None => Err(Refusal::NoCgroup),
        }
    }
}
