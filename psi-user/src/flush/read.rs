//! The walk over the detached lists: each record on them is taken off and read.

use psi_common::account::{is_on, total_at};

use super::{BATCH, Cursor, Flusher, IRQ, LATE_ADD_NS, LISTED_ACTIVE, Meta, Round, STATES, Totals, UNREAD, WIDTH};
use crate::mapped::{MappedMaps, Next, now_ns, prefetch};

impl Flusher {
    /// Takes a CPU's whole list, if there is one; returns its first slot.
    fn detach(&mut self, maps: &MappedMaps, cpu: usize) -> Option<u32> {
        // Who lists a record just after this comes too late for this flush, that is all.
        if !maps.has_updates(cpu) {
            return None;
        }
        let before = now_ns();
        let first = maps.detach_updated(cpu);
        self.hold_times.add(now_ns().saturating_sub(before));
        first
    }

    /// Walks all lists and reads the records on them.
    pub(super) fn walk(&mut self, maps: &MappedMaps, round: &Round) {
        let mut cpus = 0..maps.cpu_count();
        loop {
            while self.cursors.len() < WIDTH
                && let Some(cpu) = cpus.next()
            {
                if let Some(slot) = self.detach(maps, cpu) {
                    self.soon(maps, cpu, slot);
                    self.cursors.push(Cursor { cpu, slot });
                }
            }
            if self.cursors.is_empty() {
                return;
            }
            if !self.step(maps) {
                // The updaters were interrupted between their two stores. They are not waiting for us, we are for them.
                std::thread::yield_now();
                continue;
            }
            // Both barriers of rstat: the links are cleared, then the values are read.
            maps.barrier();
            let bound = now_ns();
            let batch = std::mem::take(&mut self.batch);
            for &Cursor { cpu, slot } in &batch {
                self.take(maps, cpu, slot, bound, round);
            }
            self.cost.records += batch.len() as u64;
            self.batch = batch;
            self.batch.clear();
        }
    }

    /// Takes records off the lists, in turns, until there are enough; says whether there were any.
    fn step(&mut self, maps: &MappedMaps) -> bool {
        loop {
            let before = self.batch.len();
            let mut n = 0;
            while let Some(&Cursor { cpu, slot }) = self.cursors.get(n) {
                match maps.unlink(cpu, slot) {
                    Next::Slot(next) => {
                        self.batch.push(Cursor { cpu, slot });
                        self.cursors[n].slot = next;
                        self.soon(maps, cpu, next);
                        n += 1;
                    }
                    Next::End => {
                        self.batch.push(Cursor { cpu, slot });
                        self.cursors.swap_remove(n);
                    }
                    Next::Pending => {
                        self.contended += 1;
                        n += 1;
                    }
                }
            }
            if self.batch.len() >= BATCH || self.batch.len() == before || self.cursors.is_empty() {
                return !self.batch.is_empty();
            }
        }
    }

    /// Asks for the memory of a record that is next.
    #[inline]
    fn soon(&self, maps: &MappedMaps, cpu: usize, slot: u32) {
        maps.prefetch(cpu, slot);
        self.records.soon(maps.index(cpu, slot), prefetch);
        self.sums.soon(slot, prefetch);
    }

    /// Reads a record and weighs what it gained in the open window.
    #[inline]
    fn take(&mut self, maps: &MappedMaps, cpu: usize, slot: u32, bound: u64, round: &Round) {
        let index = maps.index(cpu, slot);
        let mut times = maps.times(cpu, slot);
        let most = bound.saturating_sub(self.last_ns) + LATE_ADD_NS;
        let mut record = self.records.get(index);
        let mut meta = record.meta();
        let seen = *record.seen();
        let gained = |times: &[u64; STATES], seen: &Totals, state: usize| {
            total_at(times[state], round.now).wrapping_sub(seen[state]) as i64
        };
        let mut delta = [0; STATES];
        let mut possible = meta.flags & UNREAD == 0;
        for (state, delta) in delta.iter_mut().enumerate() {
            let gained = gained(&times, &seen, state);
            possible &= gained.unsigned_abs() <= most;
            // Below zero: the state began after `now` was read.
            *delta = gained.max(0) as u64;
        }
        if !possible {
            (delta, times) = self.read_again(maps, cpu, slot, &seen, round);
            meta = self.records.meta(index);
        }
        let active = (0..STATES).fold(0, |active, state| active | u8::from(is_on(times[state])) << state);
        meta.active = active;
        let lists = &mut self.lists[cpu];
        if active != 0 && meta.flags & LISTED_ACTIVE == 0 {
            meta.flags |= LISTED_ACTIVE;
            lists.active.push(slot);
        }
        if delta[IRQ] != 0 {
            lists.irq.push((slot, delta[IRQ]));
        }
        self.gain(index, cpu, slot, meta, &delta, round);
    }

    /// Notes what a record gained in this round, and weighs what it did in the window.
    #[inline(always)]
    pub(super) fn gain(&mut self, index: usize, cpu: usize, slot: u32, meta: Meta, delta: &Totals, round: &Round) {
        let mut record = self.records.get(index);
        let mut meta = meta;
        let mut window = *delta;
        let lists = &mut self.lists[cpu];
        if meta.window == self.window {
            let before = record.window();
            for state in 0..STATES {
                window[state] += before[state];
            }
            lists.weighed += 1;
        } else if !round.closes {
            let seen = *record.seen();
            record.opened().copy_from_slice(&seen[..IRQ]);
            lists.window.push(slot);
            lists.weighed += 1;
        }
        meta.window = self.window;
        for (seen, delta) in record.seen().iter_mut().zip(delta) {
            *seen += delta;
        }
        meta.round = self.round;
        meta.weight = self.sums.add(slot, &window);
        record.set_meta(meta);
    }

    /// A reading is out of its range, or the one before was.
    ///
    /// Two adds that landed in the opposite order show as a total out of range, for nanoseconds. Or this thread was kept
    /// from reading, and what happened since is in the total.
    #[cold]
    fn read_again(
        &mut self,
        maps: &MappedMaps,
        cpu: usize,
        slot: u32,
        seen: &Totals,
        round: &Round,
    ) -> (Totals, [u64; STATES]) {
        let index = maps.index(cpu, slot);
        let unread = self.unread.remove(&index).unwrap_or(0);
        let mut delta = [0; STATES];
        let mut rejected = false;
        let mut times = maps.times(cpu, slot);
        for state in 0..STATES {
            let mut tries = 0;
            let gained = loop {
                let gained = total_at(times[state], round.now).wrapping_sub(seen[state]) as i64;
                let most = now_ns().saturating_sub(self.last_ns) + unread + LATE_ADD_NS;
                if gained.unsigned_abs() <= most {
                    break gained;
                }
                if tries == 3 {
                    self.rejected += 1;
                    rejected = true;
                    break 0;
                }
                tries += 1;
                // The updater may be on a virtual CPU that waits for this one's.
                maps.pause();
                times = maps.times(cpu, slot);
            };
            delta[state] = gained.max(0) as u64;
        }
        let mut record = self.records.get(index);
        let mut meta = record.meta();
        meta.flags &= !UNREAD;
        if rejected {
            // What was not used is made up for by a later reading, which may then be larger by as much.
            meta.flags |= UNREAD;
            self.unread.insert(index, unread + round.elapsed);
            self.odd = true;
        }
        record.set_meta(meta);
        (delta, times)
    }
}
