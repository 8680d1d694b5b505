//! What the sampler calls, and what it is given to call it.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicPtr, Ordering};

use heapline_recorder::{Block, FrameSink, Recorder, Source, TaggedCode, contained};

use crate::arch;
use crate::runtime::{NONE, Runtime, UNIT, Value};

/// Domains that can run at once.
const MAX_DOMAINS: usize = 4096;

/// The source of a block outside of the OCaml heap, in the sampler's words.
const CUSTOM: Value = 2 << 1 | 1;

/// What the callbacks need. Null while there is nothing to record.
static SESSION: AtomicPtr<Session> = AtomicPtr::new(std::ptr::null_mut());

/// A runtime and the recorder that it tells.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) runtime: &'static Runtime,
    pub(crate) recorder: &'static Recorder,
}

/// The session that goes on.
#[inline]
pub(crate) fn session() -> Option<&'static Session> {
    // SAFETY: sessions are never freed.
    unsafe { SESSION.load(Ordering::Acquire).as_ref() }
}

/// From now on, callbacks are for this one.
pub(crate) fn begin(session: Session) {
    SESSION.store(Box::into_raw(Box::new(session)), Ordering::Release);
}

/// From now on, callbacks are ignored.
pub(crate) fn end() {
    SESSION.store(std::ptr::null_mut(), Ordering::Release);
}

/// What the sampler says about a block: a record of four fields.
#[repr(C)]
struct Allocation {
    samples: Value,
    size: Value,
    source: Value,
    stack: *const TaggedCode,
}

/// A block was allocated, `is_major` says in which heap: one function for both, so that all that
/// it calls can be part of it.
///
/// # Safety
///
/// For the sampler only.
pub(crate) unsafe extern "C" fn alloc(allocation: Value, is_major: bool) -> Value {
    // SAFETY: the sampler passes a record of these fields, and nothing moves it before we return.
    let allocation = unsafe { &*std::ptr::with_exposed_provenance::<Allocation>(allocation) };
    let Some(session) = session() else {
        return NONE;
    };
    // SAFETY: a block is preceded by its header, which has its length in the upper bits.
    let depth = unsafe { *allocation.stack.cast::<usize>().sub(1) } >> 10;
    // SAFETY: the stack is an array of tagged integers of that length.
    let stack = unsafe { std::slice::from_raw_parts(allocation.stack, depth) };
    let is_external = allocation.source == CUSTOM;
    let block = Block {
        length: (allocation.size >> 1) as u64,
        samples: (allocation.samples >> 1) as u64,
        source: match is_major {
            _ if is_external => Source::External,
            true => Source::Major,
            false => Source::Minor,
        },
    };
    let domain = session.runtime.domain();
    let resolve = |code, frames: &mut FrameSink<'_>| session.runtime.resolve(code, frames);
    let id = contained(None, || {
        session.recorder.alloc(domain, block, stack, resolve)
    });
    match id {
        Some(id) => some(domain, tag(id << 1 | u64::from(is_external))),
        None => NONE,
    }
}

/// # Safety
///
/// For the sampler only.
pub(crate) unsafe extern "C" fn promote(data: Value) -> Value {
    let Some(session) = session() else {
        return NONE;
    };
    let domain = session.runtime.domain();
    // What is outside the heap has nowhere to go to.
    if data >> 1 & 1 == 0 {
        contained((), || session.recorder.promote(domain, (data >> 2) as u64));
    }
    some(domain, data)
}

/// # Safety
///
/// For the sampler only.
pub(crate) unsafe extern "C" fn dealloc(data: Value) -> Value {
    if let Some(session) = session() {
        let domain = session.runtime.domain();
        contained((), || session.recorder.collect(domain, (data >> 2) as u64));
    }
    UNIT
}

#[expect(clippy::cast_possible_truncation, reason = "both have 64 bits")]
fn tag(n: u64) -> Value {
    (n << 1 | 1) as Value
}

/// The header of a block that is not in OCaml's heap: the colour, 3, says so.
const fn header(words: usize, tag: usize) -> usize {
    words << 10 | 3 << 8 | tag
}

/// A block of OCaml's that is not in its heap.
#[repr(C, align(64))]
struct Outside<const N: usize> {
    header: usize,
    fields: UnsafeCell<[Value; N]>,
}

// SAFETY: fields are written before anybody else sees them.
unsafe impl<const N: usize> Sync for Outside<N> {}

impl<const N: usize> Outside<N> {
    const fn new(tag: usize, fields: [Value; N]) -> Self {
        Self {
            header: header(N, tag),
            fields: UnsafeCell::new(fields),
        }
    }

    fn value(&self) -> Value {
        self.fields.get().expose_provenance()
    }
}

/// For each domain, a `Some`. The sampler takes out what is in it at once.
static SOME: [DomainSome; MAX_DOMAINS] =
    [const { DomainSome(UnsafeCell::new([0; 2])) }; MAX_DOMAINS];

/// Header and field, away from those of other domains. All zeros takes no room in the library.
#[repr(align(64))]
struct DomainSome(UnsafeCell<[Value; 2]>);

// SAFETY: each is used by one domain only.
unsafe impl Sync for DomainSome {}

#[inline]
fn some(domain: usize, content: Value) -> Value {
    let Some(DomainSome(some)) = SOME.get(domain) else {
        return NONE;
    };
    // SAFETY: only this domain uses it, and the runtime is not looking at it now.
    unsafe { *some.get() = [header(1, 0), content] };
    some.get().expose_provenance() + size_of::<Value>()
}

const CLOSURE: usize = 247;
const DOUBLE: usize = 253;

/// Arity 1, and where the variables of the closure would begin.
const CLOSURE_INFO: Value = 1 << 56 | 2 << 1 | 1;

static RATE: Outside<1> = Outside::new(DOUBLE, [0]);
static CLOSURES: [Outside<2>; 5] = [const { Outside::new(CLOSURE, [0, CLOSURE_INFO]) }; 5];
static TRACKER: Outside<5> = Outside::new(0, [UNIT; 5]);

/// The arguments with which a sampler is started so that it calls us: rate, depth of stacks,
/// tracker.
///
/// # Safety
///
/// No sampler has them yet.
pub(crate) unsafe fn arguments(rate: f64) -> [Value; 3] {
    type Code = unsafe extern "C" fn(Value) -> Value;
    let codes: [Code; 5] = [
        arch::alloc_minor,
        arch::alloc_major,
        arch::promote,
        arch::dealloc_minor,
        arch::dealloc_major,
    ];
    // SAFETY: the caller promises that nobody looks at them.
    unsafe {
        for (closure, code) in CLOSURES.iter().zip(codes) {
            (*closure.fields.get())[0] = (code as *const ()).expose_provenance();
        }
        *TRACKER.fields.get() = CLOSURES.each_ref().map(Outside::value);
        (*RATE.fields.get())[0] = usize::from_ne_bytes(rate.to_ne_bytes());
    }
    // The greatest integer that OCaml has: stacks as deep as they are.
    let depth = usize::MAX >> 1;
    [RATE.value(), depth, TRACKER.value()]
}
