//! The moment of the run that is shown, and moving between moments.

use heapline_profile::query::TimePoint;

use crate::situation::Situation;

/// A moment of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moment {
    /// The end of the trace; while it is recorded, now.
    #[default]
    Now,
    /// The peak of the whole program.
    Peak,
    /// Microseconds since the start.
    At(u64),
}

/// The steps in which a run is walked through, if it has no snapshots.
const STEPS: u64 = 100;

impl Moment {
    /// The moment as queries name it.
    #[must_use]
    pub fn time_point(self) -> TimePoint {
        match self {
            Self::Now => TimePoint::End,
            Self::Peak => TimePoint::Peak,
            Self::At(micros) => TimePoint::Micros(micros),
        }
    }

    /// The end of a window that includes what happened then.
    pub(crate) fn end_of_window(self) -> TimePoint {
        match self {
            // A time is not part of a window that ends there.
            Self::At(micros) => TimePoint::Micros(micros.saturating_add(1)),
            Self::Now | Self::Peak => self.time_point(),
        }
    }

    /// Microseconds since the start. Live memory of a source with snapshots is that of the last one.
    #[must_use]
    pub fn micros(self, situation: &Situation) -> u64 {
        match self {
            Self::Now => situation
                .snapshots
                .last()
                .copied()
                .unwrap_or(situation.duration),
            Self::Peak => situation.peak,
            Self::At(micros) => micros,
        }
    }

    /// The moment so many steps later, or earlier: snapshots, or hundredths of the run in round
    /// numbers.
    #[must_use]
    pub fn step(self, by: i64, situation: &Situation) -> Self {
        let micros = self.micros(situation);
        let target = if situation.snapshots.is_empty() {
            let step = round_step(situation.duration);
            let here = i64::try_from(micros / step).unwrap_or(i64::MAX);
            // Between two steps, the one before is a step away.
            let is_between = !micros.is_multiple_of(step);
            let here = here.saturating_add(i64::from(is_between && by < 0));
            let there = here.saturating_add(by).max(0);
            u64::try_from(there).unwrap_or(0).saturating_mul(step)
        } else {
            let number = situation.snapshot(micros).unwrap_or(0);
            let last = situation.snapshots.len() - 1;
            let by = isize::try_from(by).unwrap_or(0);
            situation.snapshots[number.saturating_add_signed(by).min(last)]
        };
        Self::at(target, situation)
    }

    /// The moment at a time; the end is [`Moment::Now`].
    #[must_use]
    pub fn at(micros: u64, situation: &Situation) -> Self {
        if micros >= Self::Now.micros(situation) {
            Self::Now
        } else {
            Self::At(micros)
        }
    }
}

/// A step of 1, 2 or 5 times a power of ten, not below a hundredth of the run.
fn round_step(duration: u64) -> u64 {
    let least = duration.div_ceil(STEPS).max(1);
    let mut power: u64 = 1;
    while power.saturating_mul(10) <= least {
        power *= 10;
    }
    [1, 2, 5, 10]
        .into_iter()
        .map(|factor| power.saturating_mul(factor))
        .find(|&step| step >= least)
        .unwrap_or(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(duration: u64, snapshots: &[u64]) -> Situation {
        Situation {
            duration,
            snapshots: snapshots.to_vec(),
            ..Situation::default()
        }
    }

    #[test]
    fn steps_are_round_and_about_a_hundred() {
        assert_eq!(round_step(0), 1);
        assert_eq!(round_step(39_000), 500);
        assert_eq!(round_step(10_000_000), 100_000);
        assert_eq!(round_step(10_000_001), 200_000);
        assert_eq!(round_step(u64::MAX), 200_000_000_000_000_000);
    }

    #[test]
    fn a_run_is_walked_through_from_its_start_to_its_end() {
        let run = run(39_250, &[]);
        assert_eq!(Moment::Now.step(-1, &run), Moment::At(39_000));
        assert_eq!(Moment::At(39_000).step(1, &run), Moment::Now);
        assert_eq!(Moment::Now.step(1, &run), Moment::Now);
        assert_eq!(Moment::At(100).step(-1, &run), Moment::At(0));
        assert_eq!(Moment::At(0).step(-10, &run), Moment::At(0));
        assert_eq!(Moment::At(0).step(10, &run), Moment::At(5000));
    }

    #[test]
    fn sources_with_snapshots_are_walked_through_by_those() {
        let run = run(99, &[10, 20, 40]);
        assert_eq!(Moment::Now.micros(&run), 40);
        assert_eq!(Moment::Now.step(-1, &run), Moment::At(20));
        assert_eq!(Moment::At(20).step(-5, &run), Moment::At(10));
        assert_eq!(Moment::At(20).step(1, &run), Moment::Now);
    }
}
