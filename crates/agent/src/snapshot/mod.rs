//! Heap snapshots: all blocks that can be reached, and the roots that hold them.
//!
//! At a safe point the process is copied, as `fork` does, but without the program noticing. The program goes
//! on; the copy walks the heap as it was at that moment, writes the file, and exits. If something is wrong
//! with the heap, or with our view of it, only the copy crashes.
//!
//! - `copy`: makes the copy.
//! - `roots`, `frames`: the roots, and the functions whose stacks have them.
//! - `walk`, `marks`, `block`, `ephemerons`: all blocks that can be reached.
//! - `contents`, `definitions`, `images`: what there is to say about them.
//! - `fold`: makes snapshots of large heaps smaller.
//! - `write`: the file.
//! - `signal`: asks for a snapshot.

mod block;
mod contents;
mod copy;
mod definitions;
mod ephemerons;
mod fold;
mod frames;
mod functions;
mod images;
mod marks;
mod raw;
mod roots;
pub(crate) mod signal;
mod walk;
mod write;

use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Instant, SystemTime};

use heapline_heapfile::Writer;
use heapline_recorder::contained;
use heapline_recorder::control::{Outcome, State};
use heapline_recorder::settings::{Fold, SnapshotSettings};

use crate::attach::{self, Control};
use crate::callbacks;
use crate::runtime::{Kind, Runtime, Unfit};
use crate::safe_point;
use block::Layout;
use ephemerons::Ephemerons;
use frames::Descriptors;
use functions::{Functions, OfKind};
use images::{Mappings, Symbols};
use raw::Raw;
use roots::Roots;
use walk::{Areas, Walk};
use write::Snapshot;

/// The state of the last snapshot: what `heapline snapshot` reads in the memory of the program.
#[unsafe(export_name = "heapline_snapshot_control")]
pub static CONTROL: Control = Control::new();

/// The snapshot that is wanted.
static WANTED: Mutex<Option<SnapshotSettings>> = Mutex::new(None);
/// True if one is.
static IS_WANTED: AtomicBool = AtomicBool::new(false);

/// The copy that writes the last snapshot; 0 for none.
static COPY: AtomicI32 = AtomicI32::new(0);

/// Asks for a snapshot with [settings](SnapshotSettings).
///
/// # Safety
///
/// `settings` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapline_snapshot(settings: *const u8, len: usize) -> usize {
    // SAFETY: as the caller's.
    let settings = unsafe { std::slice::from_raw_parts(settings, len) };
    contained(Outcome::Failed, || take(settings)) as usize
}

/// Ends what is left of the last snapshot, which is written, or which nobody waits for any more. To be called
/// again until the copy of the process is gone.
#[unsafe(no_mangle)]
pub extern "C" fn heapline_snapshot_end(_: *const u8, _: usize) -> usize {
    contained(Outcome::Failed, || {
        if let Ok(mut wanted) = WANTED.try_lock() {
            *wanted = None;
            IS_WANTED.store(false, Ordering::Release);
        }
        let copy = COPY.load(Ordering::Acquire);
        if copy != 0 {
            copy::end(copy);
        }
        if reap() { Outcome::Done } else { Outcome::Busy }
    }) as usize
}

/// Asks for a snapshot with [settings](SnapshotSettings).
pub(crate) fn take(settings: &[u8]) -> Outcome {
    let Ok(mut wanted) = WANTED.try_lock() else {
        return Outcome::Busy;
    };
    // A copy that has written its snapshot needs a moment to exit.
    if wanted.is_some() || !reap() {
        return Outcome::Busy;
    }
    let runtime = match attach::find_runtime() {
        Ok(runtime) => runtime,
        Err(unfit) => {
            CONTROL.fail(&unfit.to_string());
            return Outcome::Failed;
        }
    };
    if let Err(name) = functions::find(runtime) {
        CONTROL.fail(&Unfit::Missing(name).to_string());
        return Outcome::Failed;
    }
    if let Err(refusal) = attach::check_layout(runtime) {
        CONTROL.fail(&refusal);
        return Outcome::Failed;
    }
    let Some(settings) = SnapshotSettings::from_bytes(settings) else {
        CONTROL.fail("the settings of the snapshot are not understood");
        return Outcome::Failed;
    };
    *wanted = Some(settings);
    drop(wanted);
    CONTROL.set(State::Armed);
    IS_WANTED.store(true, Ordering::Release);
    safe_point::ask_for(runtime);
    Outcome::Done
}

