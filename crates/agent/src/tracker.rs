//! The tracker that is passed to the sampler: OCaml blocks outside of its heap.

use std::cell::UnsafeCell;

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

static RATE: Outside<1> = Outside::new(DOUBLE, [0]);
static CLOSURES: [Outside<2>; 5] = [const { Outside::new(CLOSURE, [0, CLOSURE_INFO]) }; 5];
static TRACKER: Outside<5> = Outside::new(0, [UNIT; 5]);

/// The code of a closure.
#[derive(Clone, Copy)]
pub(crate) struct Closure {
    /// For OCaml 4.
    pub(crate) direct: unsafe extern "C" fn(Value) -> Value,
    /// For OCaml 5.
    pub(crate) switching: unsafe extern "C" fn(Value) -> Value,
}

/// The arguments with which a sampler is started so that it calls us: rate and tracker.
///
/// # Safety
///
/// No sampler has them yet.
pub(crate) unsafe fn arguments(kind: Kind, rate: f64) -> [Value; 2] {
    let codes = [
        arch::ALLOC_MINOR,
        arch::ALLOC_MAJOR,
        arch::PROMOTE,
        arch::DEALLOC,
        arch::DEALLOC,
    ];
    // SAFETY: the caller promises that nobody looks at them.
    unsafe {
        for (closure, codes) in CLOSURES.iter().zip(codes) {
            let code = match kind {
                Kind::Single => codes.direct,
                Kind::Domains { .. } => codes.switching,
            };
            (*closure.fields.get())[0] = (code as *const ()).expose_provenance();
        }
        *TRACKER.fields.get() = CLOSURES.each_ref().map(Outside::value);
        (*RATE.fields.get())[0] = usize::from_ne_bytes(rate.to_ne_bytes());
    }
    [RATE.value(), TRACKER.value()]
}
