//! Writes sampled blocks to a trace in memtrace's format.

use std::fs::read_dir;
use std::io::{self, Write};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Once};

use heapline_recorder::gaps::Unit;
use heapline_recorder::settings::{MEMTRACE_RATE, Output, RecordingSettings};
use heapline_recorder::{Block, Frame, FrameSink, Recorder, Source, TaggedCode};

use crate::local::{Inside, with_thread};
use crate::lock::Lock;
use crate::session::{self, Consumer, Sample, Session};
use crate::thread::Thread;
use crate::{Options, StartError, stack};

/// The last domain that a trace can have. Threads that have no number of their own share it.
const LAST_DOMAIN: usize = 4095;

/// The name of an unknown file in reports.
const UNKNOWN_FILE: &str = "(unknown file)";

/// By this, `heapline record` knows a program that can be recorded.
#[used]
#[unsafe(link_section = ".heapline")]
static MARK: [u8; 16] = *b"heapline sampler";

/// The recorder that is to be stopped when the program exits.
static AT_EXIT: AtomicPtr<Recorder> = AtomicPtr::new(null_mut());

/// Tells a recorder about sampled blocks.
struct Writer {
    recorder: &'static Recorder,
    /// Held by who uses the last domain.
    shared: Lock<()>,
}

impl Writer {
    fn with_domain<R>(&self, thread: &Thread, f: impl FnOnce(usize) -> R) -> R {
        if thread.number < LAST_DOMAIN {
            return f(thread.number);
        }
        let _shared = self.shared.lock();
        f(LAST_DOMAIN)
    }
}

impl Consumer for Writer {
    fn alloc(&self, thread: &mut Thread, sample: &Sample<'_>) -> Option<u64> {
        let block = Block {
            length: sample.size as u64,
            samples: sample.hits as u64,
            source: Source::External,
        };
        let mut codes = std::mem::take(&mut thread.codes);
        codes.clear();
        let stack = thread.program_part(sample.stack).iter();
        codes.extend(stack.map(|&address| TaggedCode::new(address)));
        let id = self.with_domain(thread, |domain| {
            self.recorder.alloc(domain, block, &codes, name)
        });
        thread.codes = codes;
        id
    }

    fn free(&self, thread: &mut Thread, token: u64) {
        self.with_domain(thread, |domain| self.recorder.collect(domain, token));
    }

    fn abandon(&self) {
        self.recorder.abandon();
    }
}

/// Names what is at an address, for a trace: the outermost function first. What is inlined there of
/// the standard library's is left out.
fn name(address: u64, sink: &mut FrameSink<'_>) {
    let frames = stack::resolve(address);
    let inner = frames.iter().position(|frame| !frame.is_library);
    for frame in frames[inner.unwrap_or(0)..].iter().rev() {
        let file = if frame.file.is_empty() {
            UNKNOWN_FILE
        } else {
            &frame.file
        };
        let column = u16::try_from(frame.column.saturating_sub(1)).unwrap_or(u16::MAX);
        sink.push(Frame {
            file: file.as_bytes(),
            name: frame.function.as_bytes(),
            line: frame.line,
            start_char: column,
            end_char: column,
        });
    }
}

/// A trace that is being written, until this is dropped or the program ends.
#[derive(Debug)]
#[must_use = "the trace ends when this is dropped; `until_exit` lets it go on"]
pub struct Trace {
    recorder: &'static Recorder,
    session: Session,
}

impl Trace {
    /// Lets the trace go on until the program ends.
    pub fn until_exit(self) {
        std::mem::forget(self);
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        session::stop(self.session);
        let _inside = Inside::enter();
        self.recorder.stop();
    }
}

/// Writes a trace of the program to a file, at rate 1e-5: one sample for 781 KiB on average. (The default
/// of `heapline record` is 1e-4.)
///
/// Nothing is lost when the program is killed: what was not written yet is in a file beside the
/// trace, which all commands of `heapline` read together with it.
///
/// ```no_run
/// #[global_allocator]
/// static ALLOC: heapline::Alloc = heapline::Alloc::system();
///
/// fn main() -> Result<(), heapline::StartError> {
///     heapline::trace_to("server.ctf")?.until_exit();
///     // ...
///     Ok(())
/// }
/// ```
pub fn trace_to(path: impl AsRef<Path>) -> Result<Trace, StartError> {
    trace_with(path, Options::rate(MEMTRACE_RATE))
}

