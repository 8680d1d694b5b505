//! What all connections share: the traces, from before they are loaded, and recent answers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hyper::StatusCode;
use serde::Serialize;
use tokio::sync::{Semaphore, watch};

use crate::engine::{Engine, Progress, Subjects, Trace};
use crate::error::ApiError;
use crate::request::{Request, Stop};

/// Bytes of answers that are kept: going back and forth should cost nothing.
const KEPT: usize = 64 << 20;

/// How far loading is.
#[derive(Clone, Debug)]
enum Loading {
    Running,
    Done(Arc<Engine>),
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
    answers: Mutex<Answers>,
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
    /// The trace as it is named in commands.
    path: &'a str,
    against_path: Option<&'a str>,
    read: u64,
    size: Option<u64>,
    error: Option<String>,
}

impl<'a> Status<'a> {
    /// The status of traces that are loaded.
    pub(crate) fn ready(subjects: &'a Subjects) -> Self {
        let size = subjects.size();
        Self {
            state: "ready",
            version: env!("CARGO_PKG_VERSION"),
            trace: subjects.trace.name(),
            against: subjects.against.as_ref().map(Trace::name),
            path: &subjects.trace.path,
            against_path: subjects.against.as_ref().map(|trace| &*trace.path),
            read: size.unwrap_or(0),
            size,
            error: None,
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
            answers: Mutex::default(),
        });
        std::thread::Builder::new()
            .name("loader".to_owned())
            .spawn(move || match Engine::load(subjects, &progress) {
                Ok(engine) => {
                    let engine = Arc::new(engine);
                    sender.send_replace(Loading::Done(Arc::clone(&engine)));
                    // Every page asks for it, but nothing else waits for it. Whoever asks is told
                    // what went wrong, if something did.
                    let _ = engine.info();
                }
                Err(problem) => {
                    sender.send_replace(Loading::Failed(problem));
                }
            })?;
        Ok(state)
    }

    pub(crate) fn status(&self) -> Status<'_> {
        let ready = Status::ready(&self.subjects);
        match &*self.loading.borrow() {
            Loading::Done(_) => ready,
            Loading::Running => Status {
                state: "loading",
                read: self.progress.read(),
                ..ready
            },
            Loading::Failed(problem) => Status {
                state: "failed",
                read: self.progress.read(),
                error: Some(problem.clone()),
                ..ready
            },
        }
    }

    /// Waits until the traces are loaded.
    async fn engine(&self) -> Result<Arc<Engine>, ApiError> {
        let mut loading = self.loading.clone();
        let is_over = |loading: &Loading| !matches!(loading, Loading::Running);
        match loading.wait_for(is_over).await.as_deref() {
            Ok(Loading::Done(engine)) => Ok(Arc::clone(engine)),
            Ok(Loading::Failed(problem)) => Err(failed(problem)),
            _ => Err(failed("the trace could not be loaded")),
        }
    }

    /// The answer to a question. Work that nobody waits for is not begun, or given up between two
    /// of its parts: browsers close the connection of a request that was superseded.
    pub(crate) async fn answer(&self, request: Request) -> Result<Bytes, ApiError> {
        let key = request.key();
        if let Some(answer) = self.answers().find(&key) {
            return Ok(answer);
        }
        let engine = self.engine().await?;
        let stop = Stop::default();
        let _stop_on_drop = stop.on_drop();
        let Ok(turn) = Arc::clone(&self.turns).acquire_owned().await else {
            return Err(ApiError::stopped());
        };
        let work = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            engine.answer_until(&request, &stop).map(Bytes::from)
        });
        let answer = work.await.map_err(|_| {
            ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal",
                "this question made the program fail; please report it as a bug",
            )
        })??;
        self.answers().put(key, &answer);
        Ok(answer)
    }

    fn answers(&self) -> std::sync::MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(problem: &str) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "failed", problem)
}

/// Answers, those used last at the back.
#[derive(Debug, Default)]
struct Answers {
    kept: VecDeque<(String, Bytes)>,
    bytes: usize,
}

impl Answers {
    fn find(&mut self, key: &str) -> Option<Bytes> {
        let place = self.kept.iter().position(|(kept, _)| kept == key)?;
        let found = self.kept.remove(place)?;
        let answer = found.1.clone();
        self.kept.push_back(found);
        Some(answer)
    }

    fn put(&mut self, key: String, answer: &Bytes) {
        // Two clients may have asked the same at the same time.
        if self.find(&key).is_some() {
            return;
        }
        self.bytes += key.len() + answer.len();
        self.kept.push_back((key, answer.clone()));
        while self.bytes > KEPT
            && let Some((key, answer)) = self.kept.pop_front()
        {
            self.bytes -= key.len() + answer.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_answers_make_room_for_new_ones() {
        let mut answers = Answers::default();
        let third = Bytes::from(vec![0; KEPT / 3]);
        for key in ["a", "b", "c"] {
            answers.put(key.to_owned(), &third);
            answers.put(key.to_owned(), &third);
        }
        // The three and their keys do not fit; `a` was first.
        assert!(answers.find("a").is_none());
        assert!(answers.find("b").is_some());
        answers.put("d".to_owned(), &third);
        assert!(answers.find("c").is_none() && answers.find("b").is_some());
        assert!(answers.bytes <= KEPT);
    }
}
