//! A monotonic clock.

use std::mem::MaybeUninit;
use std::time::Duration;

use libc::{CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_THREAD_CPUTIME_ID, clockid_t, timespec};

/// Microseconds since the Unix epoch at the start, and steadily on from there: setting the
/// computer's clock does not disturb a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// The difference of the wall clock to the monotonic clock.
    offset: u64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let real = Reading::of(CLOCK_REALTIME);
        Self {
            offset: real.micros().wrapping_sub(Reading::now().micros()),
        }
    }

    /// The time, for a reading of the steady clock.
    #[inline]
    pub(crate) fn time(self, steady: Reading) -> u64 {
        self.offset.wrapping_add(steady.micros())
    }

    /// Nanoseconds from a time of this clock to a reading, 0 if that is before.
    pub(crate) fn nanos_since(self, start: u64, steady: Reading) -> u64 {
        let micros = self.time(steady).saturating_sub(start);
        micros
            .saturating_mul(1000)
            .saturating_add(steady.nanos % 1000)
    }
}

/// A reading of a clock.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    seconds: u64,
    /// Less than a second.
    nanos: u64,
}

impl Reading {
    /// The steady clock, now: when an event begins.
    #[inline]
    #[must_use]
    pub fn now() -> Self {
        Self::of(CLOCK_MONOTONIC)
    }

    /// A reading of a clock of the system's C library, which knows best how to do that: not everywhere by
    /// a system call, but not everywhere without.
    #[inline]
    fn of(clock: clockid_t) -> Self {
        let mut time = MaybeUninit::<timespec>::uninit();
        // SAFETY: it is a place for the time, which is written there: every system has these clocks.
        let time = unsafe {
            libc::clock_gettime(clock, time.as_mut_ptr());
            time.assume_init()
        };
        Self {
            seconds: time.tv_sec.cast_unsigned(),
            nanos: time.tv_nsec.cast_unsigned(),
        }
    }

    /// The nanoseconds of the second.
    pub(crate) fn nanos(self) -> u32 {
        (self.nanos & 0xffff_ffff) as u32
    }

    #[inline]
    fn micros(self) -> u64 {
        self.seconds
            .wrapping_mul(1_000_000)
            .wrapping_add(thousandth(self.nanos))
    }
}

/// The CPU time of the current thread, in which it is not preempted. It takes a system call.
#[must_use]
pub fn thread_cpu_time() -> Duration {
    let Reading { seconds, nanos } = Reading::of(CLOCK_THREAD_CPUTIME_ID);
    Duration::from_secs(seconds) + Duration::from_nanos(nanos)
}

/// A thousandth of what has at most 32 bits: the compiler divides by multiplying too, but does not
/// know that they are no more.
#[inline]
fn thousandth(n: u64) -> u64 {
    n.wrapping_mul(274_877_907) >> 38
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousandths_are_rounded_down() {
        for thousands in (0..1_000_000).chain([4_294_966, 4_294_967]) {
            let n = thousands * 1000;
            assert_eq!(thousandth(n), thousands);
            assert_eq!(thousandth(n + 295), thousands);
            if thousands > 0 {
                assert_eq!(thousandth(n - 1), thousands - 1);
            }
        }
        assert_eq!(thousandth(u64::from(u32::MAX)), 4_294_967);
    }
}
