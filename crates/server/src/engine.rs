//! Loaded traces that questions can be asked about.

use std::fmt::{self, Write as _};
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use heapline_formats::{Options, Reader};
use heapline_profile::reports::{self, Name, Overview};
use heapline_profile::{Estimator, GroupBy, Profile, Query, Scope, StoreOptions};
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

    fn load(&self, progress: &Progress) -> Result<Profile, String> {
        let source =
            (self.open)().map_err(|error| format!("cannot open {}: {error}", self.path))?;
        let source = Counted {
            source,
            read: Arc::clone(&progress.0),
        };
        let options = Options {
            strict: self.strict,
            ..Options::default()
        };
        let store = StoreOptions { recursion: true };
        Reader::new(source, options)
            .and_then(|mut reader| Profile::load(&mut reader, store))
            .map_err(|error| self.problem(&error))
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
    overview: OnceLock<Overview>,
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
    fn load(subjects: &Subjects, progress: &Progress) -> Result<Self, String> {
        let load = |trace: &Trace| trace.load(progress);
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
            profiles: Profiles::load(&subjects, progress)?,
            subjects,
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

    /// The profiles of the traces.
    pub(crate) fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    /// What the trace is.
    pub(crate) fn info(&self) -> Info<'_> {
        let trace = &self.subjects.trace;
        Info {
            file: &trace.path,
            file_size: trace.size,
            overview: self.overview.get_or_init(|| reports::info(self.profile())),
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
