//! The runtime's frame descriptors, by which it walks its stacks.
//!
//! Frames are found by the runtime's own `caml_next_frame_descriptor`, so that this needs to know little
//! of them: where a walk begins, and of a descriptor the return address, the size of the frame, and
//! the debug information of combined allocations. All of that is the same in OCaml 4.11 to 4.14 and
//! 5.3 to 5.5.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::arch;
use crate::domains;
use crate::layout::fiber::{CURRENT_STACK, HANDLER, PARENT};
use crate::layout::single::BOTTOM_OF_STACK;
use crate::runtime::{Kind, symbol};
use crate::walker::{Calls, Frame, Position};

/// Bits of a frame's size that have another meaning.
const HAS_DEBUG_INFO: u16 = 1;
const HAS_ALLOCATIONS: u16 = 2;

/// The functions and variables of the runtime.
#[derive(Debug)]
pub(crate) struct FrameTable {
    runtime: Variant,
    alloc: usize,
    resize: usize,
}

#[derive(Debug)]
enum Variant {
    Single {
        next: usize,
        /// `Caml_state`
        state: usize,
        /// Which of [`BOTTOM_OF_STACK`] it is, once that is known, plus 1.
        layout: AtomicUsize,
    },
    Domains {
        next: usize,
        /// `caml_state`, a variable of each thread, as an offset from its thread pointer.
        state: usize,
        /// `caml_get_frame_descrs`
        table: usize,
        /// `caml_get_stack_sp_pc`
        stack_position: usize,
    },
}

type SingleNext = unsafe extern "C" fn(&mut usize, &mut usize) -> usize;
type DomainsNext = unsafe extern "C" fn(*const c_void, &mut usize, &mut usize, usize) -> usize;
type StackPosition = unsafe extern "C" fn(usize, &mut usize, &mut usize);

/// Reads a word of the program.
///
/// # Safety
///
/// There is one at the address.
unsafe fn word(address: usize) -> usize {
    // SAFETY: as the caller's.
    unsafe { *std::ptr::with_exposed_provenance(address) }
}

impl FrameTable {
    /// Looks for the frame table of the runtime of a kind; `None` if it has another layout.
    ///
    /// # Safety
    ///
    /// The runtime is up, and this thread may run OCaml code.
    pub(crate) unsafe fn find(kind: Kind) -> Option<Self> {
        let next = symbol(c"caml_next_frame_descriptor")?;
        let runtime = match kind {
            Kind::Single => Variant::Single {
                next,
                state: symbol(c"Caml_state")?,
                layout: AtomicUsize::new(0),
            },
            Kind::Domains { .. } => Variant::Domains {
                next,
                // SAFETY: this thread runs a domain.
                state: unsafe { find_state()? },
                table: symbol(c"caml_get_frame_descrs")?,
                stack_position: symbol(c"caml_get_stack_sp_pc")?,
            },
        };
        Some(Self {
            runtime,
            alloc: symbol(c"caml_stat_alloc_noexc")?,
            resize: symbol(c"caml_stat_resize_noexc")?,
        })
    }

    /// Returns true for OCaml 5.
    pub(crate) fn has_domains(&self) -> bool {
        matches!(self.runtime, Variant::Domains { .. })
    }

    /// The position of the innermost frame of this thread's stack; `None` if it runs no OCaml code.
    ///
    /// # Safety
    ///
    /// This thread may run OCaml code, and is in C code.
    pub(crate) unsafe fn innermost(&self) -> Option<Position> {
        match &self.runtime {
            Variant::Single { state, layout, .. } => {
                // SAFETY: it is a variable of the runtime that holds the address of its state, of which
                // every word can be read.
                unsafe {
                    let state = word(*state);
                    let known = layout.load(Ordering::Relaxed);
                    let position = |bottom: usize| Position {
                        sp: word(state + 8 * bottom),
                        pc: word(state + 8 * (bottom + 1)),
                        stack: 0,
                    };
                    if let Some(&bottom) = BOTTOM_OF_STACK.get(known.wrapping_sub(1)) {
                        return Some(position(bottom));
                    }
                    // In the wrong layout, what should be a return address is one of the stack or
                    // of a table, for which there is no descriptor.
                    (1..).zip(BOTTOM_OF_STACK).find_map(|(number, bottom)| {
                        let found = position(bottom);
                        self.next(&mut { found })?;
                        layout.store(number, Ordering::Relaxed);
                        Some(found)
                    })
                }
            }
            Variant::Domains {
                state,
                stack_position,
                ..
            } => {
                // SAFETY: this thread runs a domain, whose state this is; `find` has seen that a
                // state has the address of the stack there.
                let stack = unsafe { current_stack(*state) };
                (stack != 0).then(|| position_on(stack, *stack_position))
            }
        }
    }

