//! The tracker that is passed to the sampler: OCaml blocks outside of its heap.

use std::cell::UnsafeCell;
use std::sync::Once;

use crate::arch;
use crate::runtime::{Kind, UNIT, Value};

/// The header of a block that is not in OCaml's heap: the colour, 3, says so.
pub(crate) const fn header(words: usize, tag: usize) -> usize {
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

const CLOSURE: usize = 247;
const DOUBLE: usize = 253;

/// Arity 1, and where the variables of the closure would begin.
const CLOSURE_INFO: Value = 1 << 56 | 2 << 1 | 1;

/// Recordings of a process, one after the other, whose samplers can be told apart.
const RECORDINGS: usize = 256;

static RATES: [Outside<1>; RECORDINGS] = [const { Outside::new(DOUBLE, [0]) }; RECORDINGS];
/// What a sampler calls for a block in the minor heap: one for each recording, all with the same code. Unlike the
/// rate, which OCaml 5.5 copies, it stays in the sampler's configuration as it was passed.
static ALLOC_MINOR: [Outside<2>; RECORDINGS] =
    [const { Outside::new(CLOSURE, [0, CLOSURE_INFO]) }; RECORDINGS];
static OTHERS: [Outside<2>; 4] = [const { Outside::new(CLOSURE, [0, CLOSURE_INFO]) }; 4];
static START: Outside<2> = Outside::new(CLOSURE, [0, CLOSURE_INFO]);
static TRACKERS: [Outside<5>; RECORDINGS] = [const { Outside::new(0, [UNIT; 5]) }; RECORDINGS];

/// The code of a closure.
#[derive(Clone, Copy)]
pub(crate) struct Closure {
    /// For OCaml 4.
    pub(crate) direct: unsafe extern "C" fn(Value) -> Value,
    /// For OCaml 5.
    pub(crate) switching: unsafe extern "C" fn(Value) -> Value,
}

/// The arguments with which the samplers of a recording are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) rate: Value,
    pub(crate) tracker: Value,
    /// The value in the configuration of a sampler by which those of this recording are known.
    pub(crate) mark: Value,
}

/// The arguments of a recording.
///
/// # Safety
///
/// No sampler that is needed has those of [`RECORDINGS`] recordings before.
pub(crate) unsafe fn arguments(recording: usize, rate: f64, kind: Kind) -> Arguments {
    write_closures(kind);
    let number = recording % RECORDINGS;
    let place = &RATES[number];
    // SAFETY: the caller promises that nobody looks at it.
    unsafe { (*place.fields.get())[0] = usize::from_ne_bytes(rate.to_ne_bytes()) };
    Arguments {
        rate: place.value(),
        tracker: TRACKERS[number].value(),
        mark: ALLOC_MINOR[number].value(),
    }
}

/// Returns true for the marks of samplers that were started by us.
pub(crate) fn is_mark(value: Value) -> bool {
    ALLOC_MINOR.iter().any(|closure| closure.value() == value)
}

/// Writes all closures, once.
fn write_closures(kind: Kind) {
    static WRITTEN: Once = Once::new();
    let codes = [
        arch::ALLOC_MAJOR,
        arch::PROMOTE,
        arch::DEALLOC,
        arch::DEALLOC,
    ];
    // SAFETY: nobody has them before this.
    WRITTEN.call_once(|| unsafe {
        let set = |closure: &Outside<2>, codes: Closure| {
            let code = match kind {
                Kind::Single => codes.direct,
                Kind::Domains { .. } => codes.switching,
            };
            (*closure.fields.get())[0] = (code as *const ()).expose_provenance();
        };
        for (closure, codes) in OTHERS.iter().zip(codes) {
            set(closure, codes);
        }
        let [alloc_major, promote, dealloc_minor, dealloc_major] =
            OTHERS.each_ref().map(Outside::value);
        for (tracker, alloc_minor) in TRACKERS.iter().zip(&ALLOC_MINOR) {
            set(alloc_minor, arch::ALLOC_MINOR);
            *tracker.fields.get() = [
                alloc_minor.value(),
                alloc_major,
                promote,
                dealloc_minor,
                dealloc_major,
            ];
        }
        (*START.fields.get())[0] = (arch::start_sampler as *const ()).expose_provenance();
    });
}

/// A closure that starts the sampler with [arguments](crate::runtime::START_ARGUMENTS): exceptions of a
/// closure can be caught.
pub(crate) fn starter(kind: Kind) -> Value {
    write_closures(kind);
    START.value()
}
