//! Time that does not jump.

use libc::{CLOCK_MONOTONIC, CLOCK_REALTIME, clockid_t};

/// Microseconds since the Unix epoch at the start, and steadily on from there: setting the
/// computer's clock does not disturb a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// What to add to the steady clock.
    offset: u64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let real = micros(nanos(CLOCK_REALTIME));
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
#[inline]
pub(crate) fn steady_nanos() -> u64 {
    nanos(CLOCK_MONOTONIC)
}

/// A clock of the system's C library, which knows best how to read it: not everywhere by a
/// system call, but not everywhere without.
#[inline]
fn nanos(clock: clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it is a place for the time.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    (time.tv_sec.cast_unsigned())
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec.cast_unsigned())
}

fn micros(nanos: u64) -> u64 {
    nanos / 1000
}
