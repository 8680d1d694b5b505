//! The state shared by all connections: the files, also while they are being loaded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use heapline_engine::{Answer, Cancel, EngineError, ErrorKind, LoadedTrace, Request, Session};
use hyper::StatusCode;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::error::ApiError;
use crate::files::{FileRequest, SavedFile};
use crate::loader::{EarlierSessions, Loaded, Loader, Loading, Newest};
use crate::snapshot::ListedSnapshot;
use crate::trace::{CACHE, Progress, Subjects, Trace};

/// Streams of events that are open at the same time, one for each page. They stay open, and must leave connections for
/// everything else.
const EVENT_STREAMS: usize = 64;

/// The state.
#[derive(Debug)]
pub(crate) struct State {
    subjects: Arc<Subjects>,
    progress: Progress,
    pub(crate) loading: watch::Receiver<Loading>,
    earlier: Arc<EarlierSessions>,
    /// Reports use all cores; more of them at once than there are cores would only wait for each
    /// other.
    turns: Arc<Semaphore>,
    /// Heap snapshots beside the trace that somebody has asked about.
    snapshots: Mutex<HashMap<String, Arc<State>>>,
    /// The session with a trace that was dropped onto the page.
    compared: Mutex<Option<Arc<Session>>>,
    /// One file is received at a time.
    pub(crate) receiving: Semaphore,
    streams: Arc<Semaphore>,
}

/// `GET /api/v1/status`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Status<'a> {
    state: &'static str,
    version: &'static str,
    /// What the file is: `trace` or `snapshot`.
    kind: &'static str,
    /// The name of the file.
    trace: &'a str,
    /// The name of the file that it is compared with.
    against: Option<String>,
    /// Heap snapshots of the same run, which are served below `snapshots/NAME/`.
    snapshots: Vec<ListedSnapshot>,
    /// The command that opens the traces in the viewer.
    command: String,
    /// Identifies the traces, with the epoch of the profile, once it is loaded.
    identity: Option<String>,
    /// True if the allocation sites of blocks are known: of a snapshot, if there is a recording of its run.
    sites: bool,
    epoch: u64,
    /// True while the trace is being recorded: it grows, and so does the epoch.
    recording: bool,
    /// True if another file is in the place of one that was loaded.
    overwritten: bool,
    read: u64,
    size: Option<u64>,
    error: Option<String>,
    /// The link that opens a line of a source file in an editor.
    editor: Option<&'a str>,
}

impl<'a> Status<'a> {
    fn loading(subjects: &'a Subjects, read: u64) -> Self {
        let against = subjects.against.as_deref();
        Self {
            state: "loading",
            version: env!("CARGO_PKG_VERSION"),
            kind: match subjects.sites {
                Some(_) => "snapshot",
                None => "trace",
            },
            trace: subjects.trace.name(),
            against: against.map(|trace| trace.name().to_owned()),
            // A report file has no others.
            snapshots: Vec::new(),
            command: subjects.command_line(against.map(|trace| &*trace.path)),
            identity: None,
            sites: false,
            epoch: 0,
            recording: false,
            overwritten: false,
            read,
            size: subjects.size(),
            error: None,
            editor: subjects.editor.as_ref().map(AsRef::as_ref),
        }
    }

    /// The status of files that are loaded.
    pub(crate) fn ready(subjects: &'a Subjects, session: &Loaded) -> Self {
        let loading = Self::loading(subjects, subjects.size().unwrap_or(0));
        Self {
            state: "ready",
            identity: Some(session.identity().to_string()),
            sites: session.has_sites(),
            epoch: session.epoch(),
            overwritten: subjects.loaded_files.are_overwritten(subjects),
            ..loading
        }
    }
}

impl State {
    /// Starts loading in a thread of its own.
    pub(crate) fn start(subjects: Subjects) -> std::io::Result<Arc<Self>> {
        let subjects = Arc::new(subjects);
        let progress = Progress::default();
        let earlier = Arc::new(EarlierSessions::default());
        let (loader, loading) = Loader::new(&subjects, &progress, &earlier);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let state = Arc::new(Self {
            subjects,
            progress,
            loading,
            earlier,
            turns: Arc::new(Semaphore::new(cores)),
            snapshots: Mutex::default(),
            compared: Mutex::default(),
            receiving: Semaphore::new(1),
            streams: Arc::new(Semaphore::new(EVENT_STREAMS)),
        });
        std::thread::Builder::new()
            .name("loader".to_owned())
            .spawn(move || loader.run())?;
        Ok(state)
    }

