//! Traces that can be opened, also more than once.

use std::fmt::{self, Write as _};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use heapline_engine::{LoadedTrace, Session, shell_path};
use heapline_formats::{Executable, Follower, Options, Reader};
use heapline_index::TraceFile;
use heapline_profile::{LiveProfile, Profile, Recursion, StoreOptions};

use crate::overwritten::LoadedFiles;
use crate::snapshot::{SiteSource, SnapshotFolder, find_holders};
use crate::source::{EditorLink, SourceFolders};

/// Bytes of answers that are kept.
pub(crate) const CACHE: usize = 128 << 20;

const STORE: StoreOptions = StoreOptions {
    recursion: Recursion::OnDemand,
};

/// The pause between two attempts to open a recording that has not begun.
const ATTEMPTS: Duration = Duration::from_millis(20);

/// A trace that can be opened, also more than once.
pub struct Trace {
    /// The trace as the user named it, for commands to type.
    pub path: String,
    /// The bytes of the file, if it is one.
    pub size: Option<u64>,
    /// True if damage is an error.
    pub strict: bool,
    /// The program, for names that the trace does not have.
    pub executable: Option<Executable>,
    /// The limit of memory and the index, if it is a file; others are loaded into memory.
    pub file: Option<Arc<TraceFile>>,
    /// Opens it at its beginning.
    pub open: Opener,
}

/// Opens a trace at its beginning.
pub type Opener = Box<dyn Fn() -> io::Result<Box<dyn Read + Send>> + Send + Sync>;

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Trace {
    /// The name without folders.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            strict: self.strict,
            executable: self.executable.clone(),
            ..Options::default()
        }
    }

    /// Opens it and counts what is read.
    pub(crate) fn bytes(&self, progress: &Progress) -> Result<Counted, String> {
        let source =
            (self.open)().map_err(|error| format!("cannot open {}: {error}", self.path))?;
        Ok(Counted {
            source,
            read: Arc::clone(&progress.0),
        })
    }

    /// Reads only the beginning. Fails if the file cannot be opened or is not a trace; errors are for people.
    pub fn check(&self) -> Result<(), String> {
        Reader::new(self.bytes(&Progress::default())?, self.options())
            .map(drop)
            .map_err(|error| self.problem(&error))
    }

    pub(crate) fn load(&self, progress: &Progress) -> Result<Profile, String> {
        heapline_index::load(
            self.file.as_deref(),
            heapline_index::default_memory(),
            self.options(),
            STORE,
            || self.bytes(progress),
            |error| self.problem(&error),
        )
    }

    /// Describes why the trace cannot be read.
    pub(crate) fn problem(&self, error: &dyn std::error::Error) -> String {
        let mut text = format!("{}: {error}", self.path);
        let mut cause = error.source();
        while let Some(error) = cause {
            // Writing to a string does not fail.
            let _ = write!(text, ": {error}");
            cause = error.source();
        }
        text
    }
}

/// The number of bytes of the traces that have been read.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    /// The bytes.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The bytes of a file, which are counted.
pub(crate) struct Counted {
    source: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read(buffer)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// A trace or a heap snapshot, and perhaps an earlier one that it is compared with.
#[derive(Debug)]
pub struct Subjects {
    /// The trace, or the snapshot.
    pub trace: Arc<Trace>,
    /// The earlier one.
    pub against: Option<Arc<Trace>>,
    /// The allocation sites of the snapshot; `None` for traces.
    pub(crate) sites: Option<SiteSource>,
    /// The recording that the trace is of, if it is to be followed.
    recording: Option<Recording>,
    /// Heap snapshots of the same run.
    pub(crate) snapshots: Option<Arc<dyn SnapshotFolder>>,
    /// Folders with source files.
    sources: Arc<SourceFolders>,
    /// Opens a line of a source file in an editor.
    pub(crate) editor: Option<EditorLink>,
    /// The files as they were when they were loaded.
    pub(crate) loaded_files: LoadedFiles,
}

/// A file that something may be recording to.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The trace.
    pub path: PathBuf,
    /// True as long as the recording may begin: a trace that does not exist yet is waited for.
    pub is_expected: Arc<AtomicBool>,
}

impl Subjects {
    /// The two traces.
    #[must_use]
    pub fn new(trace: Trace, against: Option<Trace>) -> Self {
        Self {
            trace: Arc::new(trace),
            against: against.map(Arc::new),
            sites: None,
            recording: None,
            snapshots: None,
            sources: Arc::default(),
            editor: None,
            loaded_files: LoadedFiles::default(),
        }
    }

    /// The two heap snapshots.
    #[must_use]
    pub fn of_snapshots(snapshot: Trace, against: Option<Trace>, sites: SiteSource) -> Self {
        Self {
            sites: Some(sites),
            ..Self::new(snapshot, against)
        }
    }

    /// Also serves heap snapshots of the same run.
    #[must_use]
    pub fn with_snapshots(mut self, snapshots: impl SnapshotFolder + 'static) -> Self {
        self.snapshots = Some(Arc::new(snapshots));
        self
    }

