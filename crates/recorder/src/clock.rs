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
        let mut real = Reading::NONE;
        real.read(CLOCK_REALTIME);
        Self {
            offset: real.micros().wrapping_sub(Reading::now().micros()),
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
    /// No reading yet.
    pub(crate) const NONE: Self = Self(timespec {
        tv_sec: 0,
        tv_nsec: 0,
    });

    /// The steady clock.
    pub(crate) fn now() -> Self {
        let mut reading = Self::NONE;
        reading.renew();
        reading
    }

    /// Reads the steady clock again.
    #[inline]
    pub(crate) fn renew(&mut self) {
        self.read(CLOCK_MONOTONIC);
    }

    /// Reads a clock of the system's C library, which knows best how to do that: not everywhere by
    /// a system call, but not everywhere without.
    #[inline]
    fn read(&mut self, clock: clockid_t) {
        // SAFETY: it is a place for the time.
        unsafe { libc::clock_gettime(clock, &raw mut self.0) };
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