    /// The debug information of one of the allocations that a descriptor is about.
    ///
    /// # Safety
    ///
    /// It is a descriptor, and has allocations if `allocation` is not negative.
    pub(crate) unsafe fn debug_info(descriptor: usize, allocation: isize) -> Option<usize> {
        let allocation = usize::try_from(allocation).ok()?;
        // SAFETY: that is how a descriptor is laid out: the return address, the size of the frame, the
        // number of live values, 2 bytes for each; if there are allocations, their number, a byte for
        // each; if there is debug information, an offset of 4 bytes for each allocation.
        unsafe {
            let half = |address: usize| *std::ptr::with_exposed_provenance::<u16>(address);
            let size = half(descriptor + 8);
            if size & HAS_DEBUG_INFO == 0 || size & HAS_ALLOCATIONS == 0 {
                return None;
            }
            let lengths = descriptor + 12 + 2 * usize::from(half(descriptor + 10));
            let count = *std::ptr::with_exposed_provenance::<u8>(lengths);
            let offsets = (lengths + 1 + usize::from(count)).next_multiple_of(4);
            let place = offsets + 4 * allocation;
            let offset = *std::ptr::with_exposed_provenance::<u32>(place);
            (offset != 0).then(|| place + offset as usize)
        }
    }

    /// Memory for a number of words, of which the first were in `old`, from the runtime's allocator.
    ///
    /// # Safety
    ///
    /// `old` comes from there, or is null.
    pub(crate) unsafe fn reallocate(&self, old: *mut usize, words: usize) -> *mut usize {
        type Alloc = unsafe extern "C" fn(usize) -> *mut usize;
        type Resize = unsafe extern "C" fn(*mut usize, usize) -> *mut usize;
        // SAFETY: that is what the functions take and return; the rest is the caller's.
        unsafe {
            if old.is_null() {
                std::mem::transmute::<usize, Alloc>(self.alloc)(8 * words)
            } else {
                std::mem::transmute::<usize, Resize>(self.resize)(old, 8 * words)
            }
        }
    }
}

/// The offset of `caml_state` from a thread's pointer; `None` if what is there is not as expected.
///
/// # Safety
///
/// This thread runs a domain.
unsafe fn find_state() -> Option<usize> {
    // The program's own variables of a thread are at the same offset in all threads.
    let offset = symbol(c"caml_state")?.wrapping_sub(arch::thread_pointer());
    // SAFETY: this thread runs a domain.
    if !unsafe { domains::has_known_state() } {
        return None;
    }
    // SAFETY: the layout of the state is known, so it has a stack there. It begins with the stack pointer,
    // as long as C code runs, and ends at the handler.
    let is_stack = unsafe {
        let stack = current_stack(offset);
        let (pointer, handler) = (word(stack), word(stack + 8 * HANDLER));
        (stack..=handler).contains(&pointer) && word(handler + 8 * PARENT).is_multiple_of(8)
    };
    is_stack.then_some(offset)
}

/// The stack of the domain that this thread runs.
///
/// # Safety
///
/// It runs one, and this is the offset of its `caml_state`.
unsafe fn current_stack(state: usize) -> usize {
    // SAFETY: as the caller's.
    unsafe { word(word(arch::thread_pointer().wrapping_add(state)) + 8 * CURRENT_STACK) }
}

/// The position where a fiber's stack was left.
fn position_on(stack: usize, stack_position: usize) -> Position {
    let (mut sp, mut pc) = (0, 0);
    // SAFETY: that is what the function takes, for a stack of the runtime that is not running OCaml code.
    unsafe {
        std::mem::transmute::<usize, StackPosition>(stack_position)(stack, &mut sp, &mut pc);
    }
    Position { pc, sp, stack }
}

impl Calls for FrameTable {
    fn next(&self, at: &mut Position) -> Option<Frame> {
        let descriptor = match self.runtime {
            Variant::Single { next, .. } => {
                // SAFETY: that is what the function takes, for a position in a stack.
                unsafe { std::mem::transmute::<usize, SingleNext>(next)(&mut at.pc, &mut at.sp) }
            }
            Variant::Domains {
                next,
                table,
                stack_position,
                ..
            } => loop {
                // SAFETY: as above.
                let descriptor = unsafe {
                    let table: unsafe extern "C" fn() -> *const c_void = std::mem::transmute(table);
                    let next: DomainsNext = std::mem::transmute(next);
                    next(table(), &mut at.pc, &mut at.sp, at.stack)
                };
                if descriptor != 0 {
                    break descriptor;
                }
                // SAFETY: a stack has a handler, and that the parent or 0.
                let parent = unsafe { word(word(at.stack + 8 * HANDLER) + 8 * PARENT) };
                if parent == 0 {
                    break 0;
                }
                *at = position_on(parent, stack_position);
            },
        };
        (descriptor != 0).then(|| Frame {
            descriptor,
            sp: at.sp - self.frame_size(descriptor),
            stack: at.stack,
        })
    }

    #[inline]
    fn return_address(&self, descriptor: usize) -> usize {
        // SAFETY: a descriptor begins with it.
        unsafe { word(descriptor) }
    }

    #[inline]
    fn frame_size(&self, descriptor: usize) -> usize {
        // SAFETY: the size follows the return address.
        let size = unsafe { *std::ptr::with_exposed_provenance::<u16>(descriptor + 8) };
        usize::from(size & !(HAS_DEBUG_INFO | HAS_ALLOCATIONS))
    }

    #[inline]
    fn saved_return_address(&self, sp: usize) -> usize {
        // SAFETY: the walker asks for the ends of frames that are on the stack.
        arch::return_address(unsafe { word(sp - 8) })
    }
}
