//! Threads that load the trace and compute reports, so that keys never wait.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use heapline_engine::{Answer, Cancel, EngineError, LoadedTrace, Session};
use heapline_profile::query::TimePoint;
use heapline_profile::reports::Name;
use heapline_profile::{Estimator, GroupBy, Look, Query};

use crate::choices::Want;
use crate::situation::Situation;
use crate::source::{Newest, Progress, Source};

/// Answers that are kept for moving back and forth, in bytes.
const CACHE: usize = 32 << 20;

/// Loading a growing trace takes at most one part in so many of the time.
const LOAD_SHARE: u32 = 4;

/// Options of a [`Worker`].
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// A growing trace is loaded again at this interval.
    pub interval: Duration,
    /// The estimator that finds the peak.
    pub estimator: Estimator,
    /// The moment to show first, if it is not the end.
    pub start_at: Option<TimePoint>,
}

/// News for the screen.
#[derive(Debug)]
pub enum News {
    /// The share of the trace that has been read.
    Progress(f64),
    /// The trace cannot be read, or not yet.
    Problem(String),
    /// There is a new state of the trace.
    Advanced(Situation),
    /// The recording has ended.
    Ended,
    /// A request was answered in this epoch.
    Answered(u64, Want, Result<Arc<Answer>, EngineError>),
    /// All names of a kind, for suggestions.
    Names(GroupBy, Arc<[Name]>),
    /// Sentences about names of a query and of options that do not occur in the trace.
    Unmatched(Vec<String>),
}

/// The tasks of the worker.
#[derive(Default)]
struct Tasks {
    wants: Vec<Want>,
    name: Option<GroupBy>,
    check: Option<(Query, Look)>,
    newest: Option<Newest>,
    is_frozen: bool,
    is_over: bool,
    cancel: Cancel,
}

#[derive(Default)]
struct Board {
    tasks: Mutex<Tasks>,
    changed: Condvar,
}

impl Board {
    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Tasks)) {
        change(&mut self.tasks());
        self.changed.notify_all();
    }
}

/// Threads that load a trace and compute reports about it.
pub struct Worker {
    board: Arc<Board>,
    news: Receiver<News>,
}

impl Worker {
    /// Starts the threads.
    pub fn start(mut source: impl Source + 'static, options: WorkerOptions) -> Self {
        let interval = options.interval;
        let board = Arc::new(Board::default());
        let (sender, news) = channel();
        let path = source.path();
        let loader = (Arc::clone(&board), sender.clone());
        thread::spawn(move || load(&mut source, &loader.0, &loader.1, interval));
        let computer = Arc::clone(&board);
        thread::spawn(move || compute(&computer, &sender, &path, &options));
        Self { board, news }
    }

    /// Replaces the requests that are to be answered, in this order.
    pub fn want(&self, wants: Vec<Want>) {
        self.board.change(|tasks| {
            tasks.cancel.cancel();
            tasks.cancel = Cancel::default();
            tasks.wants = wants;
        });
    }

    /// Asks for all names of a kind.
    pub fn name(&self, kind: GroupBy) {
        self.board.change(|tasks| tasks.name = Some(kind));
    }

    /// Asks for names of a query, and of the options for the display of functions, that do not occur in the trace.
    pub fn check(&self, query: Query, look: Look) {
        self.board.change(|tasks| tasks.check = Some((query, look)));
    }

    /// Keeps the present state of a growing trace, or goes on.
    pub fn freeze(&self, is_frozen: bool) {
        if self.board.tasks().is_frozen != is_frozen {
            self.board.change(|tasks| tasks.is_frozen = is_frozen);
        }
    }

    /// The news since the last time. `None` if a thread has failed.
    #[must_use]
    pub fn news(&self) -> Option<Vec<News>> {
        use std::sync::mpsc::TryRecvError;
        let mut all = Vec::new();
        loop {
            match self.news.try_recv() {
                Ok(news) => all.push(news),
                Err(TryRecvError::Empty) => return Some(all),
                Err(TryRecvError::Disconnected) => return None,
            }
        }
    }