/// Takes a snapshot of a program that exits. The error says why that cannot be done.
///
/// # Safety
///
/// At a safe point.
pub(crate) unsafe fn at_exit(file: &Path) -> Result<(), String> {
    let runtime = attach::find_runtime().map_err(|unfit| unfit.to_string())?;
    functions::find(runtime).map_err(|name| Unfit::Missing(name).to_string())?;
    attach::check_layout(runtime)?;
    let mut settings = SnapshotSettings {
        file: file.to_owned(),
        in_place: false,
        fold: Fold::Auto,
    };
    let start = Instant::now();
    let mut taken = Ok(());
    let take = |domains: &[usize]| {
        // SAFETY: the caller is at a safe point, and no other domain runs.
        taken = unsafe { begin(runtime, &settings, domains, start) };
        // Emulators such as qemu's do not know how to make a copy that signals nothing when it ends.
        if let Err(error) = &taken
            && error.kind() == io::ErrorKind::InvalidInput
        {
            settings.in_place = true;
            // SAFETY: the caller is at a safe point, and no other domain runs. The first try has only created the file.
            taken = unsafe { begin(runtime, &settings, domains, start) };
        }
    };
    // SAFETY: as the caller's.
    let was_alone = unsafe { safe_point::alone(runtime, take) };
    if !was_alone {
        return Err("the other domains could not be stopped".to_owned());
    }
    taken.map_err(|error| error.to_string())
}

/// Gives up a snapshot that is wanted, if one is.
pub(crate) fn refuse(message: &str) {
    if is_wanted()
        && let Ok(mut wanted) = WANTED.try_lock()
    {
        IS_WANTED.store(false, Ordering::Release);
        *wanted = None;
        CONTROL.fail(message);
    }
}

/// Ends what is left of the copy of the process, if it has exited. Returns true if there is none any more.
pub(crate) fn reap() -> bool {
    let copy = COPY.load(Ordering::Acquire);
    if copy == 0 {
        return true;
    }
    let has_ended = copy::has_ended(copy);
    if has_ended {
        let _ = COPY.compare_exchange(copy, 0, Ordering::AcqRel, Ordering::Acquire);
    }
    has_ended
}

/// Returns true if a snapshot is wanted.
pub(crate) fn is_wanted() -> bool {
    IS_WANTED.load(Ordering::Acquire)
}

/// Takes the snapshot that is wanted, if one is.
///
/// # Safety
///
/// At a safe point.
pub(crate) unsafe fn at_safe_point(runtime: &Runtime) {
    if !is_wanted() {
        return;
    }
    let start = Instant::now();
    let mut error = None;
    let work = |domains: &[usize]| {
        IS_WANTED.store(false, Ordering::Release);
        let wanted = WANTED.try_lock().ok().and_then(|mut wanted| wanted.take());
        if let Some(settings) = wanted {
            // SAFETY: as the caller's; no other domain runs.
            error = unsafe { begin(runtime, &settings, domains, start) }.err();
        }
    };
    // If other domains cannot be stopped now, it is wanted at the next safe point.
    // SAFETY: as the caller's.
    unsafe { safe_point::alone(runtime, work) };
    if let Some(error) = error {
        CONTROL.fail(&error.to_string());
    }
}

/// The process of a snapshot, and the time at which its heap was copied. Another process may write it, later.
#[derive(Clone, Copy)]
struct Origin {
    pid: u32,
    time: SystemTime,
}

/// Starts to write a snapshot.
///
/// # Safety
///
/// At a safe point; no other domain runs.
unsafe fn begin(
    runtime: &Runtime,
    settings: &SnapshotSettings,
    domains: &[usize],
    start: Instant,
) -> io::Result<()> {
    let path = settings.file.display();
    let failed = |error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("the program cannot write {path}: {error}"),
        )
    };
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&settings.file)
        .map_err(failed)?;
    // The lock is gone when the last process that has the file exits, however it does.
    // SAFETY: the file is open.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        return Err(failed(io::Error::last_os_error()));
    }
    let origin = Origin {
        pid: std::process::id(),
        time: SystemTime::now(),
    };
    let elapsed = || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    if settings.in_place {
        CONTROL.set(State::Recording);
        // SAFETY: as the caller's.
        return unsafe { write(runtime, file, domains, settings, origin, elapsed) };
    }
    let file_number = file.as_raw_fd();
    let shared = copy::Shared::new()?;
    let write = || {
        let stopped = || shared.number().load(Ordering::Acquire);
        // SAFETY: as the caller's, in the copy.
        let result = unsafe { write(runtime, file, domains, settings, origin, stopped) };
        u8::from(result.is_err())
    };
    // SAFETY: the copy only reads, and writes to the file.
    let copy = unsafe { copy::run_in_copy(file_number, write) };
    let copy = copy.map_err(|error| {
        let message = format!("the program cannot be copied: {error}; try --in-place");
        io::Error::new(error.kind(), message)
    })?;
    COPY.store(copy, Ordering::Release);
    CONTROL.set(State::Recording);
    shared.number().store(elapsed(), Ordering::Release);
    Ok(())
}

