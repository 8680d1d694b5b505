//! The callbacks of the sampler.
//!
//! Each has a fast path for common events, and a slow path for the rest. The time is read first,
//! because a call in the middle would take registers.

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use heapline_recorder::{
    Block, FrameSink, Frames, Lane, PendingBlock, Reading, Recorder, Source, TaggedCode, contained,
};

use crate::collector;
use crate::runtime::{NONE, Runtime, UNIT, Value};
use crate::stacks::{self, Stacks};
use crate::tracker::header;

/// Domains that can run at once.
pub(crate) const MAX_DOMAINS: usize = 4096;

/// The sources of memory outside of the OCaml heap, in the sampler's words: that of custom blocks, and, from OCaml 5.4
/// on, files that are mapped into memory.
const CUSTOM: Value = 2 << 1 | 1;
const MAP_FILE: Value = 3 << 1 | 1;

/// Words of the record by which the sampler describes a block, with its header.
const DESCRIPTION: u64 = 5;

/// The longest array that the runtime allocates on the minor heap.
const MAX_YOUNG: usize = 256;

/// The number 1.
const ONE: Value = 1 << 1 | 1;

/// The current session. Null while nothing is recorded.
static SESSION: AtomicPtr<Session> = AtomicPtr::new(std::ptr::null_mut());

/// A runtime and the recorder that it tells.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) runtime: &'static Runtime,
    pub(crate) recorder: &'static Recorder,
}

/// The domain that this thread runs, while something is recorded.
pub(crate) fn current_domain() -> Option<&'static Domain> {
    let number = session()?.runtime.domain();
    DOMAINS.get(number)
}

/// The words that the sampler has allocated for itself in a domain, on the minor and on the major heap.
pub(crate) fn sampler_words(number: usize) -> [u64; 2] {
    let words = DOMAINS.get(number).map(|domain| &domain.sampler_words);
    words.map_or([0; 2], |words| {
        [0, 1].map(|heap| words[heap].load(Ordering::Relaxed))
    })
}

/// The current session.
#[inline]
pub(crate) fn session() -> Option<&'static Session> {
    // SAFETY: sessions are freed only while nobody uses them.
    unsafe { SESSION.load(Ordering::Acquire).as_ref() }
}

/// The seed of the recording.
pub(crate) fn seed() -> u64 {
    let seed = session().and_then(|session| session.recorder.seed());
    seed.unwrap_or_else(|| std::process::id().into())
}

/// An id that is greater than those of all sessions that have ended.
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// The first id for a session that begins now.
pub(crate) fn next_id() -> u64 {
    NEXT_ID.load(Ordering::Relaxed)
}

/// Sessions that have begun.
static RECORDINGS: AtomicUsize = AtomicUsize::new(0);

/// The number of sessions that have begun. Asked for after a [session], it is not less than that one's.
#[inline]
pub(crate) fn recordings() -> usize {
    RECORDINGS.load(Ordering::Acquire)
}

/// A session that has ended.
///
/// It holds a pointer because the compiler assumes that what a reference points to is not overwritten,
/// which freeing it does.
#[derive(Debug)]
pub(crate) struct EndedSession(NonNull<Session>);

// SAFETY: a session may be used by any thread.
unsafe impl Send for EndedSession {}

/// Ends the session and its recording, if there is one: from now on, callbacks are ignored.
pub(crate) fn stop() -> Option<EndedSession> {
    let session = SESSION.swap(std::ptr::null_mut(), Ordering::AcqRel);
    let session = NonNull::new(session)?;
    // SAFETY: it was not freed, which only follows this.
    let recorder = unsafe { session.as_ref() }.recorder;
    NEXT_ID.fetch_max(recorder.next_id(), Ordering::Relaxed);
    // SAFETY: as above.
    collector::session_ends(unsafe { session.as_ref() });
    recorder.stop();
    Some(EndedSession(session))
}

