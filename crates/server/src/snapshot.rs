//! Loads heap snapshots, and the recording that has the allocation sites of their blocks.

use std::fmt;
use std::io::BufReader;

use heapline_engine::{LoadedRecording, LoadedSnapshot, SnapshotSession};
use heapline_formats::{Options, Reader};
use heapline_heap::Heap;
use heapline_heap::reports::AllocationNumbers;

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
    /// Their names, as there are now.
    fn names(&self) -> Vec<String>;

    /// Opens one of them. The name is one of those. Errors are for people.
    fn open(&self, name: &str) -> Result<Subjects, String>;
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
    // It is not part of the size that progress is about.
    let progress = Progress::default();
    let options = Options {
        stacks: false,
        ..trace.options()
    };
    let numbers = Reader::new(trace.bytes(&progress)?, options)
        .and_then(|mut reader| AllocationNumbers::read(heap, &mut reader))
        .map_err(|error| trace.problem(&error))?;
    Ok(LoadedRecording {
        path: trace.path.clone(),
        profile: trace.load(&progress)?,
        numbers,
    })
}
