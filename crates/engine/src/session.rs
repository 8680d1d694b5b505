//! Loaded profiles that answer requests.

use std::fmt;
use std::hash::Hasher;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use heapline_profile::reports::{self, Name, Overview, SourceFile, WantedSource};
use heapline_profile::{GroupBy, Holders, Profile};
use siphasher::sip::SipHasher13;

use crate::answer::{Answer, Info};
use crate::ask::Ask;
use crate::cache::Cache;
use crate::cancel::Cancel;
use crate::error::{EngineError, ErrorKind};
use crate::filter::Filter;
use crate::reports::Request;
use crate::shell::shell_path;
use crate::sources::FindSource;

/// Kinds of names that occur in queries.
const NAMED: [GroupBy; 4] = [
    GroupBy::Function,
    GroupBy::File,
    GroupBy::Module,
    GroupBy::Crate,
];

/// A trace that was loaded.
#[derive(Debug)]
pub struct LoadedTrace {
    /// The trace as the user named it, for commands.
    pub path: String,
    /// The bytes of the file, if it is one.
    pub size: Option<u64>,
    /// The profile.
    pub profile: Profile,
}

/// Finds what holds the sampled blocks of a trace, by heap snapshots of the same run. It is asked again when the trace
/// has grown.
#[derive(Clone)]
pub struct FindHolders(Arc<dyn Fn() -> Option<Arc<Holders>> + Send + Sync>);

impl FindHolders {
    /// Asks a function, which is called when somebody wants to know.
    pub fn new(find: impl Fn() -> Option<Arc<Holders>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }
}

impl fmt::Debug for FindHolders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FindHolders").finish_non_exhaustive()
    }
}

/// The profiles that a request is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profiles<'a> {
    pub(crate) trace: &'a Profile,
    pub(crate) against: Option<&'a Profile>,
}

/// Loaded profiles that can be asked about, from several threads at once.
#[derive(Debug)]
pub struct Session {
    trace: Arc<LoadedTrace>,
    against: Option<Arc<LoadedTrace>>,
    /// True if files are named without their folders.
    has_plain_names: bool,
    identity: Arc<str>,
    epoch: u64,
    cache: Arc<Mutex<Cache>>,
    overview: OnceLock<Overview>,
    find_holders: Option<FindHolders>,
    sources: Option<FindSource>,
    /// By the place in [`NAMED`].
    names: [OnceLock<Arc<[Name]>>; NAMED.len()],
}

impl Session {
    /// A session about a trace, and perhaps an earlier one to compare it with.
    #[must_use]
    pub fn new(trace: LoadedTrace, against: Option<LoadedTrace>) -> Self {
        Self {
            identity: identity(&trace, against.as_ref()),
            trace: Arc::new(trace),
            against: against.map(Arc::new),
            has_plain_names: false,
            epoch: 0,
            cache: Arc::new(Mutex::new(Cache::new(0))),
            overview: OnceLock::new(),
            find_holders: None,
            sources: None,
            names: Default::default(),
        }
    }

    /// A session about the same trace, compared with another one. The cache is not shared.
    #[must_use]
    pub fn compared_with(&self, against: LoadedTrace) -> Self {
        Self {
            identity: identity(&self.trace, Some(&against)),
            trace: Arc::clone(&self.trace),
            against: Some(Arc::new(against)),
            has_plain_names: self.has_plain_names,
            epoch: self.epoch,
            cache: Arc::new(Mutex::new(Cache::new(0))),
            overview: OnceLock::new(),
            find_holders: self.find_holders.clone(),
            sources: self.sources.clone(),
            names: Default::default(),
        }
    }

    /// Also tells what holds memory.
    #[must_use]
    pub fn with_holders(mut self, find: FindHolders) -> Self {
        self.find_holders = Some(find);
        self
    }

    /// Also shows the text of source files.
    #[must_use]
    pub fn with_sources(mut self, sources: FindSource) -> Self {
        self.sources = Some(sources);
        self
    }

    /// Keeps recent answers in a cache of this size in bytes.
    #[must_use]
    pub fn with_cache(mut self, bytes: usize) -> Self {
        self.cache = Arc::new(Mutex::new(Cache::new(bytes)));
        self
    }

    /// Replaces the profile by a later state of the same trace.
    pub fn advance(&mut self, profile: Profile, epoch: u64) {
        *self = self.successor(profile, epoch, self.trace.size);
    }

    /// A session about a later state of the same trace, whose file has this size now. Both answer
    /// requests, and share the cache.
    #[must_use]
    pub fn successor(&self, profile: Profile, epoch: u64, size: Option<u64>) -> Self {
        Self {
            trace: Arc::new(LoadedTrace {
                path: self.trace.path.clone(),
                size,
                profile,
            }),
            against: self.against.clone(),
            has_plain_names: self.has_plain_names,
            identity: Arc::clone(&self.identity),
            epoch,
            cache: Arc::clone(&self.cache),
            overview: OnceLock::new(),
            find_holders: self.find_holders.clone(),
            sources: self.sources.clone(),
            names: Default::default(),
        }
    }

    /// A session about the same state of the same traces that names files without their folders, for answers that are
    /// shared with others.
    #[must_use]
    pub fn with_plain_names(&self) -> Self {
        Self {
            trace: Arc::clone(&self.trace),
            against: self.against.clone(),
            has_plain_names: true,
            identity: Arc::clone(&self.identity),
            epoch: self.epoch,
            // Answers with other names must not be mixed in.
            cache: Arc::new(Mutex::new(Cache::new(0))),
            overview: OnceLock::new(),
            find_holders: self.find_holders.clone(),
            sources: None,
            names: Default::default(),
        }
    }