/// Frees a session, and its recorder.
///
/// # Safety
///
/// No thread is in a callback.
pub(crate) unsafe fn free(EndedSession(session): EndedSession) {
    // SAFETY: it was made from a box, and nobody can find it.
    let recorder = unsafe { Box::from_raw(session.as_ptr()) }.recorder;
    for (number, domain) in DOMAINS.iter().enumerate() {
        let lane = recorder.lane(number);
        let lane = lane.map_or(std::ptr::null_mut(), |lane| {
            std::ptr::from_ref(lane).cast_mut()
        });
        if domain.lane.load(Ordering::Acquire) == lane {
            domain.lane.store(std::ptr::null_mut(), Ordering::Release);
        }
    }
    // SAFETY: callbacks found it by the session or by a lane, and are not at work.
    unsafe { Recorder::free(recorder) };
}

/// From now on, callbacks are for this one.
pub(crate) fn begin(session: Session) {
    RECORDINGS.fetch_add(1, Ordering::AcqRel);
    SESSION.store(Box::into_raw(Box::new(session)), Ordering::Release);
}

/// From now on, callbacks are ignored.
pub(crate) fn end() {
    if let Some(session) = session() {
        // Domains may keep their lanes: nobody can take them any more.
        session.recorder.abandon();
    }
    SESSION.store(std::ptr::null_mut(), Ordering::Release);
}

/// The sampler's description of a block: a record of four fields.
#[repr(C)]
struct Allocation {
    samples: Value,
    size: Value,
    source: Value,
    stack: *const TaggedCode,
}

impl Allocation {
    /// # Safety
    ///
    /// It is what the sampler passes, and is not used any more when we have returned.
    unsafe fn at<'a>(address: Value) -> &'a Self {
        // SAFETY: the sampler passes a record of these fields, and nothing moves it meanwhile.
        unsafe { &*std::ptr::with_exposed_provenance(address) }
    }

    fn block(&self, source: Source) -> Block {
        Block {
            length: (self.size >> 1) as u64,
            samples: (self.samples >> 1) as u64,
            source,
        }
    }

    fn is_external(&self) -> bool {
        matches!(self.source, CUSTOM | MAP_FILE)
    }

    fn stack(&self) -> &[TaggedCode] {
        // SAFETY: a block is preceded by its header, which has its length in the upper bits.
        let depth = unsafe { *self.stack.cast::<usize>().sub(1) } >> 10;
        // SAFETY: the stack is an array of tagged integers of that length.
        unsafe { std::slice::from_raw_parts(self.stack, depth) }
    }
}

/// Determines the domain that this thread runs.
pub(crate) trait CurrentDomain {
    fn domain() -> Option<&'static Domain>;
}

/// OCaml 4: there is one.
pub(crate) struct SingleDomain;

/// OCaml 5: the runtime knows.
pub(crate) struct MultipleDomains;

impl CurrentDomain for SingleDomain {
    #[inline]
    fn domain() -> Option<&'static Domain> {
        Some(&DOMAINS[0])
    }
}

impl CurrentDomain for MultipleDomains {
    #[inline]
    fn domain() -> Option<&'static Domain> {
        DOMAINS.get(session()?.runtime.domain())
    }
}

/// A block was allocated in the minor heap.
///
/// # Safety
///
/// For the sampler only.
pub(crate) unsafe extern "C" fn alloc_minor<W: CurrentDomain>(allocation: Value) -> Value {
    let now = Reading::now();
    // SAFETY: the sampler has called.
    let allocation = unsafe { Allocation::at(allocation) };
    if let Some(domain) = W::domain()
        && let Some(lane) = domain.lane()
        && !allocation.is_external()
        && allocation.samples == ONE
        && !stacks::is_too_deep(allocation.stack())
    {
        let block = Block {
            length: (allocation.size >> 1) as u64,
            samples: 1,
            source: Source::Minor,
        };
        let id = attempt(None, || {
            stacks::with_stack(domain, allocation.stack(), |stack| {
                match lane.try_alloc(now, block, stack) {
                    Ok(id) => Some(id),
                    Err(Some(pending)) => finish(pending, allocation, stack),
                    // Another thread ends the recording.
                    Err(None) => None,
                }
            })
        });
        if let Some(id) = id {
            domain.count_description(allocation);
            return domain.some(data(id, false));
        }
    }
    alloc(allocation, Source::Minor)
}

