//! Phases of a run.

use super::stacks::HANDLERS;

/// Microseconds after which the server's load changes.
const DURATION: u64 = 120_000_000;

/// The load of the server for some time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase {
    pub(super) number: u64,
    /// Most microseconds between two sampled blocks.
    pub(super) pause: u64,
    /// The first of the handlers that are called.
    pub(super) first_handler: usize,
    pub(super) handlers: usize,
    /// True if the leak grows.
    pub(super) leaks: bool,
}

impl Phase {
    /// The phase at a time in microseconds since the start.
    pub(super) fn at(time: u64) -> Self {
        let number = time / DURATION;
        // Every seventh phase is a batch job: few handlers, no pauses.
        let batch = number % 7 == 6;
        Self {
            number,
            pause: if batch { 120 } else { 150 + number % 5 * 10 },
            first_handler: usize::try_from(number * 5 % HANDLERS as u64).unwrap_or_default(),
            handlers: if batch { 3 } else { 40 },
            leaks: number % 3 != 1,
        }
    }
}
