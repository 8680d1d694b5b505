//! The call stacks of sampled blocks.
//!
//! OCaml's sampler has a function of the runtime walk the whole stack for every sample, and passes the
//! result to the callback as an OCaml array. In programs with deep stacks that takes most of the time,
//! and much memory. So that function is replaced by ours, which finds the stack [incrementally](Walker),
//! and leaves a ticket in its place. The callback, which may come much later, presents the ticket.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use heapline_recorder::{Frames, TaggedCode, thread_cpu_time};

use crate::callbacks::{self, Domain};
use crate::check;
use crate::frame_table::FrameTable;
use crate::patch::Patch;
use crate::runtime::{Kind, Value, symbol};
use crate::walker::{Calls, Walker};

/// The depth that the sampler asks for, by which its calls are told from others. OCaml 5 keeps 32 bits
/// of it.
const DEPTH: isize = 0x3eaf_11e5;

/// Set in tickets, and not in any address.
const TICKET: usize = 1 << 61;

/// Stacks that wait for their callbacks at most. More are unheard of: then the oldest are dropped.
const MAX_WAITING: usize = 1 << 16;

/// Stacks after which the time of one is taken for all.
const MEASURED: u32 = 64;

static COLLECT: Patch = Patch::new();
static IS_REPLACED: AtomicBool = AtomicBool::new(false);
static TABLE: OnceLock<FrameTable> = OnceLock::new();

/// Stacks whose callbacks did not come before the next stack was needed, the oldest first.
static WAITING: Mutex<VecDeque<(usize, Box<[TaggedCode]>)>> = Mutex::new(VecDeque::new());

/// Frames of a stack that are kept.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Limits the frames that are kept of a stack. Returns the depth to ask the sampler for, as OCaml has
/// integers.
pub(crate) fn limit(depth: Option<usize>, is_replaced: bool) -> Value {
    LIMIT.store(depth.unwrap_or(usize::MAX), Ordering::Relaxed);
    let depth = match depth {
        _ if is_replaced => DEPTH,
        // One more tells that there are more.
        Some(depth) => isize::try_from(depth).map_or(isize::MAX / 2, |depth| depth + 1),
        None => isize::MAX / 2,
    };
    depth.cast_unsigned() << 1 | 1
}

/// Returns true if a stack has more frames than are kept.
#[inline]
pub(crate) fn is_too_deep(stack: &[TaggedCode]) -> bool {
    stack.len() > LIMIT.load(Ordering::Relaxed)
}

/// Replaces the runtime's function by ours. Returns false if that is not possible, so that the
/// sampler's stacks have to do.
///
/// # Safety
///
/// The runtime is up, and no thread is in the function or going to be in the meantime.
pub(crate) unsafe fn replace(kind: Kind) -> bool {
    let (name, ours) = match kind {
        Kind::Single => (
            c"caml_collect_current_callstack",
            collect_single as *const (),
        ),
        Kind::Domains { .. } => (c"caml_get_callstack", collect_of_domain as *const ()),
    };
    // SAFETY: the runtime is up.
    let table = unsafe { FrameTable::find(kind) };
    let (Some(table), Some(function)) = (table, symbol(name)) else {
        return false;
    };
    // SAFETY: the function is longer than a jump; the rest is the caller's.
    let is_replaced = unsafe { COLLECT.set(function, ours.expose_provenance()) }.is_ok();
    if is_replaced {
        // It is the same if there is one.
        let _ = TABLE.set(table);
    }
    IS_REPLACED.store(is_replaced, Ordering::Relaxed);
    is_replaced
}

/// Returns true if the runtime's function is replaced by ours.
pub(crate) fn is_replaced() -> bool {
    IS_REPLACED.load(Ordering::Relaxed)
}

/// Restores the runtime's function.
///
/// # Safety
///
/// As for [`replace`].
pub(crate) unsafe fn restore() {
    // SAFETY: as the caller's.
    unsafe { COLLECT.restore() };
    IS_REPLACED.store(false, Ordering::Relaxed);
}

