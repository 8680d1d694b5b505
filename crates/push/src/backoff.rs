//! The time between two attempts.

use std::time::Duration;

/// The time after the first failure.
const FIRST: Duration = Duration::from_secs(1);

/// The longest time between two attempts, unless the server asks for more.
const LONGEST: Duration = Duration::from_secs(30);

/// The longest time that a server can ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// Times that double with each failure, with jitter: clients of a server that was down do not return all at
/// once.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The time to wait after another failure, and after the time that the server asked for.
    pub(crate) fn next(&mut self, asked: Option<Duration>) -> Duration {
        // Without random numbers there is no jitter.
        let random = getrandom::u32().unwrap_or(u32::MAX);
        self.next_with(asked, f64::from(random) / f64::from(u32::MAX))
    }

    /// The delay for a random number from 0 to 1.
    fn next_with(&mut self, asked: Option<Duration>, random: f64) -> Duration {
        let doubled = FIRST
            .saturating_mul(1 << self.failures.min(16))
            .min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        let wait = doubled.mul_f64(0.5 + random / 2.0);
        match asked {
            // Not less than it asked for, and not all clients at the same time.
            Some(asked) => asked.min(LONGEST_ASKED) + FIRST.mul_f64(random),
            None => wait,
        }
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(backoff: &mut Backoff, asked: Option<u64>, random: f64) -> f64 {
        let asked = asked.map(Duration::from_secs);
        backoff.next_with(asked, random).as_secs_f64()
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "these are exact")]
    fn waits_double_up_to_a_limit_with_jitter() {
        let mut backoff = Backoff::default();
        let waits: Vec<f64> = (0..7).map(|_| seconds(&mut backoff, None, 1.0)).collect();
        assert_eq!(waits, [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]);
        assert_eq!(seconds(&mut backoff, None, 0.0), 15.0);
        for _ in 0..100 {
            backoff.next_with(None, 0.5);
        }
        assert_eq!(seconds(&mut backoff, None, 1.0), 30.0);
        backoff.reset();
        assert_eq!(seconds(&mut backoff, None, 0.0), 0.5);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "these are exact")]
    fn servers_get_the_time_that_they_ask_for() {
        let mut backoff = Backoff::default();
        assert_eq!(seconds(&mut backoff, Some(0), 0.0), 0.0);
        assert_eq!(seconds(&mut backoff, Some(40), 0.5), 40.5);
        assert_eq!(seconds(&mut backoff, Some(u64::MAX), 0.0), 300.0);
    }
}
