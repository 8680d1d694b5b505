//! The state shared by all connections: the traces, also while they are being loaded.

use std::sync::Arc;

use heapline_engine::{Answer, Cancel, EngineError, ErrorKind, Request, Session};
use serde::Serialize;
use tokio::sync::{Semaphore, watch};

use crate::error::ApiError;
use crate::loader::{EarlierSessions, Loader, Loading, Newest};
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
}

/// `GET /api/v1/status`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Status<'a> {
    state: &'static str,
    version: &'static str,
    /// The name of the trace.
    trace: &'a str,
    /// The name of the trace that it is compared with.
    against: Option<&'a str>,
    /// The command that opens the traces in the viewer.
    command: String,
    /// Identifies the traces, with the epoch of the profile, once it is loaded.
    identity: Option<String>,
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
            trace: subjects.trace.name(),
            against: against.map(|trace| trace.name()),
            command: subjects.command_line(),
            identity: None,
            epoch: 0,
            recording: false,
            read,
            size: subjects.size(),
            error: None,
        }
    }

    /// The status of traces that are loaded.
    pub(crate) fn ready(subjects: &'a Subjects, session: &Session) -> Self {
        let loading = Self::loading(subjects, subjects.size().unwrap_or(0));
        Self {
            state: "ready",
            identity: Some(session.identity().to_string()),
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

    /// Waits until the traces are loaded. The session is the one of an epoch, if that is still
    /// there, otherwise the newest.
    async fn session(&self, epoch: Option<u64>) -> Result<Arc<Session>, ApiError> {
        let mut loading = self.loading.clone();
        let is_over = |loading: &Loading| !matches!(loading, Loading::Running);
        let newest = match loading.wait_for(is_over).await.as_deref() {
            Ok(Loading::Done(newest)) => Arc::clone(&newest.session),
            Ok(Loading::Failed(problem)) => return Err(failed(problem)),
            _ => return Err(failed("the trace could not be loaded")),
        };
        let earlier = epoch.and_then(|epoch| self.earlier_session(epoch));
        Ok(earlier.unwrap_or(newest))
    }

    /// The session of an epoch, if it is still there.
    pub(crate) fn earlier_session(&self, epoch: u64) -> Option<Arc<Session>> {
        self.earlier.find(epoch)
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