/// Takes the place of `caml_collect_current_callstack` (OCaml 4): finds the current stack, of at most
/// `max` frames, and puts it into a buffer of `len` values.
unsafe extern "C" fn collect_single(
    buffer: &mut *mut usize,
    len: &mut usize,
    max: isize,
    allocation: c_int,
) -> usize {
    if *len == 0 {
        *buffer = std::ptr::null_mut();
    }
    let allocation = isize::try_from(allocation).unwrap_or(-1);
    // In OCaml 4 the buffer holds values, which are tagged.
    collect(buffer, len, max, allocation, 1)
}

/// Takes the place of `caml_get_callstack` (OCaml 5), which does the same.
unsafe extern "C" fn collect_of_domain(
    max: isize,
    buffer: &mut *mut usize,
    len: &mut usize,
    allocation: isize,
) -> usize {
    collect(buffer, len, max, allocation, 0)
}

fn collect(
    buffer: &mut *mut usize,
    len: &mut usize,
    max: isize,
    allocation: isize,
    tag: usize,
) -> usize {
    let collected = heapline_recorder::contained(None, || {
        let table = TABLE.get()?;
        if max == DEPTH {
            // A sampler whose recording has ended needs no stacks.
            let domain = callbacks::current_domain()?;
            let ticket = domain.stacks().find(table, allocation);
            let mut slots = Slots::new(table, buffer, len);
            slots.push(ticket | tag)?;
            return Some(slots.filled);
        }
        // Somebody else wants it.
        let max = usize::try_from(max).unwrap_or(0);
        // SAFETY: the runtime has called.
        unsafe { collect_all(table, buffer, len, max, allocation, tag) }
    });
    collected.unwrap_or(0)
}

/// Finds the current stack as the runtime's function does. `None` if there is no memory for it.
///
/// # Safety
///
/// This thread may run OCaml code, and is in C code.
pub(crate) unsafe fn collect_all(
    table: &FrameTable,
    buffer: &mut *mut usize,
    len: &mut usize,
    max: usize,
    allocation: isize,
    tag: usize,
) -> Option<usize> {
    let mut slots = Slots::new(table, buffer, len);
    // SAFETY: as the caller's.
    let mut at = unsafe { table.innermost() };
    while slots.filled < max
        && let Some(at) = &mut at
        && let Some(frame) = table.next(at)
    {
        let allocation = if slots.filled == 0 { allocation } else { -1 };
        // SAFETY: the descriptor is that of an allocation, if its number is not negative.
        let info = unsafe { FrameTable::debug_info(frame.descriptor, allocation) };
        slots.push(info.map_or(frame.descriptor, |info| info + 2) | tag)?;
    }
    Some(slots.filled)
}

/// A buffer of the runtime's, which grows.
struct Slots<'a> {
    table: &'a FrameTable,
    buffer: &'a mut *mut usize,
    len: &'a mut usize,
    filled: usize,
}

impl<'a> Slots<'a> {
    fn new(table: &'a FrameTable, buffer: &'a mut *mut usize, len: &'a mut usize) -> Self {
        Self {
            table,
            buffer,
            len,
            filled: 0,
        }
    }

    /// Adds a slot; `None` if there is no memory for it.
    fn push(&mut self, slot: usize) -> Option<()> {
        if self.filled == *self.len {
            let len = (2 * *self.len).max(32);
            // SAFETY: the buffer is the runtime's, or null.
            let buffer = unsafe { self.table.reallocate(*self.buffer, len) };
            if buffer.is_null() {
                return None;
            }
            (*self.buffer, *self.len) = (buffer, len);
        }
        // SAFETY: the buffer has more slots than are filled.
        unsafe { self.buffer.add(self.filled).write(slot) };
        self.filled += 1;
        Some(())
    }
}

/// The stacks of a domain.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    walker: Walker,
    /// The ticket of the last stack.
    ticket: usize,
    /// True if it was not presented yet.
    is_due: bool,
    /// The descriptor of the innermost frame, in whose place is the debug information of one
    /// allocation.
    innermost: Option<TaggedCode>,
    /// How many outermost frames at most are those of the stack that was presented last.
    shared: usize,
    /// Stacks since the time was taken, and the thread's CPU time when the current one was asked for if
    /// that is taken at the callback.
    unmeasured: u32,
    began: Option<Duration>,
}

