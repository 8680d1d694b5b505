//! Time that does not jump.

use rustix::time::{ClockId, clock_gettime};

/// Microseconds since the Unix epoch at the start, and steadily on from there: setting the
/// computer's clock does not disturb a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// What to add to the steady clock.
    offset: u64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let real = micros(nanos(ClockId::Realtime));
        Self {
            offset: real.wrapping_sub(micros(steady_nanos())),
        }
    }

    /// The time, for a reading of the steady clock.
    pub(crate) fn time(self, steady_nanos: u64) -> u64 {
        self.offset.wrapping_add(micros(steady_nanos))
    }
}

/// The steady clock.
pub(crate) fn steady_nanos() -> u64 {
    nanos(ClockId::Monotonic)
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    (time.tv_sec.cast_unsigned())
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec.cast_unsigned())
}

fn micros(nanos: u64) -> u64 {
    nanos / 1000
}
