//! Loaded heap snapshots that answer requests.

use std::hash::Hasher;
use std::sync::{Arc, Mutex};

use heapline_heap::Heap;
use heapline_heap::reports::{
    AllocationNumbers, HeapError, Samples, Why, WhyOptions, diff, dominators, findings, join,
    retained, why,
};
use heapline_profile::Profile;
use heapline_profile::reports::DiffOptions;
use siphasher::sip::SipHasher13;

use crate::answer::Answer;
use crate::cache::Cache;
use crate::cancel::Cancel;
use crate::error::{EngineError, ErrorKind};
use crate::filter::Filter;
use crate::reports::{Report, Request};
use crate::request::Params;
use crate::shell::shell_path;

/// A heap snapshot that was loaded.
#[derive(Debug)]
pub struct LoadedSnapshot {
    /// The snapshot as the user named it, for commands.
    pub path: String,
    /// The bytes of the file, if it is one.
    pub size: Option<u64>,
    /// The heap.
    pub heap: Heap,
}

/// The recording of the run that a snapshot is of.
#[derive(Debug)]
pub struct LoadedRecording {
    /// The trace as the user named it, for commands.
    pub path: String,
    /// The profile.
    pub profile: Profile,
    /// The sampled blocks of the snapshot in it.
    pub numbers: AllocationNumbers,
}

impl LoadedRecording {
    /// The sampled blocks of the snapshot that the options select.
    fn samples(&self, heap: &Heap, options: &WhyOptions) -> Result<Samples, EngineError> {
        let filter = Filter {
            queries: vec![options.recorded()],
            ..Filter::default()
        };
        filter.check(&self.profile)?;
        Ok(join(heap, &filter.scope(&self.profile), &self.numbers))
    }
}

/// Loaded snapshots that can be asked about, from several threads at once.
#[derive(Debug)]
pub struct SnapshotSession {
    snapshot: LoadedSnapshot,
    against: Option<LoadedSnapshot>,
    recording: Result<LoadedRecording, String>,
    identity: Arc<str>,
    cache: Mutex<Cache>,
}

impl SnapshotSession {
    /// A session about a snapshot, and perhaps an earlier one to compare it with. Without a recording, the reason is
    /// given instead.
    #[must_use]
    pub fn new(
        snapshot: LoadedSnapshot,
        against: Option<LoadedSnapshot>,
        recording: Result<LoadedRecording, String>,
    ) -> Self {
        let recording = recording.and_then(|recording| {
            if snapshot.heap.graph().site_count() == 0 {
                let path = &snapshot.path;
                return Err(format!(
                    "{path} has no sampled blocks; take a snapshot while a recording runs"
                ));
            }
            if recording.numbers.is_empty() {
                let path = &recording.path;
                return Err(format!("{path} is not the recording of this run"));
            }
            Ok(recording)
        });
        Self {
            identity: identity(&snapshot, against.as_ref()),
            snapshot,
            against,
            recording,
            cache: Mutex::new(Cache::new(0)),
        }
    }

    /// Keeps recent answers in a cache of this size in bytes.
    #[must_use]
    pub fn with_cache(mut self, bytes: usize) -> Self {
        self.cache = Mutex::new(Cache::new(bytes));
        self
    }

    /// Identifies the snapshots: the same files give the same text, others another.
    #[must_use]
    pub fn identity(&self) -> &Arc<str> {
        &self.identity
    }

    /// The snapshot.
    #[must_use]
    pub fn snapshot(&self) -> &LoadedSnapshot {
        &self.snapshot
    }

    /// The earlier snapshot to compare with.
    #[must_use]
    pub fn against(&self) -> Option<&LoadedSnapshot> {
        self.against.as_ref()
    }

    /// The recording of the same run, or the reason why there is none.
    pub fn recording(&self) -> Result<&LoadedRecording, &str> {
        self.recording.as_ref().map_err(String::as_str)
    }

    /// Answers a request, from the cache if it has been answered before.
    pub fn answer(&self, request: &Request, cancel: &Cancel) -> Result<Arc<Answer>, EngineError> {
        cancel.check()?;
        Cache::answer(&self.cache, (0, request.key()), || {
            Ok(Answer::new(
                Arc::clone(&self.identity),
                0,
                self.command_line(request),
                self.report(request)?,
            ))
        })
    }

    /// The command that prints the answer to a request, if there is one.
    #[must_use]
    pub fn command_line(&self, request: &Request) -> Option<String> {
        let against = self.against.as_ref().map(|snapshot| &*snapshot.path);
        let line = request.command_line(&self.snapshot.path, against)?;
        let named = self.snapshot.heap.graph().property("trace");
        Some(match (request, &self.recording) {
            (Request::Why(_), Ok(recording)) if named != Some(&recording.path) => {
                format!("{line} --trace {}", shell_path(&recording.path))
            }
            _ => line,
        })
    }

    fn report(&self, request: &Request) -> Result<Report, EngineError> {
        let heap = &self.snapshot.heap;
        Ok(match request {
            Request::Retained(options) => Report::Retained(retained(heap, options)?),
            Request::Dominators(options) => Report::Dominators(dominators(heap, options)),
            Request::Why(options) => Report::Why(self.why(options)?),
            Request::Findings(options) => Report::Findings(findings(heap, options)),
            Request::Diff(params) => {
                check_diff(params)?;
                let against = self.against.as_ref().ok_or_else(|| {
                    EngineError::new(
                        ErrorKind::NoOtherTrace,
                        "nothing to compare with; start the viewer with --against and another snapshot",
                    )
                })?;
                Report::HeapDiff(diff(&against.heap, heap, params.options.rows))
            }
            _ => {
                let path = &self.snapshot.path;
                return Err(request.unsuitable(&format!("traces, and {path} is a heap snapshot")));
            }
        })
    }

    fn why(&self, options: &WhyOptions) -> Result<Why, EngineError> {
        let heap = &self.snapshot.heap;
        let samples = match &self.recording {
            Ok(recording) => Some(recording.samples(heap, options)?),
            Err(reason) if options.is_by_recording() => {
                return Err(EngineError::new(ErrorKind::NotTold, reason));
            }
            Err(_) => None,
        };
        Ok(why(heap, options, samples.as_ref())?)
    }
}

/// Fails if an option was given that only applies to traces.
fn check_diff(params: &Params<DiffOptions>) -> Result<(), EngineError> {
    let defaults = Params::all(DiffOptions {
        rows: params.options.rows,
        ..DiffOptions::default()
    });
    if *params == defaults {
        return Ok(());
    }
    Err(EngineError::new(
        ErrorKind::BadParameter,
        "heap snapshots are compared as a whole; only --rows and --json apply",
    ))
}

impl From<HeapError> for EngineError {
    fn from(error: HeapError) -> Self {
        Self::new(ErrorKind::BadParameter, error.to_string())
    }
}

/// A hash of the names and sizes of the files, and of what they hold.
fn identity(snapshot: &LoadedSnapshot, against: Option<&LoadedSnapshot>) -> Arc<str> {
    let mut hasher = SipHasher13::new();
    for snapshot in std::iter::once(snapshot).chain(against) {
        let name = snapshot.path.rsplit('/').next().unwrap_or_default();
        hasher.write(name.as_bytes());
        hasher.write_u64(snapshot.size.unwrap_or(u64::MAX));
        let total = snapshot.heap.total();
        hasher.write_u64(total.bytes);
        hasher.write_u64(total.blocks);
        hasher.write_u64(snapshot.heap.dominators().len() as u64);
    }
    format!("{:016x}", hasher.finish()).into()
}
