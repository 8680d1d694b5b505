//! The recorder for C: at most one recording at a time in a process.
//!
//! ```c
//! struct heapline_frames;
//! typedef void (*heapline_resolver)(uint64_t code, struct heapline_frames *frames);
//!
//! int heapline_start(const char *settings, size_t length, const char *params, char *message, size_t size);
//! int64_t heapline_alloc(size_t domain, uint64_t words, uint64_t samples, int source,
//!                        const intptr_t *stack, size_t depth, heapline_resolver resolver);
//! uint64_t heapline_hits(uint64_t words);
//! void heapline_skips(uint64_t skips[2]);
//! void heapline_promote(size_t domain, int64_t id);
//! void heapline_collect(size_t domain, int64_t id);
//! void heapline_stop(void);
//! void heapline_frame(struct heapline_frames *frames, const char *file, const char *name,
//!                     uint32_t line, uint32_t start_char, uint32_t end_char);
//! ```
//!
//! None of them calls the OCaml runtime, raises, or takes long enough to release its lock for.

use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::ffi::{CStr, c_char, c_int};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::gaps::{Gaps, Unit};
use crate::settings::RecordingSettings;
use crate::{Block, Frame, FrameSink, Recorder, Source, TaggedCode, contained, seed};

/// The recording that goes on, or the last one.
static CURRENT: AtomicPtr<Recorder> = AtomicPtr::new(std::ptr::null_mut());

/// Adds the frames of a location.
type Resolver = unsafe extern "C" fn(code: u64, frames: &mut FrameSink<'_>);

pub(crate) fn current() -> Option<&'static Recorder> {
    // SAFETY: recorders are never freed.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// Starts a trace with [settings](RecordingSettings::to_bytes); 0 if that was possible. Otherwise `message`, of `size`
/// bytes, says why not. `params` may be null.
///
/// # Safety
///
/// `settings` has `length` bytes, `params` ends in NUL, and `message` has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapline_start(
    settings: *const u8,
    length: usize,
    params: *const c_char,
    message: *mut c_char,
    size: usize,
) -> c_int {
    // SAFETY: the caller promises `length` bytes.
    let settings = unsafe { std::slice::from_raw_parts(settings, length) };
    // SAFETY: the caller promises a string or null.
    let params = unsafe { text(params) };
    let Err(error) = start(settings, params) else {
        return 0;
    };
    if let Some(room) = size.checked_sub(1) {
        let len = error.len().min(room);
        // SAFETY: the caller promises `size` bytes, which is more than `len`.
        unsafe {
            std::ptr::copy_nonoverlapping(error.as_ptr().cast(), message, len);
            *message.add(len) = 0;
        }
    }
    1
}

/// The text of a string that ends in NUL, or is null.
///
/// # Safety
///
/// It is one of these.
pub(crate) unsafe fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: the caller promises that it ends in NUL.
    unsafe { CStr::from_ptr(string) }
        .to_string_lossy()
        .into_owned()
}

fn start(settings: &[u8], params: String) -> Result<(), String> {
    if current().is_some_and(Recorder::is_recording) {
        return Err("already recording".to_owned());
    }
    let settings = RecordingSettings::from_bytes(settings)?;
    record(&settings, params).map_err(|error| {
        let path = settings.output.path().display();
        format!("cannot write {path}: {error}")
    })?;
    Ok(())
}

/// Starts a trace, to which events are written from now on.
pub(crate) fn record(
    settings: &RecordingSettings,
    params: String,
) -> io::Result<&'static Recorder> {
    let first_id = current().map_or(0, Recorder::next_id);
    let failed = Err(io::Error::other("a bug in heapline"));
    let seed = Some(settings.draw_seed());
    let recorder = contained(failed, || {
        settings.start(Unit::Word, params, seed, first_id)
    })?;
    begin(recorder);
    Ok(recorder)
}

/// From now on, events are for this one.
fn begin(recorder: &'static Recorder) {
    CURRENT.store(std::ptr::from_ref(recorder).cast_mut(), Ordering::Release);
    abandon_in_children();
}

/// A forked process inherits the sampler; its parent's trace is not for it.
fn abandon_in_children() {
    extern "C" fn child() {
        if let Some(recorder) = current() {
            recorder.abandon();
        }
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler only writes to flags.
        unsafe {
            libc::pthread_atfork(None, None, Some(child));
        }
    });
}