/// Writes a trace of the program to a file, with other options than [`trace_to`].
pub fn trace_with(path: impl AsRef<Path>, options: Options) -> Result<Trace, StartError> {
    let output = Output::overwrite(path.as_ref());
    start(options, &RecordingSettings::new(output, options.rate))
}

/// Writes a trace of the program, until it exits, if the environment asks for one: `MEMTRACE` is the
/// file to write, `MEMTRACE_RATE` the samples per word (1e-5 if it is not set). `heapline record` sets
/// what is needed, and its default rate is 1e-4.
///
/// Call it at the beginning of `main`: the variables are removed, so that programs that this one runs do
/// not write to the same file. If there are other threads already, as inside of `#[tokio::main]`, the
/// variables are still there, but empty, which counts as not set.
///
/// If there is something wrong, or no debug information, it says so on the standard error, and the program
/// runs on.
///
/// ```
/// #[global_allocator]
/// static ALLOC: heapline::Alloc = heapline::Alloc::system();
///
/// fn main() {
///     heapline::trace_if_requested();
///     // ...
/// }
/// ```
pub fn trace_if_requested() {
    // SAFETY: it is a static; whoever reads it keeps it in the program.
    unsafe { (&raw const MARK).read_volatile() };
    match RecordingSettings::from_environment() {
        Ok(None) => {}
        Ok(Some(settings)) => trace(&settings),
        Err(message) => say(&message),
    }
}

fn trace(settings: &RecordingSettings) {
    let threads = read_dir("/proc/self/task");
    if threads.is_ok_and(|threads| threads.count() == 1) {
        // SAFETY: there is no other thread.
        unsafe { settings.hide(c"") };
    } else {
        // SAFETY: programs that have threads must not change the environment.
        unsafe { settings.blank() };
    }
    match start(Options::rate(settings.rate), settings) {
        Ok(trace) => {
            trace.until_exit();
            if !has_debug_info() {
                say(
                    "the program has no debug information, so reports will show no lines; \
                     add `debug = 1` to [profile.release] in Cargo.toml",
                );
            }
        }
        Err(StartError::System(error)) => {
            let path = settings.output.path().display();
            say(&format!("not recorded: cannot write {path}: {error}"));
        }
        Err(error) => say(&format!("not recorded: {error}")),
    }
}

/// Returns true if the lines of the program's functions are known, judged by the function that calls
/// the sampler.
fn has_debug_info() -> bool {
    let _inside = Inside::enter();
    let known = with_thread(|thread| {
        let mut stack = std::mem::take(&mut thread.stack);
        thread.unwinding.capture(&mut stack);
        let caller = thread.program_part(&stack).first().copied();
        thread.stack = stack;
        let has_file = |frame: &stack::Frame| !frame.file.is_empty();
        caller.is_none_or(|caller| stack::resolve(caller).iter().any(has_file))
    });
    known.unwrap_or(true)
}

fn start(options: Options, settings: &RecordingSettings) -> Result<Trace, StartError> {
    let mut made = None;
    let seed = options.seed.unwrap_or_else(|| settings.draw_seed());
    let session = session::start(options.rate, Some(seed), || {
        let recorder = settings
            .start(Unit::Byte, String::new(), Some(seed), 0)
            .map_err(StartError::System)?;
        made = Some(recorder);
        stop_at_exit(recorder);
        Ok(Arc::new(Writer {
            recorder,
            shared: Lock::new(()),
        }))
    })?;
    let recorder = made.ok_or(StartError::Running)?;
    Ok(Trace { recorder, session })
}

/// Sees to it that the trace is complete when the program exits.
fn stop_at_exit(recorder: &'static Recorder) {
    extern "C" fn stop() {
        let _inside = Inside::enter();
        // SAFETY: recorders are never freed.
        if let Some(recorder) = unsafe { AT_EXIT.load(Ordering::Acquire).as_ref() } {
            recorder.stop();
        }
    }
    static ONCE: Once = Once::new();
    AT_EXIT.store(std::ptr::from_ref(recorder).cast_mut(), Ordering::Release);
    ONCE.call_once(|| {
        // SAFETY: it is a function that may be called when the program exits.
        unsafe { libc::atexit(stop) };
    });
}

/// Tells the user.
fn say(message: &str) {
    let _ = writeln!(io::stderr(), "heapline: {message}");
}