    /// Waits for the next news. `None` if a thread has failed.
    #[must_use]
    pub fn wait(&self) -> Option<News> {
        self.news.recv().ok()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.board.change(|tasks| {
            tasks.is_over = true;
            tasks.cancel.cancel();
        });
    }
}

/// Loads the trace whenever it has grown, until the recording has ended.
fn load(source: &mut impl Source, board: &Board, news: &Sender<News>, interval: Duration) {
    let mut was_recording = false;
    loop {
        let start = Instant::now();
        match source.newest(&Progress(news.clone())) {
            Ok(newest) => {
                if was_recording && !newest.is_recording {
                    let _ = news.send(News::Ended);
                }
                was_recording = newest.is_recording;
                if newest.profile.is_some() {
                    board.change(|tasks| tasks.newest = Some(newest));
                }
            }
            Err(problem) => drop(news.send(News::Problem(problem))),
        }
        let pause = interval.max(start.elapsed() * LOAD_SHARE);
        let tasks = board.tasks();
        let waited = board
            .changed
            .wait_timeout_while(tasks, pause, |tasks| !tasks.is_over);
        if waited.map_or(true, |(tasks, _)| tasks.is_over) {
            return;
        }
    }
}

/// The next thing to do.
enum Task {
    Name(GroupBy),
    Check(Query, Look),
    Want(Want, Cancel),
    Advance(Box<Newest>),
}

impl Tasks {
    fn next(&mut self, has_session: bool) -> Option<Task> {
        if has_session {
            if let Some(kind) = self.name.take() {
                return Some(Task::Name(kind));
            }
            if let Some((query, look)) = self.check.take() {
                return Some(Task::Check(query, look));
            }
            if !self.wants.is_empty() {
                return Some(Task::Want(self.wants.remove(0), self.cancel.clone()));
            }
            if self.is_frozen {
                return None;
            }
        }
        self.newest.take().map(Box::new).map(Task::Advance)
    }
}

fn compute(board: &Board, news: &Sender<News>, path: &str, options: &WorkerOptions) {
    let mut session: Option<Session> = None;
    loop {
        let task = {
            let mut tasks = board.tasks();
            loop {
                if tasks.is_over {
                    return;
                }
                match tasks.next(session.is_some()) {
                    Some(task) => break task,
                    None => {
                        tasks = board
                            .changed
                            .wait(tasks)
                            .unwrap_or_else(PoisonError::into_inner);
                    }
                }
            }
        };
        let done = match (task, &mut session) {
            (Task::Advance(newest), session) => advance(session, *newest, path, options),
            (Task::Name(kind), Some(session)) => {
                Some(News::Names(kind, Arc::clone(session.names(kind))))
            }
            (Task::Check(query, look), Some(session)) => {
                let profile = &session.trace().profile;
                let names = query.unmatched(profile).into_iter();
                let mut unmatched: Vec<String> = names
                    .map(|name| format!("the trace has no {name}"))
                    .collect();
                unmatched.extend(look.unmatched(profile));
                Some(News::Unmatched(unmatched))
            }
            (Task::Want(want, cancel), Some(session)) => {
                let answer = session.answer(&want.request, &cancel);
                match cancel.check() {
                    Ok(()) => Some(News::Answered(session.epoch(), want, answer)),
                    Err(_) => None,
                }
            }
            (_, None) => None,
        };
        if done.is_some_and(|done| news.send(done).is_err()) {
            return;
        }
    }
}

/// Replaces the profile by a newer one.
fn advance(
    session: &mut Option<Session>,
    newest: Newest,
    path: &str,
    options: &WorkerOptions,
) -> Option<News> {
    let profile = newest.profile?;
    let epoch = session.as_ref().map_or(0, |session| session.epoch() + 1);
    let estimator = options.estimator;
    let mut situation = Situation::of(&profile, estimator, epoch, newest.is_recording);
    if let Some(time) = &options.start_at {
        situation = situation.starting_at(time, &profile, estimator);
    }
    match session {
        Some(session) => session.advance(profile, epoch),
        None => {
            let trace = LoadedTrace {
                path: path.to_owned(),
                size: newest.size,
                profile,
            };
            *session = Some(Session::new(trace, None).with_cache(CACHE));
        }
    }
    Some(News::Advanced(situation))
}
