//! Loads heap snapshots, and the recording that has the allocation sites of their blocks.

use std::fmt;
use std::io::BufReader;
use std::sync::{Arc, Mutex, PoisonError};

use heapline_engine::{FindHolders, LoadedRecording, LoadedSnapshot, SnapshotSession};
use heapline_formats::{Options, Reader};
use heapline_heap::Heap;
use heapline_heap::reports::{AllocationNumbers, sample_holders};
use heapline_profile::Holders;
use serde::Serialize;

use crate::trace::{CACHE, Progress, Subjects, Trace};

/// The recording of the run that a snapshot is of.
pub struct SiteSource {
    /// The one that the user gave: it must be of this run.
    pub given: Option<Trace>,
    /// Finds the one that the snapshot names, or says why there is none.
    pub find: FindRecording,
}

/// Finds a recording by the name that a snapshot has of it.
pub type FindRecording = Box<dyn Fn(Option<&str>) -> Result<Trace, String> + Send + Sync>;

impl fmt::Debug for SiteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SiteSource")
            .field("given", &self.given)
            .finish_non_exhaustive()
    }
}

/// The heap snapshots that were taken while a trace was recorded.
pub trait SnapshotFolder: fmt::Debug + Send + Sync {
    /// Those that there are now, the oldest first.
    fn list(&self) -> Vec<ListedSnapshot>;

    /// Opens one of them. The name is one of those. Errors are for people.
    fn open(&self, name: &str) -> Result<Subjects, String>;
}

/// A heap snapshot in a list.
#[derive(Clone, Debug, Serialize)]
pub struct ListedSnapshot {
    /// The name of the file.
    pub name: String,
    /// Microseconds since 1970 at which it was taken, if the file says it.
    pub time_us: Option<u64>,
    /// The size of the file in bytes.
    pub file_bytes: u64,
}

/// Loads the snapshots. Errors are for people.
pub fn load_snapshots(subjects: &Subjects, progress: &Progress) -> Result<SnapshotSession, String> {
    let against = subjects.against.as_deref();
    let against = against.map(|file| load(file, progress)).transpose()?;
    let snapshot = load(&subjects.trace, progress)?;
    let sites = subjects.sites.as_ref();
    let given = sites.and_then(|sites| sites.given.as_ref());
    let recording = match (given, sites) {
        (Some(trace), _) => Ok(recording(trace, &snapshot.heap)?),
        (None, Some(sites)) => (sites.find)(snapshot.heap.graph().property("trace"))
            .and_then(|trace| recording(&trace, &snapshot.heap)),
        (None, None) => Err(format!("{} is a trace", subjects.trace.path)),
    };
    let session = SnapshotSession::new(snapshot, against, recording).with_cache(CACHE);
    match session.recording() {
        Err(reason) if given.is_some() => Err(reason.to_owned()),
        _ => Ok(session),
    }
}

fn load(file: &Trace, progress: &Progress) -> Result<LoadedSnapshot, String> {
    let bytes = BufReader::with_capacity(1 << 20, file.bytes(progress)?);
    Ok(LoadedSnapshot {
        path: file.path.clone(),
        size: file.size,
        heap: Heap::read(bytes).map_err(|error| file.problem(&error))?,
    })
}

fn recording(trace: &Trace, heap: &Heap) -> Result<LoadedRecording, String> {
    Ok(LoadedRecording {
        path: trace.path.clone(),
        // It is not part of the size that progress is about.
        profile: trace.load(&Progress::default())?,
        numbers: numbers(trace, heap)?,
    })
}

/// The sampled blocks of a snapshot in a recording.
fn numbers(trace: &Trace, heap: &Heap) -> Result<AllocationNumbers, String> {
    let options = Options {
        stacks: false,
        ..trace.options()
    };
    Reader::new(trace.bytes(&Progress::default())?, options)
        .and_then(|mut reader| AllocationNumbers::read(heap, &mut reader))
        .map_err(|error| trace.problem(&error))
}

/// Finds what holds the sampled blocks of a trace by the newest of the heap snapshots that were taken while it was
/// recorded. Each is loaded once; `warn` is told why if that fails.
pub fn find_holders(
    snapshots: Arc<dyn SnapshotFolder>,
    warn: impl Fn(&str) + Send + Sync + 'static,
) -> FindHolders {
    let last: Mutex<Option<(String, Option<Arc<Holders>>)>> = Mutex::default();
    FindHolders::new(move || {
        let newest = snapshots.list().pop()?.name;
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((name, holders)) if *name == newest => holders.clone(),
            _ => {
                let holders = load_holders(&*snapshots, &newest)
                    .inspect_err(|problem| warn(problem))
                    .ok()
                    .flatten()
                    .map(Arc::new);
                *last = Some((newest, holders.clone()));
                holders
            }
        }
    })
}

/// The holders of the sampled blocks that a snapshot has; `None` if it has none of this recording.
fn load_holders(snapshots: &dyn SnapshotFolder, name: &str) -> Result<Option<Holders>, String> {
    let subjects = snapshots.open(name)?;
    let heap = load(&subjects.trace, &Progress::default())?.heap;
    let Some(sites) = &subjects.sites else {
        return Ok(None);
    };
    let recording = (sites.find)(heap.graph().property("trace"))?;
    let numbers = numbers(&recording, &heap)?;
    Ok((!numbers.is_empty()).then(|| sample_holders(&heap, &numbers, name)))
}
