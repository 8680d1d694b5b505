//! The state shared by all connections: the traces, also while they are being loaded.

use std::sync::Arc;

use heapline_engine::{Answer, Cancel, EngineError, ErrorKind, Request, Session};
use serde::Serialize;
use tokio::sync::{Semaphore, watch};

use crate::error::ApiError;
use crate::trace::{Progress, Subjects, load};

/// The state of loading.
#[derive(Clone, Debug)]
enum Loading {
    Running,
    Done(Arc<Session>),
    Failed(String),
}

/// The state.
#[derive(Debug)]
pub(crate) struct State {
    subjects: Arc<Subjects>,
    progress: Progress,
    loading: watch::Receiver<Loading>,
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
        let (sender, loading) = watch::channel(Loading::Running);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let state = Arc::new(Self {
            subjects: Arc::clone(&subjects),
            progress: progress.clone(),
            loading,
            turns: Arc::new(Semaphore::new(cores)),
        });
        std::thread::Builder::new()
            .name("loader".to_owned())
            .spawn(move || match load(&subjects, &progress) {
                Ok(session) => {
                    let session = Arc::new(session);
                    sender.send_replace(Loading::Done(Arc::clone(&session)));
                    // Every page asks for it, but nothing else waits for it. Whoever asks is told
                    // what went wrong, if something did.
                    let _ = session.info();
                }
                Err(problem) => {
                    sender.send_replace(Loading::Failed(problem));
                }
            })?;
        Ok(state)
    }

    pub(crate) fn status(&self) -> Status<'_> {
        let loading = Status::loading(&self.subjects, self.progress.read());
        match &*self.loading.borrow() {
            Loading::Done(session) => Status::ready(&self.subjects, session),
            Loading::Running => loading,
            Loading::Failed(problem) => Status {
                state: "failed",
                error: Some(problem.clone()),
                ..loading
            },
        }
    }

    /// Waits until the traces are loaded.
    async fn session(&self) -> Result<Arc<Session>, ApiError> {
        let mut loading = self.loading.clone();
        let is_over = |loading: &Loading| !matches!(loading, Loading::Running);
        match loading.wait_for(is_over).await.as_deref() {
            Ok(Loading::Done(session)) => Ok(Arc::clone(session)),
            Ok(Loading::Failed(problem)) => Err(failed(problem)),
            _ => Err(failed("the trace could not be loaded")),
        }
    }

    /// The answer to a request. Work that nobody waits for is not begun, or given up between two
    /// of its parts: browsers close the connection of a request that was superseded.
    pub(crate) async fn answer(&self, request: Request) -> Result<Arc<Answer>, ApiError> {
        let session = self.session().await?;
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
