//! Loads the files, and follows the recording of one that grows.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use heapline_engine::{Answer, Cancel, EngineError, Request, Session, SnapshotSession};
use heapline_profile::LiveProfile;
use tokio::sync::watch;

use crate::snapshot::load_snapshots;
use crate::trace::{self, Progress, Subjects};

/// The minimum time between two looks at a recording.
const INTERVAL: Duration = Duration::from_millis(500);

/// Following takes at most one part in this many of the time.
const SHARE: u32 = 8;

/// Sessions that are kept beside the newest: a page whose answers are on their way when the trace
/// grows gets the rest of them about the same state.
const KEPT: usize = 3;

/// The state of loading.
#[derive(Clone, Debug)]
pub(crate) enum Loading {
    Running,
    Done(Newest),
    Failed(String),
}

/// A session about traces or about heap snapshots.
#[derive(Clone, Debug)]
pub(crate) enum Loaded {
    Traces(Arc<Session>),
    Snapshots(Arc<SnapshotSession>),
}

impl Loaded {
    pub(crate) fn identity(&self) -> &Arc<str> {
        match self {
            Self::Traces(session) => session.identity(),
            Self::Snapshots(session) => session.identity(),
        }
    }

    /// Counts the states of a trace that grows.
    pub(crate) fn epoch(&self) -> u64 {
        match self {
            Self::Traces(session) => session.epoch(),
            Self::Snapshots(_) => 0,
        }
    }

    /// Seconds from the start to the last event. A snapshot takes no time.
    pub(crate) fn duration(&self) -> f64 {
        match self {
            Self::Traces(session) => session.trace().profile.duration(),
            Self::Snapshots(_) => 0.0,
        }
    }

    /// True if the allocation sites of blocks are known.
    pub(crate) fn has_sites(&self) -> bool {
        match self {
            Self::Traces(_) => true,
            Self::Snapshots(session) => session.recording().is_ok(),
        }
    }

    pub(crate) fn answer(
        &self,
        request: &Request,
        cancel: &Cancel,
    ) -> Result<Arc<Answer>, EngineError> {
        match self {
            Self::Traces(session) => session.answer(request, cancel),
            Self::Snapshots(session) => session.answer(request, cancel),
        }
    }
}

/// The newest state of the files.
#[derive(Clone, Debug)]
pub(crate) struct Newest {
    pub(crate) session: Loaded,
    /// True if the trace is being recorded.
    pub(crate) is_recording: bool,
    /// The reason why it is not followed any more, if that is not its end.
    pub(crate) problem: Option<String>,
}

/// Loads traces in a thread.
#[derive(Debug)]
pub(crate) struct Loader {
    subjects: Arc<Subjects>,
    progress: Progress,
    earlier: Arc<EarlierSessions>,
    sender: watch::Sender<Loading>,
}

impl Loader {
    pub(crate) fn new(
        subjects: &Arc<Subjects>,
        progress: &Progress,
        earlier: &Arc<EarlierSessions>,
    ) -> (Self, watch::Receiver<Loading>) {
        let (sender, receiver) = watch::channel(Loading::Running);
        let loader = Self {
            subjects: Arc::clone(subjects),
            progress: progress.clone(),
            earlier: Arc::clone(earlier),
            sender,
        };
        (loader, receiver)
    }

    /// Loads the traces; returns when they will not change any more.
    pub(crate) fn run(self) {
        let loaded_files = &self.subjects.loaded_files;
        let loaded = match self.subjects.open_recording() {
            Some(live) => {
                let followed = self.follow(live);
                // A file that is recorded to changes until then.
                loaded_files.note(&self.subjects);
                followed
            }
            None if self.subjects.sites.is_some() => {
                loaded_files.note(&self.subjects);
                load_snapshots(&self.subjects, &self.progress).map(|session| {
                    self.sender.send_replace(Loading::Done(Newest {
                        session: Loaded::Snapshots(Arc::new(session)),
                        is_recording: false,
                        problem: None,
                    }));
                })
            }
            None => {
                loaded_files.note(&self.subjects);
                trace::load(&self.subjects, &self.progress).map(|session| {
                    let session = self.publish(session, false, None);
                    // Every page asks for it, but nothing else waits for it. Whoever asks is told
                    // what went wrong, if something did.
                    let _ = session.info();
                })
            }
        };
        if let Err(problem) = loaded {
            self.sender.send_replace(Loading::Failed(problem));
        }
    }

    /// Publishes the states of a recording until it ends.
    fn follow(&self, mut live: LiveProfile) -> Result<(), String> {
        let problem = |error: heapline_model::Error| self.subjects.trace.problem(&error);
        let mut newest: Option<Arc<Session>> = None;
        loop {
            let begin = Instant::now();
            let is_first = newest.is_none();
            let profile = match (live.refresh(), &newest) {
                (Ok(profile), _) => profile,
                (Err(error), None) => return Err(problem(error)),
                (Err(error), Some(session)) => {
                    // What was read before is still right.
                    self.sender.send_replace(Loading::Done(Newest {
                        session: Loaded::Traces(Arc::clone(session)),
                        is_recording: false,
                        problem: Some(problem(error)),
                    }));
                    return Ok(());
                }
            };
            let is_recording = !live.has_ended();
            if let Some(profile) = profile {
                let size = self.subjects.recorded_bytes();
                let session = match &newest {
                    Some(last) => last.successor(profile, last.epoch() + 1, size),
                    None => trace::session(&self.subjects, profile, size, &self.progress)?,
                };
                newest = Some(self.publish(session, is_recording, newest.as_ref()));
            }
            if !is_recording {
                return Ok(());
            }
            // The first look takes long, because all is new to it.
            let took = if is_first {
                Duration::ZERO
            } else {
                begin.elapsed()
            };
            thread::sleep(INTERVAL.max(took * (SHARE - 1)));
        }
    }

    fn publish(
        &self,
        session: Session,
        is_recording: bool,
        last: Option<&Arc<Session>>,
    ) -> Arc<Session> {
        let session = Arc::new(session);
        if let Some(last) = last {
            self.earlier.add(last);
        }
        self.sender.send_replace(Loading::Done(Newest {
            session: Loaded::Traces(Arc::clone(&session)),
            is_recording,
            problem: None,
        }));
        session
    }
}

/// Sessions about earlier states of the trace: the last ones, and all that somebody holds.
#[derive(Debug, Default)]
pub(crate) struct EarlierSessions(Mutex<Earlier>);

#[derive(Debug, Default)]
struct Earlier {
    kept: VecDeque<Arc<Session>>,
    all: Vec<Weak<Session>>,
}

impl EarlierSessions {
    fn add(&self, session: &Arc<Session>) {
        let mut earlier = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        earlier.all.retain(|known| known.strong_count() > 0);
        earlier.all.push(Arc::downgrade(session));
        earlier.kept.push_back(Arc::clone(session));
        if earlier.kept.len() > KEPT {
            earlier.kept.pop_front();
        }
    }

    pub(crate) fn find(&self, epoch: u64) -> Option<Arc<Session>> {
        let earlier = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = earlier.all.iter().filter_map(Weak::upgrade);
        all.find(|session| session.epoch() == epoch)
    }
}