impl Stacks {
    /// Those of a domain with a number.
    pub(crate) fn new(domain: usize) -> Self {
        Self {
            ticket: TICKET | domain << 44,
            ..Self::default()
        }
    }

    /// Finds the current stack, and returns the ticket for it.
    fn find(&mut self, table: &FrameTable, allocation: isize) -> usize {
        self.unmeasured += 1;
        let began = (self.unmeasured >= MEASURED).then(thread_cpu_time);
        if self.is_due {
            let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.len() == MAX_WAITING {
                waiting.pop_front();
            }
            waiting.push_back((self.ticket, self.walker.codes().into()));
        }
        if let (Some(code), Some(innermost)) = (self.innermost.take(), self.walker.innermost()) {
            *innermost = code;
        }
        // SAFETY: the runtime has called, in this domain.
        let kept = match unsafe { table.innermost() } {
            Some(at) => match LIMIT.load(Ordering::Relaxed) {
                usize::MAX => self.walker.walk(table, at),
                limit => self.walker.walk_inside(table, at, limit),
            },
            None => {
                self.walker.clear();
                0
            }
        };
        // The innermost frame may be another allocation of the same.
        self.shared = self
            .shared
            .min(kept)
            .min(self.walker.codes().len().saturating_sub(1));
        if let Some(innermost) = self.walker.innermost() {
            #[expect(clippy::cast_possible_truncation, reason = "it is an address")]
            let descriptor = (innermost.code() << 1) as usize;
            // SAFETY: the descriptor is that of an allocation, if its number is not negative.
            if let Some(info) = unsafe { FrameTable::debug_info(descriptor, allocation) } {
                self.innermost = Some(*innermost);
                *innermost = TaggedCode::new((info + 2) as u64 >> 1);
            }
        }
        // SAFETY: the runtime has called, in this domain.
        unsafe { check::compare(self.walker.codes(), &COLLECT, table, allocation) };
        self.ticket += 2;
        self.is_due = true;
        // The callback of an allocation in C code comes later, perhaps after thousands of others: until then,
        // the program works.
        self.began = began.filter(|_| allocation >= 0);
        if let Some(began) = began
            && allocation < 0
        {
            self.measure(began);
        }
        self.ticket
    }

    /// Takes the time since the request for a stack, for those before it too.
    #[cold]
    fn measure(&mut self, began: Duration) {
        let nanos = thread_cpu_time().saturating_sub(began).as_nanos();
        let nanos = u64::try_from(nanos).unwrap_or(0) * u64::from(self.unmeasured);
        self.unmeasured = 0;
        if let Some(session) = callbacks::session() {
            session.recorder.add_sampler_time(nanos);
        }
    }

    /// The stack of a ticket, for the encoder that got those before.
    fn present<R>(
        &mut self,
        ticket: usize,
        encode: impl FnOnce(Frames<'_>) -> Option<R>,
    ) -> Option<R> {
        if ticket == self.ticket {
            self.is_due = false;
            if let Some(began) = self.began.take() {
                self.measure(began);
            }
            let codes = self.walker.codes();
            let shared = std::mem::replace(&mut self.shared, usize::MAX).min(codes.len());
            let result = encode(Frames { codes, shared });
            if result.is_none() {
                self.shared = 0;
            }
            return result;
        }
        self.shared = 0;
        let waiting = {
            let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
            let place = waiting.iter().position(|(other, _)| *other == ticket);
            place.and_then(|place| waiting.remove(place))
        };
        let missing = [TaggedCode::new(heapline_recorder::OMITTED_FRAMES)];
        let codes = waiting.as_ref().map_or(&missing[..], |(_, codes)| codes);
        encode(codes.into())
    }
}

/// Encodes a block with the stack that the sampler passes: one that it has found itself, or a ticket.
#[inline]
pub(crate) fn with_stack<R>(
    domain: &Domain,
    stack: &[TaggedCode],
    encode: impl FnOnce(Frames<'_>) -> Option<R>,
) -> Option<R> {
    if let [ticket] = stack
        && let ticket = ticket.code() << 1
        && ticket & TICKET as u64 != 0
    {
        #[expect(clippy::cast_possible_truncation, reason = "both have 64 bits")]
        return domain.stacks().present(ticket as usize, encode);
    }
    encode(stack.into())
}
