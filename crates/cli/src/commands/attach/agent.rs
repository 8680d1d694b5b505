//! The agent in a running program: see `crates/agent/src/attach.rs`.
//!
//! A program that waits for `heapline attach` has it, and is told by a socket. Into others it is loaded, and
//! called, with ptrace.

use std::cell::OnceCell;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use heapline_attach::{Error, Library, Process, call, offset};
use heapline_recorder::settings::AttachSettings;

use super::dormant::Dormant;
use super::program::{Access, Running};
use crate::commands::record::{AGENT, agent_hash};

/// Results of the agent's functions.
const DONE: u64 = 0;
const BUSY: u64 = 1;

/// The time for which a busy agent is asked again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of the control block before the message, and of the message at most.
const MESSAGE_AT: u64 = 8;
const MESSAGE: usize = 256;

/// The agent in a process.
pub(super) enum Agent<'p> {
    /// It listens.
    Dormant(&'p Dormant),
    /// It is called in a thread that is stopped for that.
    Injected(Injected<'p>),
}

/// The agent in a process that did not expect it, which may have to be loaded.
pub(super) struct Injected<'p> {
    process: &'p Process,
    name: String,
    /// The offset of the control block.
    control: Option<u64>,
    /// Where the agent is, once it was called.
    base: OnceCell<u64>,
}

/// The state of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    Armed,
    Recording,
    Failed(String),
    /// There is no agent (any more).
    Gone,
}

impl<'p> Agent<'p> {
    pub(super) fn new(running: &'p Running) -> Self {
        match &running.access {
            Access::Socket(dormant) => Self::Dormant(dormant),
            Access::Memory(process) => Self::Injected(Injected::new(process)),
        }
    }

    /// Returns true if the program is recorded already.
    pub(super) fn is_active(&self) -> bool {
        matches!(self.state(), State::Armed | State::Recording)
    }

    pub(super) fn state(&self) -> State {
        match self {
            Self::Dormant(dormant) => dormant.state(),
            Self::Injected(injected) => injected.state(),
        }
    }

    /// Asks for a recording. Returns the time for which a thread was stopped, if it was.
    pub(super) fn attach(&self, settings: &AttachSettings) -> anyhow::Result<Option<Duration>> {
        match self {
            Self::Dormant(dormant) => dormant.attach(settings).map(|()| None),
            Self::Injected(injected) => injected
                .call("heapline_attach", &settings.to_bytes())
                .map(Some),
        }
    }

    /// Ends the recording.
    pub(super) fn detach(&self) -> anyhow::Result<Option<Duration>> {
        match self {
            Self::Dormant(dormant) => dormant.detach().map(|()| None),
            Self::Injected(injected) => injected.call("heapline_detach", &[]).map(Some),
        }
    }
}

impl<'p> Injected<'p> {
    fn new(process: &'p Process) -> Self {
        Self {
            process,
            name: format!("heapline-agent-{:016x}", agent_hash()),
            control: offset(AGENT, "heapline_control"),
            base: OnceCell::new(),
        }
    }

    fn library(&self) -> Library<'_> {
        Library {
            name: &self.name,
            bytes: AGENT,
        }
    }

    fn state(&self) -> State {
        self.read_state().unwrap_or(State::Gone)
    }

    fn read_state(&self) -> Option<State> {
        let base = match self.base.get() {
            Some(base) => *base,
            None => self.library().find(&self.process.modules().ok()?)?,
        };
        let control = base + self.control?;
        let words = self.process.word(control).ok()?;
        Some(match words & 0xffff_ffff {
            0 => State::Idle,
            1 => State::Armed,
            2 => State::Recording,
            _ => {
                let len = usize::try_from(words >> 32).unwrap_or(0).min(MESSAGE);
                let mut message = vec![0; len];
                self.process.read(control + MESSAGE_AT, &mut message).ok()?;
                State::Failed(String::from_utf8_lossy(&message).into_owned())
            }
        })
    }

    fn call(&self, function: &str, argument: &[u8]) -> anyhow::Result<Duration> {
        let start = Instant::now();
        loop {
            let called = call(self.process, self.library(), function, argument)?;
            let _ = self.base.set(called.base);
            match called.result {
                DONE => return Ok(called.stopped),
                BUSY if start.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(2)),
                BUSY => return Err(Error::NoSafeMoment.into()),
                _ => match self.state() {
                    State::Failed(message) => bail!("{message}"),
                    _ => bail!("the library in the program failed"),
                },
            }
        }
    }
}
