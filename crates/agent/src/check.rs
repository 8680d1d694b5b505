//! Compares the stacks that we find with those of the sampler: `HEAPLINE_STACKS=check`, for tests.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use heapline_recorder::TaggedCode;

use crate::domains;
use crate::frame_table::FrameTable;
use crate::patch::Patch;
use crate::stacks;

static IS_ON: AtomicBool = AtomicBool::new(false);
static CHECKED: AtomicU64 = AtomicU64::new(0);
static DIFFERENT: AtomicU64 = AtomicU64::new(0);

/// The buffer that the runtime's function fills, for one domain at a time.
static BUFFER: Mutex<Buffer> = Mutex::new(Buffer {
    start: std::ptr::null_mut(),
    len: 0,
});

struct Buffer {
    start: *mut usize,
    len: usize,
}

// SAFETY: memory of the runtime's that nobody else has.
unsafe impl Send for Buffer {}

/// From now on, all stacks are compared.
pub(crate) fn start() {
    IS_ON.store(true, Ordering::Relaxed);
}

/// The counts for the user, if stacks were compared.
pub(crate) fn result() -> Option<String> {
    let checked = CHECKED.load(Ordering::Relaxed);
    let different = DIFFERENT.load(Ordering::Relaxed);
    IS_ON
        .load(Ordering::Relaxed)
        .then(|| format!("{checked} stacks compared with the sampler's, {different} differ"))
}

/// Compares a stack that was found with the sampler's.
///
/// # Safety
///
/// `collect` replaces the function of the runtime that the sampler has called.
pub(crate) unsafe fn compare(
    stack: &[TaggedCode],
    collect: &Patch,
    table: &FrameTable,
    allocation: isize,
) {
    if !IS_ON.load(Ordering::Relaxed) {
        return;
    }
    let mut buffer = BUFFER.lock().unwrap_or_else(PoisonError::into_inner);
    let Buffer { start, len } = &mut *buffer;
    // The function cannot be restored while other domains may call it.
    let depth = if domains::has_started_any() {
        // SAFETY: the runtime has called, in this domain.
        unsafe { stacks::collect_all(table, start, len, usize::MAX, allocation, 0) }.unwrap_or(0)
    } else {
        // SAFETY: one domain runs, and has called: nobody else is in the function.
        unsafe { collect.with_original(|function| call(function, table, start, len, allocation)) }
            .unwrap_or(0)
    };
    let slots = if depth == 0 {
        &[]
    } else {
        // SAFETY: the function has filled so many slots.
        unsafe { std::slice::from_raw_parts(*start, depth) }
    };
    let sampled = slots.iter().map(|slot| TaggedCode::new(*slot as u64 >> 1));
    CHECKED.fetch_add(1, Ordering::Relaxed);
    if !sampled.eq(stack.iter().copied()) {
        DIFFERENT.fetch_add(1, Ordering::Relaxed);
    }
}

/// Calls the runtime's own function.
///
/// # Safety
///
/// It is the one of this runtime, and this thread may call it.
unsafe fn call(
    function: usize,
    table: &FrameTable,
    buffer: &mut *mut usize,
    len: &mut usize,
    allocation: isize,
) -> usize {
    type Single = unsafe extern "C" fn(&mut *mut usize, &mut usize, isize, c_int) -> usize;
    type Domains = unsafe extern "C" fn(isize, &mut *mut usize, &mut usize, isize) -> usize;
    let all = isize::MAX / 2;
    // SAFETY: that is what the functions take and return.
    unsafe {
        if table.has_domains() {
            std::mem::transmute::<usize, Domains>(function)(all, buffer, len, allocation)
        } else {
            let allocation = c_int::try_from(allocation).unwrap_or(-1);
            std::mem::transmute::<usize, Single>(function)(buffer, len, all, allocation)
        }
    }
}
