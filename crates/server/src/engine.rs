//! Loaded traces that questions can be asked about.

use std::fmt::{self, Write as _};
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use heapline_profile::reports::{self, Name};
use heapline_profile::{
    Estimator, GroupBy, LoadError, LoadOptions, Overview, Profile, Query, Scope,
};
use heapline_trace::{ByteSource, Options, Reader};
use serde::Serialize;

/// A trace that can be opened, also more than once.
pub struct Trace {
    /// The trace as the user named it, for commands to type.
    pub path: String,
    /// The bytes of the file, if it is one.
    pub size: Option<u64>,
    /// Whether damage is an error.
    pub strict: bool,
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

    fn load(&self, keep_recursion: bool, progress: &Progress) -> Result<Profile, String> {
        let options = Options::new().strict(self.strict);
        let mut reader = self.reader(options, progress)?;
        Profile::load(&mut reader, LoadOptions { keep_recursion }).map_err(|error| match error {
            LoadError::Trace(error) => self.problem(&error),
            other => self.problem(&other),
        })
    }

    fn overview(&self) -> Result<Overview, String> {
        let options = Options::new().strict(self.strict).stacks(false);
        let mut reader = self.reader(options, &Progress::default())?;
        Overview::read(&mut reader).map_err(|error| self.problem(&error))
    }

    fn reader(&self, options: Options, progress: &Progress) -> Result<Reader<ByteSource>, String> {
        let source =
            (self.open)().map_err(|error| format!("cannot open {}: {error}", self.path))?;
        let source = Counted {
            source,
            read: Arc::clone(&progress.0),
        };
        Reader::from_source(source, options).map_err(|error| self.problem(&error))
    }

    fn problem(&self, error: &dyn std::error::Error) -> String {
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

/// How many bytes of the traces have been read so far.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    /// The bytes.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct Counted {
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

/// What is looked at: a trace, and perhaps an earlier one that it is compared with.
#[derive(Debug)]
pub struct Subjects {
    /// The trace.
    pub trace: Trace,
    /// What was before.
    pub against: Option<Trace>,
}

impl Subjects {
    /// Bytes to be read in all, if that is known.
    pub(crate) fn size(&self) -> Option<u64> {
        let against = match &self.against {
            Some(trace) => trace.size?,
            None => 0,
        };
        Some(self.trace.size? + against)
    }
}

/// Loaded traces that questions can be asked about, from several threads at once.
#[derive(Debug)]
pub struct Engine {
    subjects: Arc<Subjects>,
    profiles: Profiles,
    /// The same with all frames of recursive calls, from when they are first asked for.
    with_recursion: OnceLock<Result<Profiles, String>>,
    overview: OnceLock<Result<Overview, String>>,
    /// Functions, files and modules.
    names: [OnceLock<Vec<Name>>; 3],
}

/// The profiles of the traces.
#[derive(Debug)]
pub(crate) struct Profiles {
    pub(crate) trace: Profile,
    pub(crate) against: Option<Profile>,
}

impl Profiles {
    fn load(
        subjects: &Subjects,
        keep_recursion: bool,
        progress: &Progress,
    ) -> Result<Self, String> {
        let load = |trace: &Trace| trace.load(keep_recursion, progress);
        Ok(Self {
            trace: load(&subjects.trace)?,
            against: subjects.against.as_ref().map(load).transpose()?,
        })
    }
}

/// `heapline info --json`.
#[derive(Debug, Serialize)]
pub(crate) struct Info<'a> {
    file: &'a str,
    file_size: Option<u64>,
    #[serde(flatten)]
    overview: &'a Overview,
}

impl Engine {
    /// Loads the traces. Errors are for people.
    pub fn load(subjects: Arc<Subjects>, progress: &Progress) -> Result<Self, String> {
        Ok(Self {
            profiles: Profiles::load(&subjects, false, progress)?,
            subjects,
            with_recursion: OnceLock::new(),
            overview: OnceLock::new(),
            names: Default::default(),
        })
    }

    /// What is looked at.
    #[must_use]
    pub fn subjects(&self) -> &Subjects {
        &self.subjects
    }

    /// The profile of the trace.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profiles.trace
    }

    /// The profiles, with or without the frames of recursive calls.
    pub(crate) fn profiles(&self, keep_recursion: bool) -> Result<&Profiles, &str> {
        if !keep_recursion {
            return Ok(&self.profiles);
        }
        self.with_recursion
            .get_or_init(|| Profiles::load(&self.subjects, true, &Progress::default()))
            .as_ref()
            .map_err(|problem| &**problem)
    }

    /// What the trace is, from a pass of its own.
    pub(crate) fn info(&self) -> Result<Info<'_>, &str> {
        let trace = &self.subjects.trace;
        match self.overview.get_or_init(|| trace.overview()) {
            Ok(overview) => Ok(Info {
                file: &trace.path,
                file_size: trace.size,
                overview,
            }),
            Err(problem) => Err(problem),
        }
    }

    /// All names of a kind, those that most is allocated in first.
    pub(crate) fn names(&self, kind: GroupBy) -> &[Name] {
        let place = match kind {
            GroupBy::Module => 2,
            GroupBy::File => 1,
            _ => 0,
        };
        self.names[place].get_or_init(|| {
            let scope = Scope::new(self.profile(), &Query::default(), Estimator::default());
            reports::names(&scope, kind)
        })
    }
}
