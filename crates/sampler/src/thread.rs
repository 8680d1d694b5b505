//! Per-thread data of the sampler.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::OnceLock;

use heapline_recorder::TaggedCode;

use crate::local::{self, Local};
use crate::lock::Lock;
use crate::session::Settings;
use crate::stack::{self, Unwinding};
use heapline_recorder::gaps::Gaps;
use heapline_recorder::seed;

/// A thread's data. When it ends, the next one takes it over: also the random numbers, which go on,
/// so that short-lived threads are not all sampled at the same places.
pub(crate) struct Thread {
    /// Small; no two threads that live at the same time have the same.
    pub(crate) number: usize,
    pub(crate) gaps: Gaps,
    /// The session that `gaps` belongs to.
    session: u64,
    /// Room for a stack.
    pub(crate) stack: Vec<u64>,
    /// Room for it as traces have it.
    pub(crate) codes: Vec<TaggedCode>,
    pub(crate) unwinding: Unwinding,
    /// Addresses that were asked for, times four, and what they are.
    places: [u64; PLACES],
}

/// Addresses about which a thread remembers what they are.
const PLACES: usize = 128;

/// The code belongs to the standard library, or to the sampler.
const LIBRARY: u64 = 1;
/// The program begins here: what is outside is the same for all.
const BEGINNING: u64 = 2;

static IDLE: Lock<Idle> = Lock::new(Idle {
    made: 0,
    threads: Vec::new(),
});

struct Idle {
    made: usize,
    threads: Vec<*mut Thread>,
}

// SAFETY: those that are idle are nobody's.
unsafe impl Send for Idle {}

/// The key whose destructor tells us that a thread ends.
static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();

/// Prepares what threads need. The sampler must be at work.
pub(crate) fn prepare() {
    KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `ended` takes what is set for the key.
        unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) };
        key
    });
}

/// This thread's data, which is made if need be. The sampler must be at work.
pub(crate) fn current(local: &Local) -> Option<*mut Thread> {
    let thread = local.thread.get();
    if !thread.is_null() {
        return Some(thread);
    }
    let key = *KEY.get()?;
    let mut idle = IDLE.lock();
    let reused = idle.threads.pop();
    let number = idle.made;
    idle.made += usize::from(reused.is_none());
    // Room for it, so that its end takes no memory.
    let missing = idle.made - idle.threads.len();
    idle.threads.reserve(missing);
    drop(idle);
    let thread = reused.unwrap_or_else(|| Box::into_raw(Box::new(Thread::new(number))));
    // SAFETY: it is nobody else's.
    unsafe { (*thread).unwinding.begin_thread() };
    local.thread.set(thread);
    // SAFETY: the key exists.
    unsafe { libc::pthread_setspecific(key, thread.cast()) };
    Some(thread)
}

/// Called by the system in a thread that ends, after the destructors of thread-local variables.
extern "C" fn ended(thread: *mut c_void) {
    local::end();
    IDLE.lock().threads.push(thread.cast());
}

impl Thread {
    fn new(number: usize) -> Self {
        Self {
            number,
            gaps: Gaps::new(0.0, 0),
            session: 0,
            stack: Vec::new(),
            codes: Vec::new(),
            unwinding: Unwinding::new(),
            places: [0; PLACES],
        }
    }

    /// The part of a stack that is the program's: without what the standard library and the sampler
    /// did inside of it, and the beginning of the program outside.
    pub(crate) fn program_part<'a>(&mut self, stack: &'a [u64]) -> &'a [u64] {
        let is = |thread: &mut Self, address: u64, what: u64| thread.place(address) & what != 0;
        let inner = stack.iter().position(|a| !is(self, *a, LIBRARY));
        let outer = stack.iter().rposition(|a| is(self, *a, BEGINNING));
        let inner = inner.unwrap_or(0);
        let outer = outer.filter(|outer| *outer > inner);
        &stack[inner..outer.unwrap_or(stack.len())]
    }

    fn place(&mut self, address: u64) -> u64 {
        let index = usize::try_from(address >> 2).unwrap_or(0) % PLACES;
        if self.places[index] >> 2 != address {
            let frames = stack::resolve(address);
            let is_library = frames.iter().all(|frame| frame.is_library);
            let is_beginning = frames.iter().any(stack::is_beginning);
            let what = [(is_library, LIBRARY), (is_beginning, BEGINNING)];
            let what = what.iter().map(|(is, bit)| u64::from(*is) * bit);
            self.places[index] = address << 2 | what.sum::<u64>();
        }
        self.places[index]
    }

    /// The distance of the first hit, with new settings.
    pub(crate) fn first_gap(&mut self, settings: &Settings) -> usize {
        if self.session == settings.session {
            self.gaps.set_rate(settings.byte_rate);
        } else {
            self.session = settings.session;
            let seed = seed::of_part(settings.seed, self.number as u64);
            self.gaps = Gaps::new(settings.byte_rate, seed);
        }
        self.gaps.next()
    }
}

/// Replaces a thread's data in threads that have ended, except for their destructors.
static ORPHAN: Lock<Orphan> = Lock::new(Orphan(null_mut()));

struct Orphan(*mut Thread);

// SAFETY: it is only reached through its lock.
unsafe impl Send for Orphan {}

/// The number of that one.
pub(crate) const ORPHAN_NUMBER: usize = usize::MAX;

/// Does something with the data of a thread that has ended, one such thread at a time. The sampler
/// must be at work.
pub(crate) fn with_orphan<R>(f: impl FnOnce(&mut Thread) -> R) -> R {
    let mut orphan = ORPHAN.lock();
    if orphan.0.is_null() {
        orphan.0 = Box::into_raw(Box::new(Thread::new(ORPHAN_NUMBER)));
    }
    // SAFETY: it was made just as that, is never freed, and the lock is held.
    f(unsafe { &mut *orphan.0 })
}

/// Before a fork. Those that have ended but for their destructors first: they are still calling
/// consumers.
pub(crate) fn hold_orphan() {
    ORPHAN.hold();
}

/// Before a fork.
pub(crate) fn hold() {
    IDLE.hold();
}

/// After a fork.
pub(crate) fn release() {
    IDLE.release();
    ORPHAN.release();
}
