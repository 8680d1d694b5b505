//! The consumers of sampled blocks, and the sampling rate.

use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use heapline_recorder::gaps::Unit;
use heapline_recorder::seed;

use crate::local::{self, Inside, with_thread};
use crate::lock::Lock;
use crate::range::range;
use crate::thread::{self, Thread, with_orphan};
use crate::{StartError, fork, stack};

/// A sampled block, at its birth.
pub(crate) struct Sample<'a> {
    /// Bytes.
    pub(crate) size: usize,
    /// The number of its bytes that were hit.
    pub(crate) hits: usize,
    /// Return addresses, the innermost first.
    pub(crate) stack: &'a [u64],
}

/// Somebody who is told about sampled blocks. The sampler is at work in all calls: what they
/// allocate is not the program's.
pub(crate) trait Consumer: Send + Sync {
    /// Returns true if blocks of this thread are of interest.
    fn wants(&self, _thread: &Thread) -> bool {
        true
    }

    /// A block is born. Returns what it is to be called from now on; `None` if it is of no interest.
    fn alloc(&self, thread: &mut Thread, sample: &Sample<'_>) -> Option<u64>;

    /// A block gets another size, and is hit as that too.
    fn realloc(&self, thread: &mut Thread, token: u64, sample: &Sample<'_>) -> Option<u64> {
        self.free(thread, token);
        self.alloc(thread, sample)
    }

    /// A block is dead.
    fn free(&self, thread: &mut Thread, token: u64);

    /// This is the child of a fork: the consumer is the parent's.
    fn abandon(&self);
}

/// The metadata of a live sampled block.
pub(crate) struct Known {
    consumer: Arc<dyn Consumer>,
    token: u64,
    /// The next one of those that wait to be looked at.
    pub(crate) next: *mut Known,
}

/// The sampling parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Changes with every change.
    pub(crate) epoch: u32,
    /// Changes with every consumer.
    pub(crate) session: u64,
    /// Hits per byte; 0 if there is nobody to tell.
    pub(crate) byte_rate: f64,
    pub(crate) seed: u64,
}

struct Current {
    settings: Settings,
    consumer: Option<Arc<dyn Consumer>>,
}

static CURRENT: Lock<Current> = Lock::new(Current {
    settings: Settings {
        epoch: 1,
        session: 0,
        byte_rate: 0.0,
        seed: 0,
    },
    consumer: None,
});

/// A copy of the settings' epoch, for a look at it without the lock.
static EPOCH: AtomicU32 = AtomicU32::new(1);

#[inline]
pub(crate) fn epoch() -> u32 {
    EPOCH.load(Ordering::Relaxed)
}

pub(crate) fn settings() -> Settings {
    CURRENT.lock().settings
}

/// A rate that makes sense.
pub(crate) fn check_rate(rate: f64) -> Result<f64, StartError> {
    if rate > 0.0 && rate <= 1.0 {
        Ok(rate)
    } else {
        Err(StartError::Rate(rate))
    }
}

/// Identifies a session for [`stop`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Session(u64);

/// Starts sampling. `make` is called when it is known that this can work.
pub(crate) fn start(
    rate: f64,
    seed: Option<u64>,
    make: impl FnOnce() -> Result<Arc<dyn Consumer>, StartError>,
) -> Result<Session, StartError> {
    check_rate(rate)?;
    let inside = Inside::enter();
    range().reserve().map_err(StartError::System)?;
    // Whatever is allocated now is our own, and so in the range: if we are asked at all.
    if !range().contains(std::hint::black_box(Box::new(0_u8)).as_ref()) {
        return Err(StartError::NotTheAllocator);
    }
    if CURRENT.lock().consumer.is_some() {
        return Err(StartError::Running);
    }
    thread::prepare();
    fork::prepare();
    stack::prepare();
    let consumer = make()?;
    let mut current = CURRENT.lock();
    if current.consumer.is_some() {
        drop(current);
        return Err(StartError::Running);
    }
    let session = current.settings.session + 1;
    current.consumer = Some(consumer);
    current.settings.session = session;
    current.settings.seed = seed.unwrap_or_else(seed::random);
    current.change(rate);
    drop(current);
    drop(inside);
    local::look_soon();
    Ok(Session(session))
}

