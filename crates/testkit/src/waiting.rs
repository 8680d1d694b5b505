//! Waiting in tests.
//!
//! Tests wait for what they can see, by its name, and fail if it does not come; [`crate::wait`] and [`crate::wait_for`] are the
//! only ways. A test in this crate keeps `sleep` out of all others.

use std::thread;
use std::time::{Duration, Instant};

/// The time after which what is waited for will not come. Generous, because busy machines are slow: it is only spent by tests
/// that fail.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// The time between two looks.
const INTERVAL: Duration = Duration::from_millis(5);

/// Waits until a condition holds.
///
/// # Panics
///
/// If it does not hold by the [`DEADLINE`]; the message has `what`.
pub fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
}

/// Waits until something is found, and returns it.
///
/// # Panics
///
/// If it is not found by the [`DEADLINE`]; the message has `what`.
pub fn wait_for<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(start.elapsed() < DEADLINE, "waited in vain for {what}");
        thread::sleep(INTERVAL);
    }
}

/// Lets time pass in tests of what happens at an arbitrary moment, such as being killed. Never a way to wait for something.
pub fn pass_time(time: Duration) {
    thread::sleep(time);
}
