//! The state shared by all connections: the files, also while they are being loaded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use heapline_engine::{Answer, Cancel, EngineError, ErrorKind, Request};
use serde::Serialize;
use tokio::sync::{Semaphore, watch};

use crate::error::ApiError;
use crate::loader::{EarlierSessions, Loaded, Loader, Loading, Newest};
use crate::trace::{Progress, Subjects};

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
    against: Option<&'a str>,
    /// The names of heap snapshots of the same run, which are served below `snapshots/`.
    snapshots: Vec<String>,
    /// The command that opens the traces in the viewer.
    command: String,
    /// Identifies the traces, with the epoch of the profile, once it is loaded.
    identity: Option<String>,
    /// True if the allocation sites of blocks are known: of a snapshot, if there is a recording of its run.
    sites: bool,
    epoch: u64,
    /// True while the trace is being recorded: it grows, and so does the epoch.
    recording: bool,
    read: u64,
    size: Option<u64>,
    error: Option<String>,
}

impl<'a> Status<'a> {
    fn loading(subjects: &'a Subjects, read: u64) -> Self {
        let against = subjects.against.as_ref();
        Self {
            state: "loading",
            version: env!("CARGO_PKG_VERSION"),
            kind: match subjects.sites {
                Some(_) => "snapshot",
                None => "trace",
            },
            trace: subjects.trace.name(),
            against: against.map(|trace| trace.name()),
            // A report file has no others.
            snapshots: Vec::new(),
            command: subjects.command_line(),
            identity: None,
            sites: false,
            epoch: 0,
            recording: false,
            read,
            size: subjects.size(),
            error: None,
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
                snapshots: self.snapshot_names(),
                ..Status::ready(&self.subjects, session)
            },
            Loading::Running => loading,
            Loading::Failed(problem) => Status {
                state: "failed",
                error: Some(problem.clone()),
                ..loading
            },
        }
    }

    fn snapshot_names(&self) -> Vec<String> {
        let folder = self.subjects.snapshots.as_ref();
        folder.map_or_else(Vec::new, |folder| folder.names())
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
        let folder = folder.filter(|folder| folder.names().iter().any(|known| known == name));
        let Some(folder) = folder else {
            let message = format!("no such heap snapshot: `{name}`");
            return Err(EngineError::new(ErrorKind::NotFound, message).into());
        };
        let subjects = folder.open(name).map_err(|problem| failed(&problem))?;
        let state = Self::start(subjects).map_err(|error| failed(&error.to_string()))?;
        opened.insert(name.to_owned(), Arc::clone(&state));
        Ok(state)
    }

    /// Waits until the files are loaded. The session is the one of an epoch, if that is still
    /// there, otherwise the newest.
    async fn session(&self, epoch: Option<u64>) -> Result<Loaded, ApiError> {
        let mut loading = self.loading.clone();
        let is_over = |loading: &Loading| !matches!(loading, Loading::Running);
        let newest = match loading.wait_for(is_over).await.as_deref() {
            Ok(Loading::Done(newest)) => newest.session.clone(),
            Ok(Loading::Failed(problem)) => return Err(failed(problem)),
            _ => return Err(failed("the trace could not be loaded")),
        };
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
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let work = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            session.answer(&request, &cancel)
        });
        let answer = work.await.map_err(|_| {
            EngineError::new(
                ErrorKind::Internal,
                "internal error; please report it as a bug",
            )
        })??;
        Ok(answer)
    }
}

fn failed(problem: &str) -> ApiError {
    EngineError::new(ErrorKind::Failed, problem).into()
}