impl Current {
    /// Takes another rate, which is per word.
    fn change(&mut self, rate: f64) {
        self.settings.byte_rate = Unit::Byte.rate(rate);
        // 0 is what a new thread has.
        self.settings.epoch = self.settings.epoch.wrapping_add(1).max(1);
        EPOCH.store(self.settings.epoch, Ordering::Relaxed);
    }
}

/// Changes the rate of a session, if it goes on.
pub(crate) fn set_rate(session: Session, rate: f64) {
    let mut current = CURRENT.lock();
    if current.settings.session == session.0 && current.consumer.is_some() {
        current.change(rate);
        drop(current);
        local::look_soon();
    }
}

/// Ends a session, if it goes on. Blocks that are known are still told to its consumer.
pub(crate) fn stop(session: Session) {
    let _inside = Inside::enter();
    let mut current = CURRENT.lock();
    if current.settings.session == session.0 {
        let consumer = current.consumer.take();
        current.change(0.0);
        drop(current);
        drop(consumer);
    }
}

/// Tells the consumer about a block that is about to be. `before` is what is known about it if it
/// gets another size. Null if nobody wants to know about it. The sampler must be at work.
#[inline(never)]
pub(crate) fn born(size: usize, hits: usize, before: *mut Known) -> *mut Known {
    let consumer = CURRENT.lock().consumer.clone();
    let Some(consumer) = consumer else {
        freed(before);
        return null_mut();
    };
    let told = with_thread(|thread| {
        // SAFETY: it is null or what was known about a block that has no other size yet.
        let before = unsafe { before.as_ref() };
        if !consumer.wants(thread) {
            contained(|| before.map(|known| known.consumer.free(thread, known.token)));
            return None;
        }
        let mut stack = std::mem::take(&mut thread.stack);
        thread.unwinding.capture(&mut stack);
        let sample = Sample {
            size,
            hits,
            stack: &stack,
        };
        let token = contained(|| {
            match before {
                Some(known) if Arc::ptr_eq(&known.consumer, &consumer) => {
                    return consumer.realloc(thread, known.token, &sample);
                }
                Some(known) => known.consumer.free(thread, known.token),
                None => {}
            }
            consumer.alloc(thread, &sample)
        });
        thread.stack = stack;
        token.flatten()
    });
    let Some(token) = told else {
        // The thread has ended.
        freed(before);
        return null_mut();
    };
    if !before.is_null() {
        // SAFETY: the consumer was told, and nobody else has it.
        drop(unsafe { Box::from_raw(before) });
    }
    let Some(token) = token else {
        return null_mut();
    };
    Box::into_raw(Box::new(Known {
        consumer,
        token,
        next: null_mut(),
    }))
}

/// Tells the consumer that a block is dead. Later, if the sampler is at work and not by itself.
#[inline(never)]
pub(crate) fn died(known: *mut Known) {
    if known.is_null() {
        return;
    }
    if Inside::is() {
        local::defer(known);
        return;
    }
    let _inside = Inside::enter();
    freed(known);
}

/// Tells the consumer that a block is dead, or that there will be none. The sampler must be at work.
pub(crate) fn freed(known: *mut Known) {
    if known.is_null() {
        return;
    }
    // SAFETY: the block is gone, and nobody else has this.
    let known = unsafe { Box::from_raw(known) };
    let tell = |thread: &mut Thread| {
        contained(|| known.consumer.free(thread, known.token));
    };
    if with_thread(tell).is_none() {
        with_orphan(tell);
    }
}

/// A consumer's mistake must not be the program's. What it leaves behind is its own.
fn contained<R>(f: impl FnOnce() -> R) -> Option<R> {
    heapline_recorder::contained(None, || Some(f()))
}

/// Before a fork.
pub(crate) fn hold() {
    CURRENT.hold();
}

/// After a fork.
pub(crate) fn release() {
    CURRENT.release();
}

/// After a fork, in the child: nothing is sampled any more.
pub(crate) fn abandon() {
    let _inside = Inside::enter();
    let mut current = CURRENT.lock();
    let consumer = current.consumer.take();
    current.change(0.0);
    drop(current);
    if let Some(consumer) = consumer {
        consumer.abandon();
    }
}
