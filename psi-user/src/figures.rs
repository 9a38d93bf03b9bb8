//! From a cgroup's totals to the figures that are shown.

use crate::{
    averages::{Averages, Due},
    flush::Totals,
    model::{CgroupPressure, Full, Pressure, SomeFull, Source, share},
};

/// Averages of one cgroup: one for each of [`FIGURES`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    averages: [Averages; FIGURES.len()],
    last_total: [u64; FIGURES.len()],
}

/// Indices into the flush's totals of what is shown: cpu some and full, io, memory, irq.
const FIGURES: [usize; 7] = [0, 1, 3, 4, 5, 6, 7];

/// In the order of [`FIGURES`].
pub(crate) type Figures = [Pressure; FIGURES.len()];

impl Group {
    /// An averaging period has passed.
    pub(crate) fn average(&mut self, totals: &Totals, due: Due) {
        for (averages, figure) in self.averages.iter_mut().zip(FIGURES) {
            averages.update(totals[figure], due);
        }
    }

    /// All figures, as of now. The last interval's share is since the call before.
    pub(crate) fn figures(&mut self, totals: &Totals, interval_ns: u64) -> Figures {
        let mut figures = [Pressure::default(); FIGURES.len()];
        for (n, figure) in figures.iter_mut().enumerate() {
            let total_ns = totals[FIGURES[n]];
            let [avg10, avg60, avg300] = self.averages[n].percent();
            let gained = total_ns - self.last_total[n];
            self.last_total[n] = total_ns;
            *figure = Pressure {
                avg10,
                avg60,
                avg300,
                total_ns,
                last: share(gained, interval_ns),
            };
        }
        figures
    }
}

/// One cgroup's figures, without what is not measured.
pub(crate) fn pressure(path: &str, id: u64, level: u32, figures: &Figures, source: &Source) -> CgroupPressure {
    let [cpu_some, cpu_full, io_some, io_full, memory_some, memory_full, irq_full] = *figures;
    CgroupPressure {
        path: path.to_owned(),
        id,
        level,
        // The kernel too accumulates the system's cpu full and shows 0: it is undefined there (psi_show).
        cpu: SomeFull {
            some: cpu_some,
            full: if level == 0 { Pressure::default() } else { cpu_full },
        },
        memory: source.memstall.map(|_| SomeFull {
            some: memory_some,
            full: memory_full,
        }),
        io: SomeFull {
            some: io_some,
            full: io_full,
        },
        irq: (!source.irq.is_empty()).then_some(Full { full: irq_full }),
        counts: None,
    }
}