    /// The trace as it is named in answers and commands.
    #[must_use]
    pub fn path(&self) -> &str {
        self.shown_path(&self.trace)
    }

    /// The earlier trace as it is named in answers and commands.
    #[must_use]
    pub fn against_path(&self) -> Option<&str> {
        self.against.as_ref().map(|trace| self.shown_path(trace))
    }

    fn shown_path<'a>(&self, trace: &'a LoadedTrace) -> &'a str {
        if self.has_plain_names {
            trace.path.rsplit('/').next().unwrap_or_default()
        } else {
            &trace.path
        }
    }

    /// Identifies the traces: the same files give the same text, others another.
    #[must_use]
    pub fn identity(&self) -> &Arc<str> {
        &self.identity
    }

    /// Counts the states of a trace that grows. Answers of different epochs do not go together.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The trace.
    #[must_use]
    pub fn trace(&self) -> &LoadedTrace {
        &self.trace
    }

    /// The earlier trace to compare with.
    #[must_use]
    pub fn against(&self) -> Option<&LoadedTrace> {
        self.against.as_deref()
    }

    /// Answers a request, from the cache if it has been answered before.
    pub fn answer(&self, request: &Request, cancel: &Cancel) -> Result<Arc<Answer>, EngineError> {
        cancel.check()?;
        let compute = || {
            let report = request.report(self, cancel)?;
            self.check_read()?;
            Ok(Answer::new(
                Arc::clone(&self.identity),
                self.epoch,
                self.command_line(request),
                report,
            ))
        };
        match request {
            // Source files may change.
            Request::Source(_) => compute().map(Arc::new),
            _ => Cache::answer(&self.cache, (self.epoch, request.key()), compute),
        }
    }

    /// Computes a report, without the cache.
    pub fn ask<O: Ask>(
        &self,
        filter: &Filter,
        options: &O,
        cancel: &Cancel,
    ) -> Result<O::Report, EngineError> {
        options.validate()?;
        cancel.check()?;
        let report = options.ask(self, filter, cancel)?;
        self.check_read()?;
        Ok(report)
    }

    /// Fails if data could not be read, so that reports are wrong.
    fn check_read(&self) -> Result<(), EngineError> {
        for trace in std::iter::once(&self.trace).chain(&self.against) {
            check_read(&trace.path, &trace.profile)?;
        }
        Ok(())
    }

    /// The command that prints the answer to a request, if there is one.
    #[must_use]
    pub fn command_line(&self, request: &Request) -> Option<String> {
        let mut line = request.command_line(self.path(), self.against_path())?;
        if let (Request::Source(_), Some(sources)) = (request, &self.sources) {
            for folder in sources.folders() {
                line.push_str(" --source ");
                line.push_str(&shell_path(folder));
            }
        }
        Some(line)
    }

    /// The text of a source file, or the reason why there is none.
    pub(crate) fn find_source(&self, wanted: WantedSource<'_>) -> Result<SourceFile, String> {
        match &self.sources {
            Some(sources) => sources.find(wanted),
            None => Err(
                "source files are not looked up; give --source DIR with their folder".to_owned(),
            ),
        }
    }

    /// The holders of the sampled blocks, if a heap snapshot of the same run tells.
    pub(crate) fn holders(&self) -> Option<Arc<Holders>> {
        self.find_holders.as_ref().and_then(|find| (find.0)())
    }

    /// The profiles.
    pub(crate) fn profiles(&self) -> Profiles<'_> {
        Profiles {
            trace: &self.trace.profile,
            against: self.against.as_ref().map(|trace| &trace.profile),
        }
    }

    /// The properties of the trace.
    pub fn info(&self) -> Info {
        let overview = self
            .overview
            .get_or_init(|| reports::info(&self.trace.profile));
        Info {
            file: self.path().to_owned(),
            file_size: self.trace.size,
            overview: overview.clone(),
        }
    }

    /// All functions, files, modules or crates, those with the most allocation first. Other groups
    /// have no names that queries could use.
    #[must_use]
    pub fn names(&self, kind: GroupBy) -> &Arc<[Name]> {
        static NONE: LazyLock<Arc<[Name]>> = LazyLock::new(Arc::default);
        let place = NAMED.iter().position(|known| *known == kind);
        place.map_or(&NONE, |place| {
            self.names[place].get_or_init(|| {
                let scope = Filter::default().scope(&self.trace.profile);
                reports::names(&scope, kind).into()
            })
        })
    }
}

/// Fails if data of a profile could not be read from its index or from temporary files, so that what was computed from it is wrong.
pub fn check_read(path: &str, profile: &Profile) -> Result<(), EngineError> {
    match profile.failure() {
        None => Ok(()),
        Some(failure) => Err(EngineError::new(
            ErrorKind::Failed,
            format!(
                "{path}: its index or a temporary file cannot be read or written: {failure}; delete the index, or use --no-index"
            ),
        )),
    }
}

/// A hash of what tells traces apart without reading them again: the name, the size, the header
/// and the number of sampled blocks.
fn identity(trace: &LoadedTrace, against: Option<&LoadedTrace>) -> Arc<str> {
    let mut hasher = SipHasher13::new();
    for trace in std::iter::once(trace).chain(against) {
        let name = trace.path.rsplit('/').next().unwrap_or_default();
        hasher.write(name.as_bytes());
        hasher.write_u64(trace.size.unwrap_or(u64::MAX));
        let profile = &trace.profile;
        // Debug output has all fields of the header.
        hasher.write(format!("{:?}", profile.header()).as_bytes());
        hasher.write_u64(profile.len() as u64);
        hasher.write_u64(profile.duration().to_bits());
    }
    format!("{:016x}", hasher.finish()).into()
}
