//! What the last five minutes were like.

use std::collections::HashMap;

use crate::{
    fields::{Figure, Measure, Stall},
    model::{CgroupPressure, Snapshot},
};

/// Time that a point of a chart covers, ns: about the kernel's averaging period, over which CPUs are weighed.
pub(super) const POINT_NS: u64 = 2_000_000_000;
/// Points in five minutes.
pub(super) const POINTS: usize = 150;
/// Figures of a cgroup.
const FIGURES: usize = Stall::ALL.len();
/// What is not known: not measured, or not there yet.
const ABSENT: u16 = u16::MAX;

/// The trails of all cgroups, by id.
#[derive(Debug, Default)]
pub(super) struct Trails(HashMap<u64, Box<Trail>>);

impl Trails {
    /// Takes the last interval of all cgroups; forgets those that are gone, but for `kept`.
    pub(super) fn record(&mut self, snapshot: &Snapshot, kept: Option<u64>) {
        let Snapshot {
            time_ns,
            interval_ns,
            cgroups,
            ..
        } = snapshot;
        let Self(trails) = self;
        for cgroup in cgroups {
            let trail = trails.entry(cgroup.id).or_default();
            trail.add(time_ns.saturating_sub(*interval_ns), *time_ns, figures(cgroup));
        }
        if trails.len() > cgroups.len() {
            trails.retain(|id, trail| trail.last_ns == *time_ns || kept == Some(*id));
        }
    }

