//! Thread-local state, and the sampling decision for each block: the fast path.
//!
//! For an ordinary block only [`count`] runs: it subtracts the size from the countdown. When that runs
//! out, the slow path [`trip`] is taken.
//!
//! # Bytes and words
//!
//! The rate is given per word of 8 bytes, as for OCaml programs, but the unit of sampling is the byte
//! ([`Unit::Byte`]), so sizes are never rounded: a block of S bytes is sampled with probability
//! 1 - (1 - rate)^(S/8).
//!
//! [`Unit::Byte`]: heapline_recorder::gaps::Unit::Byte
//!
//! # Changes of the settings
//!
//! The countdown is never more than [`STRETCH`]; the rest of the distance is kept separately. So a
//! thread regularly checks if sampling was started, stopped, or changed its rate, and no thread ever
//! writes to another thread's state.

use std::cell::Cell;
use std::ptr::null_mut;

use crate::session::{self, Known};
use crate::thread::{self, Thread};
use heapline_recorder::gaps::NEVER;

/// Bytes after which a thread looks whether anything has changed.
const STRETCH: usize = 1 << 16;

/// A thread's own.
pub(crate) struct Local {
    /// Bytes until there is something to do.
    countdown: Cell<usize>,
    /// Bytes that are to be passed over after those, until the next hit.
    after: Cell<usize>,
    /// The settings that this was drawn for.
    epoch: Cell<u32>,
    /// The depth of nested calls of the sampler in this thread.
    inside: Cell<u32>,
    /// True if the thread has ended, except for destructors that still run.
    ended: Cell<bool>,
    pub(crate) thread: Cell<*mut Thread>,
    /// Blocks that were freed while the sampler was at work.
    deferred: Cell<*mut Known>,
}

thread_local! {
    // Without a destructor and made by the compiler, so that it is there at any time.
    static LOCAL: Local = const {
        Local {
            countdown: Cell::new(0),
            after: Cell::new(0),
            epoch: Cell::new(0),
            inside: Cell::new(0),
            ended: Cell::new(false),
            thread: Cell::new(null_mut()),
            deferred: Cell::new(null_mut()),
        }
    };
}

/// The sampling decision for a new block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Not sampled.
    Ordinary,
    /// It is the sampler's own.
    Own,
    /// So many of its bytes were hit.
    Sampled(usize),
}

/// Counts a new block. If this is true, [`trip`] must follow.
#[inline]
pub(crate) fn count(size: usize) -> bool {
    LOCAL.with(|local| {
        let (left, used_up) = local.countdown.get().overflowing_sub(size);
        local.countdown.set(left);
        used_up
    })
}

/// Decides about a block for which the number was used up.
pub(crate) fn trip(size: usize) -> Decision {
    LOCAL.with(|local| {
        let before = local.countdown.get().wrapping_add(size);
        if local.inside.get() > 0 {
            local.countdown.set(0);
            return Decision::Own;
        }
        let mut gap = before + local.after.get();
        if local.epoch.get() != session::epoch() {
            gap = renew(local);
        }
        if gap >= size {
            local.set_gap(gap - size);
            return Decision::Ordinary;
        }
        let thread = local.thread.get();
        // SAFETY: there is a hit, so the thread was made when that was drawn; it belongs to this
        // thread, and nothing that is called here gets at it another way.
        let gaps = unsafe { &mut (*thread).gaps };
        let (hits, gap) = gaps.hits(gap, size);
        local.set_gap(gap);
        Decision::Sampled(hits)
    })
}

impl Local {
    fn set_gap(&self, gap: usize) {
        let stretch = gap.min(STRETCH);
        self.countdown.set(stretch);
        self.after.set(gap - stretch);
    }
}

/// Draws anew, after a change of the settings.
#[cold]
fn renew(local: &Local) -> usize {
    let settings = session::settings();
    local.epoch.set(settings.epoch);
    if settings.byte_rate <= 0.0 || local.ended.get() {
        return NEVER;
    }
    let _inside = Inside::enter();
    let thread = thread::current(local);
    // SAFETY: it is this thread's, and nobody else uses it now.
    thread.map_or(NEVER, |thread| unsafe { (*thread).first_gap(&settings) })
}

/// Makes this thread look at its next block whether anything has changed.
pub(crate) fn look_soon() {
    LOCAL.with(|local| {
        if local.inside.get() == 0 {
            local.countdown.set(0);
            local.after.set(0);
        }
    });
}

/// Does something with this thread's data; `None` if it has ended or there is no room for it.
pub(crate) fn with_thread<R>(f: impl FnOnce(&mut Thread) -> R) -> Option<R> {
    LOCAL.with(|local| {
        if local.ended.get() {
            return None;
        }
        let thread = thread::current(local)?;
        // SAFETY: it belongs to this thread, and callers are the sampler at work, which does not
        // call itself: see `Inside`.
        Some(f(unsafe { &mut *thread }))
    })
}

/// The thread has ended: nothing that its destructors still do is sampled.
pub(crate) fn end() {
    LOCAL.with(|local| {
        local.ended.set(true);
        local.thread.set(null_mut());
        local.set_gap(NEVER);
    });
}

/// Reentrancy guard: while held, allocations on this thread are the sampler's own, and frees are
/// deferred.
pub(crate) struct Inside {
    countdown: usize,
}

impl Inside {
    pub(crate) fn enter() -> Self {
        LOCAL.with(|local| {
            local.inside.set(local.inside.get() + 1);
            // Every block goes to `trip`.
            Self {
                countdown: local.countdown.replace(0),
            }
        })
    }

    /// Returns true while the sampler runs in this thread.
    pub(crate) fn is() -> bool {
        LOCAL.with(|local| local.inside.get() > 0)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        LOCAL.with(|local| {
            if local.inside.get() == 1 {
                let mut next = local.deferred.replace(null_mut());
                while !next.is_null() {
                    let freed = next;
                    // SAFETY: it was deferred, and so is nobody else's.
                    next = unsafe { (*freed).next };
                    session::freed(freed);
                    if next.is_null() {
                        next = local.deferred.replace(null_mut());
                    }
                }
            }
            local.inside.set(local.inside.get() - 1);
            local.countdown.set(self.countdown);
        });
    }
}

/// Takes note of a block that was freed while the sampler is at work.
pub(crate) fn defer(known: *mut Known) {
    LOCAL.with(|local| {
        // SAFETY: the block is gone, and with it whoever else could reach this.
        unsafe { (*known).next = local.deferred.get() };
        local.deferred.set(known);
    });
}
