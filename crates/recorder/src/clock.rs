//! Time that does not jump.

use libc::{CLOCK_MONOTONIC, CLOCK_REALTIME, clockid_t, timespec};

/// Microseconds since the Unix epoch at the start, and steadily on from there: setting the
/// computer's clock does not disturb a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// What to add to the steady clock.
    offset: u64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let real = Reading::of(CLOCK_REALTIME).micros();
        Self {
            offset: real.wrapping_sub(Reading::now().micros()),
        }
    }

    /// The time, for a reading of the steady clock.
    #[inline]
    pub(crate) fn time(self, steady: Reading) -> u64 {
        self.offset.wrapping_add(steady.micros())
    }
}

/// A reading of a clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading(timespec);

impl Reading {
    /// The steady clock.
    #[inline]
    pub(crate) fn now() -> Self {
        Self::of(CLOCK_MONOTONIC)
    }

    /// A clock of the system's C library, which knows best how to read it: not everywhere by a
    /// system call, but not everywhere without.
    #[inline]
    fn of(clock: clockid_t) -> Self {
        let mut time = timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: it is a place for the time.
        unsafe { libc::clock_gettime(clock, &raw mut time) };
        Self(time)
    }

    pub(crate) fn nanos(self) -> u64 {
        let seconds = self.0.tv_sec.cast_unsigned();
        seconds
            .wrapping_mul(1_000_000_000)
            .wrapping_add(self.0.tv_nsec.cast_unsigned())
    }

    #[inline]
    fn micros(self) -> u64 {
        let seconds = self.0.tv_sec.cast_unsigned();
        // Nanoseconds are less than a second, so that 32 bits do; they are divided faster.
        let nanos = self.0.tv_nsec.cast_unsigned() & u64::from(u32::MAX);
        seconds.wrapping_mul(1_000_000).wrapping_add(nanos / 1000)
    }
}