    /// The points of one cgroup's figure up to `time_ns`, in %, the oldest first; none where nothing is known.
    pub(super) fn points(&self, id: u64, stall: Stall, time_ns: u64) -> [Option<f64>; POINTS] {
        let mut points = [None; POINTS];
        let (Some(trail), Some(figure)) = (self.0.get(&id), stall.place()) else {
            return points;
        };
        let newest = last_point(time_ns);
        for (age, point) in points.iter_mut().rev().enumerate() {
            *point = newest.checked_sub(age as u64).and_then(|at| trail.point(figure, at));
        }
        points
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// One cgroup's figures, in hundredths of a percent: a ring.
#[derive(Debug)]
struct Trail {
    figures: [[u16; POINTS]; FIGURES],
    /// Number of the newest point since 1970; its place in the ring follows from it.
    newest: u64,
    /// Time in the newest point that figures are known for, and their sums over it, % times ns.
    known_ns: [u64; FIGURES],
    sums: [f64; FIGURES],
    last_ns: u64,
}

impl Default for Trail {
    fn default() -> Self {
        Self {
            figures: [[ABSENT; POINTS]; FIGURES],
            newest: 0,
            known_ns: [0; FIGURES],
            sums: [0.0; FIGURES],
            last_ns: 0,
        }
    }
}

impl Trail {
    /// Spreads figures of the time between both over the points that it touches.
    fn add(&mut self, from_ns: u64, to_ns: u64, figures: [Option<f64>; FIGURES]) {
        self.last_ns = to_ns;
        let last = last_point(to_ns);
        let first = (from_ns / POINT_NS).max(last.saturating_sub(POINTS as u64 - 1));
        for at in first..=last {
            self.go_to(at);
            let overlap = to_ns
                .min((at + 1) * POINT_NS)
                .saturating_sub(from_ns.max(at * POINT_NS));
            for (figure, percent) in figures.iter().enumerate() {
                let Some(percent) = percent else { continue };
                self.known_ns[figure] += overlap;
                self.sums[figure] += percent * overlap as f64;
                if self.known_ns[figure] > 0 {
                    let mean = self.sums[figure] / self.known_ns[figure] as f64;
                    self.figures[figure][place(at)] = (mean.clamp(0.0, 100.0) * 100.0).round() as u16;
                }
            }
        }
    }

    /// Makes `at` the newest point; what was passed over is not known.
    fn go_to(&mut self, at: u64) {
        let Self {
            figures,
            newest,
            known_ns,
            sums,
            ..
        } = self;
        if at == *newest {
            return;
        }
        // The clock was put back, or so much time has passed that nothing is left.
        if at < *newest || at - *newest >= POINTS as u64 {
            *figures = [[ABSENT; POINTS]; FIGURES];
        } else {
            for passed in *newest + 1..=at {
                for figure in &mut *figures {
                    figure[place(passed)] = ABSENT;
                }
            }
        }
        *newest = at;
        *known_ns = [0; FIGURES];
        *sums = [0.0; FIGURES];
    }

    fn point(&self, figure: usize, at: u64) -> Option<f64> {
        let is_kept = at <= self.newest && self.newest - at < POINTS as u64;
        let hundredths = self.figures[figure][place(at)];
        (is_kept && hundredths != ABSENT).then(|| f64::from(hundredths) / 100.0)
    }
}

/// The point that the moment before `time_ns` is in.
fn last_point(time_ns: u64) -> u64 {
    time_ns.saturating_sub(1) / POINT_NS
}

const fn place(at: u64) -> usize {
    (at % POINTS as u64) as usize
}

fn figures(cgroup: &CgroupPressure) -> [Option<f64>; FIGURES] {
    Stall::ALL.map(|stall| {
        let measure = Measure::Last;
        Figure { stall, measure }.of(cgroup)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::fixture::{cgroup, snapshot, unmeasured};

    /// `some` of the last interval.
    fn at(time_ns: u64, interval_ns: u64, percent: f64) -> Snapshot {
        Snapshot {
            time_ns,
            interval_ns,
            ..snapshot(vec![cgroup("/a", 1, percent / 2.0)])
        }
    }

    fn tail(trails: &Trails, time_ns: u64, count: usize) -> Vec<Option<f64>> {
        trails.points(1, Stall::CPU_SOME, time_ns)[POINTS - count..].to_vec()
    }

    #[test]
    fn short_intervals_are_averaged_and_long_ones_spread() {
        let mut trails = Trails::default();
        let second = POINT_NS / 2;
        trails.record(&at(1001 * second, second, 10.0), None);
        trails.record(&at(1002 * second, second, 30.0), None);
        assert_eq!(tail(&trails, 1002 * second, 2), [None, Some(20.0)]);
        trails.record(&at(1006 * second, 4 * second, 40.0), None);
        assert_eq!(
            tail(&trails, 1006 * second, 4),
            [None, Some(20.0), Some(40.0), Some(40.0)]
        );
        // Seen from later, and with a gap.
        assert_eq!(tail(&trails, 1008 * second, 2), [Some(40.0), None]);
        trails.record(&at(1010 * second, second, 50.0), None);
        assert_eq!(tail(&trails, 1010 * second, 3), [Some(40.0), None, Some(50.0)]);
    }

    #[test]
    fn old_points_go() {
        let mut trails = Trails::default();
        for n in 1..=400 {
            trails.record(
                &at(
                    n * POINT_NS,
                    POINT_NS,
                    f64::from(u32::try_from(n % 100).expect("small")),
                ),
                None,
            );
        }
        let points = trails.points(1, Stall::CPU_SOME, 400 * POINT_NS);
        assert_eq!(points.iter().flatten().count(), POINTS);
        assert_eq!((points[POINTS - 1], points[POINTS - 2]), (Some(0.0), Some(99.0)));
        // The clock was put back.
        trails.record(&at(100 * POINT_NS, POINT_NS, 7.0), None);
        let points = trails.points(1, Stall::CPU_SOME, 100 * POINT_NS);
        assert_eq!(points.iter().flatten().collect::<Vec<_>>(), [&7.0]);
    }

    #[test]
    fn absent_is_not_zero_and_what_is_gone_goes() {
        let mut trails = Trails::default();
        let mut both = snapshot(vec![unmeasured("/n", 1, 0.0), cgroup("/b", 2, 0.0)]);
        trails.record(&both, None);
        assert_eq!(trails.points(1, Stall::MEMORY_SOME, both.time_ns)[POINTS - 1], None);
        assert_eq!(
            trails.points(2, Stall::MEMORY_SOME, both.time_ns)[POINTS - 1],
            Some(0.0)
        );
        both.cgroups.clear();
        both.time_ns += POINT_NS;
        trails.record(&both, Some(1));
        assert_eq!(trails.0.keys().collect::<Vec<_>>(), [&1]);
    }
}