    /// Also serves the source files in these folders.
    #[must_use]
    pub fn with_sources(mut self, sources: SourceFolders) -> Self {
        self.sources = Arc::new(sources);
        self
    }

    /// Also offers to open source files in an editor.
    #[must_use]
    pub fn with_editor(mut self, editor: Option<EditorLink>) -> Self {
        self.editor = editor;
        self
    }

    /// Follows the recording of the trace, if it still runs: what is shown grows with it.
    #[must_use]
    pub fn following(mut self, recording: Recording) -> Self {
        self.recording = Some(recording);
        self
    }

    /// Opens the trace if it is being recorded. Waits for a recording that has not begun.
    pub(crate) fn open_recording(&self) -> Option<LiveProfile> {
        let recording = self.recording.as_ref()?;
        loop {
            let is_expected = recording.is_expected.load(Ordering::Relaxed);
            match Follower::open(&recording.path, self.trace.options()) {
                Ok(source) if source.is_recording() => {
                    return Some(LiveProfile::new(source, STORE));
                }
                // A recording that begins has its first bytes before it looks like one.
                _ if is_expected => thread::sleep(ATTEMPTS),
                // It is read, or refused, like any other trace.
                _ => return None,
            }
        }
    }

    /// The size of the file that is being recorded to.
    pub(crate) fn recorded_bytes(&self) -> Option<u64> {
        let path = &self.recording.as_ref()?.path;
        Some(path.metadata().ok()?.len())
    }

    /// The command that opens the file in the viewer, compared with another one.
    pub(crate) fn command_line(&self, against: Option<&str>) -> String {
        let mut line = format!("heapline view {}", shell_path(&self.trace.path));
        let sites = self.sites.as_ref().and_then(|sites| sites.given.as_ref());
        let sites = sites.map(|trace| &*trace.path);
        for (option, path) in [("--against", against), ("--trace", sites)] {
            if let Some(path) = path {
                // Writing to a string does not fail.
                let _ = write!(line, " {option} {}", shell_path(path));
            }
        }
        for folder in self.sources.names() {
            let _ = write!(line, " --source {}", shell_path(folder));
        }
        line
    }

    /// Names the traces without their folders, for a report that is shared with others.
    pub(crate) fn with_plain_names(&self) -> Self {
        let plain = |trace: &Arc<Trace>| {
            let source = Arc::clone(trace);
            Trace {
                path: trace.name().to_owned(),
                size: trace.size,
                strict: trace.strict,
                executable: trace.executable.clone(),
                file: trace.file.clone(),
                open: Box::new(move || (source.open)()),
            }
        };
        Self::new(plain(&self.trace), self.against.as_ref().map(plain))
    }

    /// Bytes to be read in all, if that is known.
    pub(crate) fn size(&self) -> Option<u64> {
        let against = match &self.against {
            Some(trace) => trace.size?,
            None => 0,
        };
        Some(self.trace.size? + against)
    }
}

/// Loads the traces. Errors are for people.
pub fn load(subjects: &Subjects, progress: &Progress) -> Result<Session, String> {
    let profile = subjects.trace.load(progress)?;
    session(subjects, profile, subjects.trace.size, progress)
}

/// Starts a session about a profile of the trace. Loads the earlier trace, if there is one.
pub(crate) fn session(
    subjects: &Subjects,
    profile: Profile,
    size: Option<u64>,
    progress: &Progress,
) -> Result<Session, String> {
    let trace = LoadedTrace {
        path: subjects.trace.path.clone(),
        size,
        profile,
    };
    let load = |trace: &Arc<Trace>| -> Result<LoadedTrace, String> {
        Ok(LoadedTrace {
            path: trace.path.clone(),
            size: trace.size,
            profile: trace.load(progress)?,
        })
    };
    let against = subjects.against.as_ref().map(load).transpose()?;
    let session = Session::new(trace, against)
        .with_cache(CACHE)
        .with_sources(subjects.sources.finder());
    Ok(match &subjects.snapshots {
        // Pages have no place for what is wrong with a snapshot, but in the one about it.
        Some(snapshots) => session.with_holders(find_holders(Arc::clone(snapshots), |_| {})),
        None => session,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trace that does not look like a recording yet, or that is about to be replaced, is not read as if it were complete.
    #[test]
    fn a_recording_that_is_expected_is_waited_for() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fixtures/mix-ocaml53/trace.ctf"
        );
        let is_expected = Arc::new(AtomicBool::new(true));
        let trace = Trace {
            path: path.to_owned(),
            size: None,
            strict: false,
            executable: None,
            file: None,
            open: Box::new(move || heapline_trace::open(path)),
        };
        let subjects = Subjects::new(trace, None).following(Recording {
            path: path.into(),
            is_expected: Arc::clone(&is_expected),
        });
        let (done, is_done) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| done.send(subjects.open_recording().is_some()));
            assert!(is_done.recv_timeout(5 * ATTEMPTS).is_err(), "it was read");
            is_expected.store(false, Ordering::Relaxed);
            assert_eq!(is_done.recv_timeout(Duration::from_secs(60)), Ok(false));
        });
    }
}