/// Takes note of a new block; returns its id, or -1 if it is not recorded. `source` is 0 for the
/// minor heap, 1 for the major, 2 for memory outside. `stack` is a call stack as the sampler gives
/// it: tagged integers, the innermost function first.
///
/// # Safety
///
/// `stack` has `depth` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapline_alloc(
    domain: usize,
    words: u64,
    samples: u64,
    source: c_int,
    stack: *const TaggedCode,
    depth: usize,
    resolver: Resolver,
) -> i64 {
    let Some(recorder) = current() else {
        return -1;
    };
    let block = Block {
        length: words,
        samples,
        source: match source {
            0 => Source::Minor,
            1 => Source::Major,
            _ => Source::External,
        },
    };
    let stack = if depth == 0 {
        &[]
    } else {
        // SAFETY: the caller promises `depth` elements.
        unsafe { std::slice::from_raw_parts(stack, depth) }
    };
    let id = contained(None, || {
        recorder.alloc(domain, block, stack, |code, frames| {
            // SAFETY: a resolver takes any code of a stack.
            unsafe { resolver(code, frames) }
        })
    });
    id.and_then(|id| i64::try_from(id).ok()).unwrap_or(-1)
}

/// Samples memory outside of the heap: how many of so many words are hit. The distance to the next
/// hit has no memory, so every thread may have one of its own.
#[unsafe(no_mangle)]
pub extern "C" fn heapline_hits(words: u64) -> u64 {
    let Some(recorder) = current().filter(|recorder| recorder.is_recording()) else {
        return 0;
    };
    let hits = |hits: &RefCell<Option<Hits>>| {
        let mut hits = hits.try_borrow_mut().ok()?;
        let hits = match &mut *hits {
            Some(hits) if std::ptr::eq(hits.recorder, recorder) => hits,
            other => other.insert(Hits::new(recorder)),
        };
        Some(hits.of(words))
    };
    contained(None, || HITS.try_with(hits).ok().flatten()).unwrap_or(0)
}

thread_local! {
    static HITS: RefCell<Option<Hits>> = const { RefCell::new(None) };
}

/// The distance to the next hit of a thread.
struct Hits {
    recorder: &'static Recorder,
    gaps: Gaps,
    /// Words to be passed over before.
    gap: usize,
}

impl Hits {
    fn new(recorder: &'static Recorder) -> Self {
        let mut gaps = Gaps::new(
            recorder.sample_rate(),
            RandomState::new().build_hasher().finish(),
        );
        Self {
            recorder,
            gap: gaps.next(),
            gaps,
        }
    }

    fn of(&mut self, words: u64) -> u64 {
        let words = usize::try_from(words).unwrap_or(usize::MAX);
        let (hits, gap) = self.gaps.hits(self.gap, words);
        self.gap = gap;
        hits as u64
    }
}

/// Returns how many random numbers a first sampler, which is stopped then, and a second one pass over, so that the
/// recording has the samples of its [seed].
///
/// # Safety
///
/// It points to two numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapline_skips(skips: *mut [u64; 2]) {
    let seed = current().and_then(Recorder::seed).unwrap_or_default();
    // SAFETY: the caller promises that there are two.
    unsafe { *skips = seed::skips(seed) };
}

/// Takes note that a block was promoted.
#[unsafe(no_mangle)]
pub extern "C" fn heapline_promote(domain: usize, id: i64) {
    if let (Some(recorder), Ok(id)) = (current(), u64::try_from(id)) {
        contained((), || recorder.promote(domain, id));
    }
}

/// Takes note that a block is dead.
#[unsafe(no_mangle)]
pub extern "C" fn heapline_collect(domain: usize, id: i64) {
    if let (Some(recorder), Ok(id)) = (current(), u64::try_from(id)) {
        contained((), || recorder.collect(domain, id));
    }
}

/// Ends the recording, if there is one.
#[unsafe(no_mangle)]
pub extern "C" fn heapline_stop() {
    if let Some(recorder) = current() {
        recorder.stop();
    }
}

/// Called by resolvers: adds a frame, the outermost first.
///
/// # Safety
///
/// The strings end in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapline_frame(
    frames: &mut FrameSink<'_>,
    file: *const c_char,
    name: *const c_char,
    line: u32,
    start_char: u32,
    end_char: u32,
) {
    // SAFETY: the caller promises strings.
    let (file, name) = unsafe { (CStr::from_ptr(file), CStr::from_ptr(name)) };
    frames.push(Frame {
        file: file.to_bytes(),
        name: name.to_bytes(),
        line,
        start_char: narrow(start_char),
        end_char: narrow(end_char),
    });
}

/// Traces have no room for more.
fn narrow(column: u32) -> u16 {
    u16::try_from(column).unwrap_or(u16::MAX)
}