/// Slow path of a block whose lane is at hand.
#[cold]
#[inline(never)]
fn finish(pending: PendingBlock<'_>, allocation: &Allocation, stack: Frames<'_>) -> Option<u64> {
    let session = session()?;
    let resolve = |code, frames: &mut FrameSink<'_>| session.runtime.resolve(code, frames);
    let block = allocation.block(Source::Minor);
    session.recorder.finish(pending, block, stack, resolve)
}

/// A block was allocated in the major heap.
///
/// # Safety
///
/// For the sampler only.
pub(crate) unsafe extern "C" fn alloc_major<W: CurrentDomain>(allocation: Value) -> Value {
    // SAFETY: the sampler has called.
    alloc(unsafe { Allocation::at(allocation) }, Source::Major)
}

/// A block was allocated, whatever it is.
#[cold]
#[inline(never)]
fn alloc(allocation: &Allocation, source: Source) -> Value {
    let Some(session) = session() else {
        return NONE;
    };
    let number = session.runtime.domain();
    let Some(domain) = DOMAINS.get(number) else {
        return NONE;
    };
    domain.prepare();
    domain.count_description(allocation);
    let is_external = allocation.is_external();
    let source = if is_external {
        Source::External
    } else {
        source
    };
    let block = allocation.block(source);
    let resolve = |code, frames: &mut FrameSink<'_>| session.runtime.resolve(code, frames);
    let recorder = session.recorder;
    let is_same_lane = domain.lane().is_some_and(|lane| {
        let current = recorder.lane(number);
        current.is_some_and(|current| std::ptr::eq(lane, current))
    });
    let id = contained(None, || {
        stacks::with_stack(domain, allocation.stack(), |mut stack| {
            if !is_same_lane {
                // Its encoder did not get the stack before.
                stack.shared = 0;
            }
            recorder.alloc(number, block, stack, resolve)
        })
    });
    if let Some(lane) = recorder.lane(number) {
        domain.set_lane(lane);
    }
    match id {
        Some(id) => domain.some(data(id, is_external)),
        None => NONE,
    }
}

/// A block was promoted to the major heap.
///
/// # Safety
///
/// For the sampler only.
pub(crate) unsafe extern "C" fn promote<W: CurrentDomain>(data: Value) -> Value {
    let now = Reading::now();
    if let Some(domain) = W::domain()
        && let Some(lane) = domain.lane()
        && attempt(false, || {
            is_external(data) || lane.try_promote(now, id(data))
        })
    {
        return domain.some(data);
    }
    match mark(data, Recorder::promote) {
        Some(domain) => domain.some(data),
        None => NONE,
    }
}

/// A block is dead.
///
/// # Safety
///
/// For the sampler only.
pub(crate) unsafe extern "C" fn dealloc<W: CurrentDomain>(data: Value) -> Value {
    let now = Reading::now();
    if let Some(lane) = W::domain().and_then(Domain::lane)
        && attempt(false, || lane.try_collect(now, id(data)))
    {
        return UNIT;
    }
    mark(data, Recorder::collect);
    UNIT
}

/// Takes note of what became of any block. Returns the domain that this thread runs, if there is
/// still something to record.
#[cold]
#[inline(never)]
fn mark(data: Value, mark: fn(&Recorder, usize, u64)) -> Option<&'static Domain> {
    let session = session()?;
    let number = session.runtime.domain();
    contained((), || mark(session.recorder, number, id(data)));
    DOMAINS.get(number).inspect(|domain| domain.prepare())
}

/// Does something in the recorder. A mistake in it ends the recording.
#[inline]
fn attempt<R>(otherwise: R, f: impl FnOnce() -> R) -> R {
    #[cold]
    fn fail() {
        if let Some(session) = session() {
            session.recorder.fail();
        }
    }
    contained(None, || Some(f())).unwrap_or_else(|| {
        fail();
        otherwise
    })
}

