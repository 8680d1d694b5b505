//! A lock that can be held across a fork, and does not allocate.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

/// Tries before the processor is given to somebody else, who may be the holder.
const SPINS: u32 = 64;

/// Protects a value. Held for short: for a list operation, or a look into a table.
#[derive(Debug)]
pub(crate) struct Lock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: only who has `taken` the lock reaches the value.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.hold();
        Guard(self)
    }

    /// Takes the lock without a guard: before a fork, so that nobody has it in the child.
    #[inline]
    pub(crate) fn hold(&self) {
        let mut tries = 0;
        while self.taken.swap(true, Ordering::Acquire) {
            tries += 1;
            if tries % SPINS == 0 {
                // SAFETY: it has no conditions.
                unsafe { libc::sched_yield() };
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Gives back a lock that this thread [holds](Self::hold), in the parent or the child of a
    /// fork.
    pub(crate) fn release(&self) {
        self.taken.store(false, Ordering::Release);
    }
}

/// The holder's access.
pub(crate) struct Guard<'a, T>(&'a Lock<T>);

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held as long as the guard lives.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed for it.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        static COUNT: Lock<u64> = Lock::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let mut count = COUNT.lock();
                        let seen = *count;
                        std::hint::spin_loop();
                        *count = seen + 1;
                    }
                });
            }
        });
        assert_eq!(*COUNT.lock(), 4000);
    }
}
