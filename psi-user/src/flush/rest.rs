//! What is left of a round after the lists: records that no event touched, but that are active or gained something
//! earlier in the window; and interrupt time.

use super::{Flusher, LISTED_ACTIVE, Meta, Round, WIDTH};
use crate::{
    mapped::{MappedMaps, prefetch},
    slots::Slots,
};

impl Flusher {
    /// What is left of a CPU after its list: records that are active, or that gained something earlier in the window;
    /// and interrupt time.
    pub(super) fn finish(&mut self, maps: &MappedMaps, cpu: usize, slots: &Slots, round: &Round) {
        if !self.lists[cpu].active.is_empty() {
            self.grow(maps, cpu, round);
        }
        if self.lists[cpu].weighed < self.lists[cpu].window.len() {
            self.weigh_the_rest(maps, cpu);
        }
        self.lists[cpu].weighed = 0;
        if round.closes {
            self.lists[cpu].window.clear();
        }
        if !self.lists[cpu].irq.is_empty() {
            let Self {
                records, lists, sums, ..
            } = self;
            let (window, round_number) = (self.window, self.round);
            let weight = |slot| {
                let meta = records.meta(maps.index(cpu, slot));
                let was_weighed = meta.window == window && meta.round == round_number;
                if was_weighed { meta.weight } else { 0 }
            };
            sums.add_irq(&lists[cpu].irq, |slot| slots.parent(slot), weight);
            if round.closes {
                lists[cpu].irq.clear();
            }
        }
    }

    /// Whether a record was weighed in this round.
    const fn was_weighed(&self, meta: Meta) -> bool {
        meta.window == self.window && meta.round == self.round
    }

    /// Records that gained something earlier in the window and nothing now.
    fn weigh_the_rest(&mut self, maps: &MappedMaps, cpu: usize) {
        let window = std::mem::take(&mut self.lists[cpu].window);
        for (n, &slot) in window.iter().enumerate() {
            if let Some(&ahead) = window.get(n + WIDTH) {
                self.records.soon(maps.index(cpu, ahead), prefetch);
            }
            let mut record = self.records.get(maps.index(cpu, slot));
            let mut meta = record.meta();
            if meta.round != self.round {
                meta.round = self.round;
                meta.weight = self.sums.add(slot, &record.window());
                record.set_meta(meta);
            }
        }
        self.lists[cpu].window = window;
    }

    /// What is active and was not touched needs no read: it grew with the clock.
    fn grow(&mut self, maps: &MappedMaps, cpu: usize, round: &Round) {
        let mut active = std::mem::take(&mut self.lists[cpu].active);
        active.retain(|&slot| {
            let index = maps.index(cpu, slot);
            let mut meta = self.records.meta(index);
            if meta.active == 0 {
                meta.flags &= !LISTED_ACTIVE;
                self.records.get(index).set_meta(meta);
                return false;
            }
            if !self.was_weighed(meta) {
                let delta = std::array::from_fn(|state| {
                    if meta.active >> state & 1 != 0 {
                        round.elapsed
                    } else {
                        0
                    }
                });
                self.gain(index, cpu, slot, meta, &delta, round);
            }
            true
        });
        self.lists[cpu].active = active;
    }
}