/// Writes a snapshot.
///
/// # Safety
///
/// At a safe point; no other domain runs. What can be reached can be read, or this process is a copy.
/// `stopped` returns the time for which the program was stopped, in nanoseconds.
unsafe fn write(
    runtime: &Runtime,
    file: File,
    domains: &[usize],
    settings: &SnapshotSettings,
    origin: Origin,
    stopped: impl FnOnce() -> u64,
) -> io::Result<()> {
    // SAFETY: as the caller's.
    let raw = unsafe { Raw::new() };
    let unknown = || io::Error::other("this OCaml runtime is one that heapline does not know");
    let functions = functions::find(runtime).map_err(|_| unknown())?;
    let mappings = Mappings::read()?;
    // SAFETY: as the caller's.
    let roots = unsafe { Roots::find(raw, functions, &mappings, domains) }.ok_or_else(unknown)?;
    let none = functions.no_key.map_or(0, |none| raw.word(none));
    let mut ephemerons = Ephemerons::new(none);
    for list in roots::ephemerons(raw, functions, domains).ok_or_else(unknown)? {
        if !ephemerons.add_list(raw, list) {
            return Err(unknown());
        }
    }
    let start = Instant::now();
    let mut walk = walk(raw, functions);
    let is_folded = fold::is_wanted(settings.fold);
    if is_folded {
        walk.count_references();
    }
    for module in &roots.modules {
        walk.reach(*module);
    }
    for root in &roots.others {
        walk.reach(root.value);
    }
    walk.run();
    ephemerons.follow(&mut walk);
    if is_folded {
        fold::fold(&mut walk, &ephemerons, &roots.sampled);
    }

    let walked = start.elapsed();

    let symbols = Symbols::read(raw, &mappings);
    let meta = meta(runtime.kind, origin, settings.in_place);
    let meta: Vec<(&str, &str)> = meta
        .iter()
        .map(|(key, value)| (*key, value.as_str()))
        .collect();
    let snapshot = Snapshot {
        runtime,
        walk,
        is_folded,
        roots: &roots,
        ephemerons: &ephemerons,
        descriptors: Descriptors::find(raw, functions),
        mappings: &mappings,
        symbols: &symbols,
    };
    let file = BufWriter::with_capacity(1 << 16, file);
    let times = || {
        vec![
            ("stopped_ns", stopped().to_string()),
            ("walk_ns", walked.as_nanos().to_string()),
            (
                "write_ns",
                start
                    .elapsed()
                    .saturating_sub(walked)
                    .as_nanos()
                    .to_string(),
            ),
        ]
    };
    snapshot.write(Writer::new(file, &meta)?, times)
}

/// A walk through the heap of a runtime.
fn walk(raw: Raw, functions: &Functions) -> Walk {
    let (areas, scan_stack) = match functions.of_kind {
        OfKind::Single { lookup, .. } => (Areas::PageTable(lookup), None),
        OfKind::Domains { scan_stack, .. } => (Areas::Everywhere, Some(scan_stack)),
    };
    let layout = Layout {
        has_environment_start: !functions.is_oldest,
        has_continuations: scan_stack.is_some(),
    };
    Walk::new(raw, layout, areas, scan_stack)
}

/// The properties of the snapshot.
fn meta(kind: Kind, origin: Origin, in_place: bool) -> Vec<(&'static str, String)> {
    let time = origin.time.duration_since(SystemTime::UNIX_EPOCH);
    let program = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    let directory = std::env::current_dir().unwrap_or_default();
    let runtime = match kind {
        Kind::Single => "OCaml 4",
        Kind::Domains { .. } => "OCaml 5",
    };
    let mut meta = vec![
        ("runtime", runtime.to_owned()),
        ("word_bytes", "8".to_owned()),
        ("program", program.display().to_string()),
        ("directory", directory.display().to_string()),
        ("pid", origin.pid.to_string()),
        (
            "time_ns",
            time.map_or(0, |time| time.as_nanos()).to_string(),
        ),
        ("in_place", in_place.to_string()),
    ];
    if let Some(session) = callbacks::session() {
        let trace = session.recorder.trace();
        meta.push(("trace", trace.display().to_string()));
    }
    meta
}
