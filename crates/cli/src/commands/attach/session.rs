//! A recording of a program that was already running, from attaching to detaching.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use heapline_model::attached_context;
use heapline_recorder::settings::{Memprof, Output, RecordingSettings};
use heapline_recorder::tail;
use heapline_text::Screen;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::Args;
use super::agent::{Agent, State};
use super::place::Place;
use super::program::Running;
use crate::commands::cpu_time::CpuTime;
use crate::commands::record::{Kind, Recorded};
use crate::error::{note, warn};

/// The time between two looks at the program.
const INTERVAL: Duration = Duration::from_millis(20);

/// The time after which a program that has not begun to be recorded is said to wait.
const SOON: Duration = Duration::from_millis(300);

/// The time for which the beginning of a short recording is waited for.
const BEGIN: Duration = Duration::from_secs(2);

/// The time of its own that a program needs at most to come to a safe point.
const BUSY: Duration = Duration::from_millis(200);

/// A program that is being recorded.
pub(super) struct Session<'a> {
    args: &'a Args,
    running: &'a Running,
    agent: Agent<'a>,
    place: Place,
    attached: Instant,
    /// When the first OCaml code ran after attaching.
    began: Option<Instant>,
    /// The program's CPU time when it was attached to, when the recording began, and when it was last looked at.
    cpu: [CpuTime; 3],
    /// Set by signals, which end the recording, not this program.
    interrupted: Arc<AtomicBool>,
}

impl<'a> Session<'a> {
    /// Attaches to a program.
    pub(super) fn begin(args: &'a Args, running: &'a Running) -> anyhow::Result<Self> {
        let pid = args.pid;
        let agent = Agent::new(running);
        if agent.is_active() {
            bail!(
                "heapline is recording process {pid} already; end that first: \
                 heapline attach --detach {pid}"
            );
        }
        let recording = &args.recording;
        let output = recording.output.as_deref();
        let place = Place::new(running, output, "ctf", recording.force.force)?;
        let context =
            attached_context(i64::from(pid).unsigned_abs(), args.trace.context.as_deref());
        let output = Output::supervised(&place.inside);
        let settings = RecordingSettings {
            context: Some(context),
            // What a program starts and stops must work as ever when nobody is attached any more.
            memprof: Memprof::Theirs,
            ..args.trace.settings(output, recording.rate)
        };
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
        }
        let stopped = match agent.attach(&settings) {
            Ok(stopped) => stopped,
            Err(error) => {
                place.discard();
                return Err(error).with_context(|| format!("cannot attach to process {pid}"));
            }
        };
        args.say_stopped(stopped, "attach");
        let cpu = running.cpu_time().unwrap_or_default();
        Ok(Self {
            args,
            running,
            agent,
            place,
            attached: Instant::now(),
            began: None,
            cpu: [cpu; 3],
            interrupted,
        })
    }

    /// The trace, while the program writes it.
    pub(super) fn trace(&self) -> PathBuf {
        self.place.trace()
    }

    /// Waits for the beginning of the recording; not for a program that waits itself.
    pub(super) fn wait_for_beginning(&mut self) -> anyhow::Result<()> {
        while self.is_on()? && self.began.is_none() && self.attached.elapsed() < SOON {
            thread::sleep(INTERVAL);
        }
        Ok(())
    }

    /// Waits for the end of the recording: a signal, the end of the time, or of the program.
    pub(super) fn wait(&mut self) -> anyhow::Result<()> {
        let mut has_said = self.args.quiet;
        while self.is_on()? {
            if self.began.is_none() && !has_said && self.attached.elapsed() > SOON {
                has_said = true;
                note("recording starts when the program next runs OCaml code");
            }
            let duration = self.args.duration;
            // A busy program takes a moment to begin.
            let (since, duration) = match self.began {
                Some(began) => (began.elapsed(), duration),
                None => (
                    self.attached.elapsed(),
                    duration.map(|time| time.max(BEGIN)),
                ),
            };
            if self.interrupted.load(Ordering::Relaxed)
                || duration.is_some_and(|duration| since >= duration)
            {
                break;
            }
            let left = duration.map_or(INTERVAL, |duration| duration.saturating_sub(since));
            thread::sleep(left.min(INTERVAL));
        }
        Ok(())
    }

    /// Looks at the program. Returns false if it is not going to be recorded any more.
    fn is_on(&mut self) -> anyhow::Result<bool> {
        if let Some(cpu) = self.running.cpu_time() {
            self.cpu[2] = cpu;
        }
        match self.agent.state() {
            State::Recording => {
                self.has_begun();
            }
            State::Failed(message) => {
                self.place.discard();
                bail!("cannot record process {}: {message}", self.args.pid)
            }
            State::Armed => {}
            // The program has started a sampler of its own, or has executed another program.
            State::Idle | State::Gone => return Ok(false),
        }
        Ok(self.running.is_alive())
    }

    /// Notes when the recording began, at the first call.
    fn has_begun(&mut self) {
        if self.began.is_none() {
            self.began = Some(Instant::now());
            self.cpu[1] = self.cpu[2];
        }
    }

    /// Detaches. Returns false if that failed, and the program goes on recording.
    pub(super) fn detach(&mut self) -> bool {
        // It may have begun since the last look.
        let state = self.agent.state();
        if state == State::Recording {
            self.has_begun();
        } else if tail::path(&self.trace()).exists() {
            // It has ended between two looks.
            self.began.get_or_insert(self.attached);
        }
        if let Some(cpu) = self.running.cpu_time() {
            self.cpu[2] = cpu;
        }
        // Not if it has executed another program.
        if !self.running.is_alive() || state == State::Gone {
            return true;
        }
        match self.agent.detach() {
            Ok(stopped) => self.args.say_stopped(stopped, "detach"),
            Err(error) if self.running.is_alive() => {
                warn(&format!(
                    "cannot detach: {error:#}; the program goes on recording to {}; try again: \
                     heapline attach --detach {}",
                    self.place.inside.display(),
                    self.args.pid
                ));
                return false;
            }
            Err(_) => {}
        }
        true
    }

    /// Puts the trace of a program that is not recorded any more in its place, and says where it is.
    pub(super) fn finish(self, screen: Screen) -> anyhow::Result<ExitCode> {
        let Args { quiet, summary, .. } = *self.args;
        let trace = self.place.collect()?;
        let [attached, began, last] = self.cpu;
        if self.began.is_none() {
            let spent = last.since(attached).user;
            if spent >= BUSY {
                bail!(
                    "nothing was recorded: the program ran for {:.1} s after it was attached to, but came to no \
                     point at which its sampler could be started; if it is not in C code all the time, show what \
                     was found in it: heapline attach {} --explain",
                    spent.as_secs_f64(),
                    self.args.pid
                );
            }
            if !quiet {
                note("detached before the program ran OCaml code: nothing was recorded");
            }
            return Ok(ExitCode::SUCCESS);
        }
        let recorded = Recorded {
            trace,
            others: Vec::new(),
            prefix: PathBuf::new(),
            kind: Kind::Ocaml,
            rate: self.args.recording.rate,
            cpu_time: Some(last.since(began).total()),
            became: None,
        };
        recorded.say(quiet, summary.then_some(screen))?;
        Ok(ExitCode::SUCCESS)
    }
}
