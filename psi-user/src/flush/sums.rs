//! Sums over the CPUs, weighted by non-idle time as the kernel does (collect_percpu_times, kernel/sched/psi.c).

use super::{IRQ, NONIDLE, STATES, Totals};

/// Sums of one cgroup: of each state but [`IRQ`], and in its place of the weights. A cacheline.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Line([u64; STATES]);

/// In its place there is the weight.
const WEIGHT: usize = IRQ;
const _: () = assert!(IRQ == STATES - 1);

/// By slot.
#[derive(Debug)]
pub(super) struct Sums {
    narrow: Vec<Line>,
    /// In use for windows that are so long that 64 bits might not do.
    wide: Vec<[u128; STATES]>,
    irq: Vec<u128>,
    /// Slots with a weight.
    touched: Vec<u32>,
    /// What a time is divided by to be a weight, ns.
    unit_ns: u64,
    is_wide: bool,
    /// Of one CPU: interrupt time of a cgroup and all below.
    climbed: Vec<u64>,
    /// Slots that have some.
    path: Vec<u32>,
}

impl Sums {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            narrow: vec![Line::default(); slots],
            wide: Vec::new(),
            irq: vec![0; slots],
            touched: Vec::new(),
            unit_ns: 1,
            is_wide: false,
            climbed: vec![0; slots],
            path: Vec::new(),
        }
    }

    /// Begins to sum up a window of `window_ns` over `cpus` CPUs. `odd`: times may be longer than the window.
    pub(super) fn begin(&mut self, window_ns: u64, unit_ns: u64, cpus: usize, odd: bool) {
        self.unit_ns = unit_ns;
        // A reading may be late, by far less than this.
        let longest = u128::from(window_ns) * 2 + 1_000_000_000;
        let most = longest * (longest / u128::from(unit_ns) + 1) * cpus as u128;
        self.is_wide = odd || most > u128::from(u64::MAX);
        if self.is_wide {
            self.wide.resize(self.narrow.len(), [0; STATES]);
        }
    }

    /// Asks for a slot's memory.
    #[inline]
    pub(super) fn soon(&self, slot: u32, prefetch: fn(*const u8)) {
        prefetch((&raw const self.narrow[slot as usize]).cast());
    }

    /// Adds what a record gained in the window; returns its weight.
    #[inline(always)]
    pub(super) fn add(&mut self, slot: u32, gained: &Totals) -> u32 {
        let weight = gained[NONIDLE] / self.unit_ns;
        if weight == 0 {
            return 0;
        }
        let line = &mut self.narrow[slot as usize].0;
        if line[WEIGHT] == 0 {
            self.touched.push(slot);
        }
        line[WEIGHT] += weight;
        if self.is_wide {
            let wide = &mut self.wide[slot as usize];
            for state in 0..IRQ {
                wide[state] += u128::from(gained[state]) * u128::from(weight);
            }
        } else {
            for state in 0..IRQ {
                line[state] += gained[state] * weight;
            }
        }
        // Beyond: a window of half a year.
        u32::try_from(weight).unwrap_or(u32::MAX)
    }

    /// Adds one CPU's interrupt time: the BPF side charges it to the task's own cgroup alone, here it is summed up the
    /// tree and then weighed. An ancestor without weight on this CPU drops it, as the kernel does.
    pub(super) fn add_irq(
        &mut self,
        gained: &[(u32, u64)],
        parent: impl Fn(u32) -> Option<u32>,
        weight: impl Fn(u32) -> u32,
    ) {
        for &(slot, irq) in gained {
            let mut at = Some(slot);
            while let Some(slot) = at {
                let climbed = &mut self.climbed[slot as usize];
                if *climbed == 0 {
                    self.path.push(slot);
                }
                *climbed += irq;
                at = parent(slot);
            }
        }
        for slot in self.path.drain(..) {
            let climbed = std::mem::take(&mut self.climbed[slot as usize]);
            self.irq[slot as usize] += u128::from(climbed) * u128::from(weight(slot));
        }
    }

    /// Hands out each cgroup's weighted sum over the CPUs, which starts anew.
    pub(super) fn take(&mut self, mut each: impl FnMut(u32, Totals)) {
        for slot in self.touched.drain(..) {
            let n = slot as usize;
            let mut sums = std::mem::take(&mut self.narrow[n]).0;
            let weight = sums[WEIGHT];
            if self.is_wide {
                let wide = std::mem::take(&mut self.wide[n]);
                sums = wide.map(|sum| (sum / u128::from(weight)) as u64);
            } else {
                sums = sums.map(|sum| sum / weight);
            }
            sums[IRQ] = (std::mem::take(&mut self.irq[n]) / u128::from(weight)) as u64;
            each(slot, sums);
        }
    }
}