/// The word that the sampler keeps with a block for us: its id, and a flag for blocks outside of
/// the heap.
#[expect(clippy::cast_possible_truncation, reason = "both have 64 bits")]
fn data(id: u64, is_external: bool) -> Value {
    (id << 2 | u64::from(is_external) << 1 | 1) as Value
}

/// The id in it.
pub(crate) fn id(data: Value) -> u64 {
    (data >> 2) as u64
}

/// Returns true for a block outside of the heap, which is never promoted.
fn is_external(data: Value) -> bool {
    data & 2 != 0
}

/// The state of each domain. All zeros, so that it takes no space in the library file.
static DOMAINS: [Domain; MAX_DOMAINS] = [const { Domain::new() }; MAX_DOMAINS];

/// The state of a domain, on cache lines of its own.
#[repr(align(64))]
pub(crate) struct Domain {
    /// A `Some`, header and field. The sampler takes out what is in it at once.
    some: UnsafeCell<[Value; 2]>,
    /// The words that the sampler has allocated for itself, on the minor and on the major heap.
    sampler_words: [AtomicU64; 2],
    /// The lane that its events are written to.
    lane: AtomicPtr<Lane>,
    /// The stacks of its blocks, if they are found by us.
    stacks: AtomicPtr<Stacks>,
}

// SAFETY: the `some` of each is used by that domain only.
unsafe impl Sync for Domain {}

impl Domain {
    const fn new() -> Self {
        Self {
            some: UnsafeCell::new([0; 2]),
            sampler_words: [const { AtomicU64::new(0) }; 2],
            lane: AtomicPtr::new(std::ptr::null_mut()),
            stacks: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    #[inline]
    fn lane(&self) -> Option<&'static Lane> {
        // SAFETY: lanes are freed only while nobody uses them.
        unsafe { self.lane.load(Ordering::Acquire).as_ref() }
    }

    fn set_lane(&self, lane: &'static Lane) {
        let lane = std::ptr::from_ref(lane).cast_mut();
        self.lane.store(lane, Ordering::Release);
    }

    /// Counts the words that the sampler has allocated to describe a block: a record, and an array for the stack, which has the
    /// ticket of one if stacks are ours.
    #[inline]
    fn count_description(&self, allocation: &Allocation) {
        let depth = allocation.stack().len();
        let array = if depth > 0 { depth as u64 + 1 } else { 0 };
        let is_young = depth <= MAX_YOUNG && collector::is_young(allocation.stack.addr());
        let words = if is_young {
            [DESCRIPTION + array, 0]
        } else {
            [DESCRIPTION, array]
        };
        for (counter, words) in self.sampler_words.iter().zip(words) {
            // One thread at a time runs the domain.
            counter.store(counter.load(Ordering::Relaxed) + words, Ordering::Relaxed);
        }
    }

    /// The stacks of its blocks, for the thread that runs it.
    #[expect(
        clippy::mut_from_ref,
        reason = "one thread at a time runs a domain, and calls neither this nor the runtime while it \
                  has the reference"
    )]
    pub(crate) fn stacks(&self) -> &mut Stacks {
        let mut stacks = self.stacks.load(Ordering::Relaxed);
        if stacks.is_null() {
            let number = DOMAINS.iter().position(|domain| std::ptr::eq(domain, self));
            stacks = Box::into_raw(Box::new(Stacks::new(number.unwrap_or(0))));
            self.stacks.store(stacks, Ordering::Relaxed);
        }
        // SAFETY: it is never freed, and only this thread has it.
        unsafe { &mut *stacks }
    }

    /// Makes `some` a block. A domain that has a lane was prepared.
    fn prepare(&self) {
        // SAFETY: only this domain uses it, and the runtime is not looking at it now.
        unsafe { (*self.some.get())[0] = header(1, 0) };
    }

    #[inline]
    fn some(&self, content: Value) -> Value {
        // SAFETY: as above.
        unsafe { (*self.some.get())[1] = content };
        self.some.get().expose_provenance() + size_of::<Value>()
    }
}
