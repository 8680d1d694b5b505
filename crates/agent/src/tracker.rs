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

/// Rates of recordings, one after the other.
const RATES: usize = 256;

static RATE: [Outside<1>; RATES] = [const { Outside::new(DOUBLE, [0]) }; RATES];
static CLOSURES: [Outside<2>; 5] = [const { Outside::new(CLOSURE, [0, CLOSURE_INFO]) }; 5];
static START: Outside<2> = Outside::new(CLOSURE, [0, CLOSURE_INFO]);
static TRACKER: Outside<5> = Outside::new(0, [UNIT; 5]);

/// The code of a closure.
#[derive(Clone, Copy)]
pub(crate) struct Closure {
    /// For OCaml 4.
    pub(crate) direct: unsafe extern "C" fn(Value) -> Value,
    /// For OCaml 5.
    pub(crate) switching: unsafe extern "C" fn(Value) -> Value,
}

/// The sampling rate of a recording, as OCaml has numbers. Recordings of a process have different
/// numbers, by which their samplers are told apart.
///
/// # Safety
///
/// No sampler that is needed has that of [`RATES`] recordings before.
pub(crate) unsafe fn rate(recording: usize, rate: f64) -> Value {
    let place = &RATE[recording % RATES];
    // SAFETY: the caller promises that nobody looks at it.
    unsafe { (*place.fields.get())[0] = usize::from_ne_bytes(rate.to_ne_bytes()) };
    place.value()
}

/// Returns true for values that [`rate`] has returned.
pub(crate) fn is_rate(value: Value) -> bool {
    RATE.iter().any(|place| place.value() == value)
}

/// The tracker with which a sampler is started so that it calls us.
pub(crate) fn closures(kind: Kind) -> Value {
    static WRITTEN: Once = Once::new();
    let codes = [
        arch::ALLOC_MINOR,
        arch::ALLOC_MAJOR,
        arch::PROMOTE,
        arch::DEALLOC,
        arch::DEALLOC,
    ];
    // SAFETY: nobody has them before this.
    WRITTEN.call_once(|| unsafe {
        for (closure, codes) in CLOSURES.iter().zip(codes) {
            let code = match kind {
                Kind::Single => codes.direct,
                Kind::Domains { .. } => codes.switching,
            };
            (*closure.fields.get())[0] = (code as *const ()).expose_provenance();
        }
        *TRACKER.fields.get() = CLOSURES.each_ref().map(Outside::value);
        (*START.fields.get())[0] = (arch::start_sampler as *const ()).expose_provenance();
    });
    TRACKER.value()
}

/// A closure that starts the sampler with [arguments](crate::runtime::START_ARGUMENTS): exceptions of a
/// closure can be caught.
pub(crate) fn starter(kind: Kind) -> Value {
    closures(kind);
    START.value()
}