    pub(crate) fn status(&self) -> Status<'_> {
        let loading = Status::loading(&self.subjects, self.progress.read());
        match &*self.loading.borrow() {
            Loading::Done(Newest {
                session,
                is_recording,
                problem,
            }) => Status {
                recording: *is_recording,
                error: problem.clone(),
                snapshots: self.listed_snapshots(),
                ..match self.compared() {
                    Some(session) => self.compared_status(session),
                    None => Status::ready(&self.subjects, session),
                }
            },
            Loading::Running => loading,
            Loading::Failed(problem) => Status {
                state: "failed",
                error: Some(problem.clone()),
                ..loading
            },
        }
    }

    /// The status with a trace that was dropped onto the page.
    fn compared_status(&self, session: Arc<Session>) -> Status<'_> {
        let path = session.against().map(|trace| trace.path.clone());
        Status {
            command: self.subjects.command_line(path.as_deref()),
            against: path,
            ..Status::ready(&self.subjects, &Loaded::Traces(session))
        }
    }

    fn compared(&self) -> Option<Arc<Session>> {
        self.compared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Compares the trace with another one from now on.
    pub(crate) async fn compare_with(&self, other: Trace) -> Result<(), ApiError> {
        let newest = self.newest().await?;
        let session = match newest.session {
            Loaded::Traces(session) if !newest.is_recording => session,
            Loaded::Traces(_) => {
                return Err(ApiError::new(
                    StatusCode::CONFLICT,
                    "recording",
                    "the trace is still being recorded; compare it when the recording has ended",
                ));
            }
            Loaded::Snapshots(_) => {
                return Err(ApiError::new(
                    StatusCode::BAD_REQUEST,
                    "not_told",
                    "heap snapshots are compared with `heapline view NEW --against OLD`",
                ));
            }
        };
        let load = tokio::task::spawn_blocking(move || {
            let profile = other.load(&Progress::default())?;
            let other = LoadedTrace {
                path: other.path,
                size: other.size,
                profile,
            };
            Ok(session.compared_with(other).with_cache(CACHE))
        });
        let loaded: Result<Session, String> = load.await.map_err(|_| internal())?;
        let session = loaded.map_err(|problem| {
            ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_trace", problem)
        })?;
        *self.compared.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(session));
        Ok(())
    }

    fn listed_snapshots(&self) -> Vec<ListedSnapshot> {
        let folder = self.subjects.snapshots.as_ref();
        folder.map_or_else(Vec::new, |folder| folder.list())
    }

    /// A place for one more stream of events.
    pub(crate) fn event_stream(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        Arc::clone(&self.streams).try_acquire_owned().map_err(|_| {
            ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too_many_streams",
                "too many pages show this trace; close some of them",
            )
        })
    }

    /// The state of a heap snapshot beside the trace, or this one without a name. It is loaded when it is first asked for.
    pub(crate) fn of_snapshot(self: &Arc<Self>, name: Option<&str>) -> Result<Arc<Self>, ApiError> {
        let Some(name) = name else {
            return Ok(Arc::clone(self));
        };
        let mut opened = self
            .snapshots
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = opened.get(name) {
            return Ok(Arc::clone(state));
        }
        let folder = self.subjects.snapshots.as_ref();
        // Only files of the list are ever opened.
        let folder = folder.filter(|folder| folder.list().iter().any(|known| known.name == name));
        let Some(folder) = folder else {
            let message = format!("no such heap snapshot: `{name}`");
            return Err(EngineError::new(ErrorKind::NotFound, message).into());
        };
        let subjects = folder.open(name).map_err(|problem| failed(&problem))?;
        let state = Self::start(subjects).map_err(|error| failed(&error.to_string()))?;
        opened.insert(name.to_owned(), Arc::clone(&state));
        Ok(state)
    }

    /// Waits until the files are loaded.
    async fn newest(&self) -> Result<Newest, ApiError> {
        let mut loading = self.loading.clone();
        let is_over = |loading: &Loading| !matches!(loading, Loading::Running);
        match loading.wait_for(is_over).await.as_deref() {
            Ok(Loading::Done(newest)) => Ok(newest.clone()),
            Ok(Loading::Failed(problem)) => Err(failed(problem)),
            _ => Err(failed("the trace could not be loaded")),
        }
    }

    /// Waits until the files are loaded. The session is the one of an epoch, if that is still
    /// there, otherwise the newest.
    async fn session(&self, epoch: Option<u64>) -> Result<Loaded, ApiError> {
        let newest = self.newest().await?.session;
        if let Some(session) = self.compared() {
            return Ok(Loaded::Traces(session));
        }
        let earlier = epoch.and_then(|epoch| self.earlier_session(epoch));
        Ok(earlier.unwrap_or(newest))
    }

    /// The session of an epoch, if it is still there.
    pub(crate) fn earlier_session(&self, epoch: u64) -> Option<Loaded> {
        self.earlier.find(epoch).map(Loaded::Traces)
    }

    /// The answer to a request, about the state of an epoch if that is given. Work that nobody
    /// waits for is not begun, or given up between two of its parts: browsers close the connection
    /// of a request that was superseded.
    pub(crate) async fn answer(
        &self,
        request: Request,
        epoch: Option<u64>,
    ) -> Result<Arc<Answer>, ApiError> {
        let session = self.session(epoch).await?;
        let cancel = Cancel::default();
        let _cancel_on_drop = cancel.on_drop();
        self.in_turn(move || session.answer(&request, &cancel))
            .await
    }

    /// A file of the trace, about the state of an epoch if that is given.
    pub(crate) async fn file(
        &self,
        request: FileRequest,
        epoch: Option<u64>,
        is_written: bool,
    ) -> Result<SavedFile, ApiError> {
        let Loaded::Traces(session) = self.session(epoch).await? else {
            let message = "heap snapshots are exported by `heapline export`";
            return Err(EngineError::new(ErrorKind::NotFound, message).into());
        };
        let subjects = Arc::clone(&self.subjects);
        self.in_turn(move || request.answer(&subjects, session, is_written))
            .await
    }

    /// Does work in a thread, when there is a core for it.
    async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let work = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        let done = work.await.map_err(|_| internal())??;
        Ok(done)
    }
}

fn internal() -> ApiError {
    let message = "internal error; please report it as a bug";
    EngineError::new(ErrorKind::Internal, message).into()
}

fn failed(problem: &str) -> ApiError {
    EngineError::new(ErrorKind::Failed, problem).into()
}
