//! The agent in a running program: see `crates/agent/src/attach.rs`.
//!
//! A program that waits for `heapline attach` has it, and is told by a socket. Into others it is loaded, and
//! called, with ptrace.

use std::cell::OnceCell;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use heapline_attach::{Error, Library, Process, call, offset};
use heapline_recorder::settings::{RecordingSettings, SnapshotSettings};

use super::dormant::Dormant;
use super::program::{Access, Running};
use crate::commands::record::{AGENT, agent_hash};

/// Results of the agent's functions.
const DONE: u64 = 0;
const BUSY: u64 = 1;

/// The time for which a busy agent is asked again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Error of a program that is busy with another snapshot.
pub(super) const ANOTHER_SNAPSHOT: &str =
    "another snapshot is being taken; try again when it is written";

/// Bytes of the control block before the message, and of the message at most.
const MESSAGE_AT: u64 = 8;
const MESSAGE: usize = 1024;

/// A task of the agent, with a control block of its own.
#[derive(Clone, Copy)]
enum Task {
    Recording,
    Snapshot,
    Description,
}

impl Task {
    /// The control block in the agent.
    fn control(self) -> &'static str {
        match self {
            Self::Recording => "heapline_control",
            Self::Snapshot => "heapline_snapshot_control",
            Self::Description => "heapline_explain_control",
        }
    }
}

/// The agent in a process.
pub(in crate::commands) enum Agent<'p> {
    /// It listens.
    Dormant(&'p Dormant),
    /// It is called in a thread that is stopped for that.
    Injected(Injected<'p>),
}

/// The agent in a process that did not expect it, which may have to be loaded.
pub(in crate::commands) struct Injected<'p> {
    process: &'p Process,
    name: String,
    /// Where the agent is, once it was called.
    base: OnceCell<u64>,
}

/// The state of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands) enum State {
    Idle,
    Armed,
    Recording,
    Failed(String),
    /// There is no agent (any more).
    Gone,
}

impl<'p> Agent<'p> {
    pub(in crate::commands) fn new(running: &'p Running) -> Self {
        match &running.access {
            Access::Socket(dormant) => Self::Dormant(dormant),
            Access::Memory(process) => Self::Injected(Injected::new(process)),
        }
    }

    /// Returns true if the program is recorded already.
    pub(in crate::commands) fn is_active(&self) -> bool {
        matches!(self.state(), State::Armed | State::Recording)
    }

    pub(in crate::commands) fn state(&self) -> State {
        match self {
            Self::Dormant(dormant) => dormant.state(),
            Self::Injected(injected) => injected.state(Task::Recording),
        }
    }

    /// Asks for a recording. Returns the time for which a thread was stopped, if it was.
    pub(in crate::commands) fn attach(
        &self,
        settings: &RecordingSettings,
    ) -> anyhow::Result<Option<Duration>> {
        match self {
            Self::Dormant(dormant) => dormant.attach(settings).map(|()| None),
            Self::Injected(injected) => injected
                .call(Task::Recording, "heapline_attach", &settings.to_bytes())
                .map(Some),
        }
    }

    /// Ends the recording.
    pub(in crate::commands) fn detach(&self) -> anyhow::Result<Option<Duration>> {
        match self {
            Self::Dormant(dormant) => dormant.detach().map(|()| None),
            Self::Injected(injected) => injected
                .call(Task::Recording, "heapline_detach", &[])
                .map(Some),
        }
    }

    /// Asks for a heap snapshot.
    pub(in crate::commands) fn snapshot(
        &self,
        settings: &SnapshotSettings,
    ) -> anyhow::Result<Option<Duration>> {
        match self {
            Self::Dormant(dormant) => dormant.snapshot(settings).map(|()| None),
            Self::Injected(injected) => injected
                .call(Task::Snapshot, "heapline_snapshot", &settings.to_bytes())
                .map(Some),
        }
    }

    /// Asks for a description of the program's runtime.
    pub(in crate::commands) fn explain(&self) -> anyhow::Result<String> {
        match self {
            Self::Dormant(dormant) => dormant.explain(),
            Self::Injected(injected) => {
                injected.call(Task::Description, "heapline_explain", &[])?;
                injected
                    .read_control(Task::Description)
                    .map(|(_, message)| message)
                    .context("the program has ended")
            }
        }
    }

    /// The state of the snapshot.
    pub(in crate::commands) fn snapshot_state(&self) -> State {
        match self {
            Self::Dormant(dormant) => dormant.snapshot_state(),
            Self::Injected(injected) => injected.state(Task::Snapshot),
        }
    }

    /// Ends what is left of a snapshot that was written, or is not wanted any more.
    pub(in crate::commands) fn end_snapshot(&self) -> anyhow::Result<()> {
        match self {
            Self::Dormant(dormant) => {
                dormant.snapshot_state();
            }
            Self::Injected(injected) => {
                injected.call(Task::Snapshot, "heapline_snapshot_end", &[])?;
            }
        }
        Ok(())
    }
}

impl<'p> Injected<'p> {
    fn new(process: &'p Process) -> Self {
        Self {
            process,
            name: format!("heapline-agent-{:016x}", agent_hash()),
            base: OnceCell::new(),
        }
    }

    fn library(&self) -> Library<'_> {
        Library {
            name: &self.name,
            bytes: AGENT,
        }
    }

    fn state(&self, task: Task) -> State {
        self.read_state(task).unwrap_or(State::Gone)
    }

    fn read_state(&self, task: Task) -> Option<State> {
        let (state, message) = self.read_control(task)?;
        Some(match state {
            0 => State::Idle,
            1 => State::Armed,
            2 => State::Recording,
            _ => State::Failed(message),
        })
    }

    /// The state and the message of a control block.
    fn read_control(&self, task: Task) -> Option<(u64, String)> {
        let base = match self.base.get() {
            Some(base) => *base,
            None => self.library().find(&self.process.modules().ok()?)?,
        };
        let control = base + offset(AGENT, task.control())?;
        let words = self.process.word(control).ok()?;
        let len = usize::try_from(words >> 32).unwrap_or(0).min(MESSAGE);
        let mut message = vec![0; len];
        self.process.read(control + MESSAGE_AT, &mut message).ok()?;
        let message = String::from_utf8_lossy(&message).into_owned();
        Some((words & 0xffff_ffff, message))
    }

    fn call(&self, task: Task, function: &str, argument: &[u8]) -> anyhow::Result<Duration> {
        let start = Instant::now();
        loop {
            let called = call(self.process, self.library(), function, argument)?;
            let _ = self.base.set(called.base);
            match called.result {
                DONE => return Ok(called.stopped),
                BUSY if start.elapsed() < PATIENCE => {
                    // Each call stops a thread: rarely, if it takes longer.
                    thread::sleep((start.elapsed() / 4).max(Duration::from_millis(2)));
                }
                BUSY => match task {
                    Task::Recording | Task::Description => return Err(Error::NoSafeMoment.into()),
                    Task::Snapshot => bail!("{ANOTHER_SNAPSHOT}"),
                },
                _ => match self.state(task) {
                    State::Failed(message) => bail!("{message}"),
                    _ => bail!("the library in the program failed"),
                },
            }
        }
    }
}
