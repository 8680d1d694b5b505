//! `heapline attach`.

mod agent;
mod dormant;
mod place;
mod program;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use heapline_profile::query::Size;
use heapline_recorder::settings::AttachSettings;
use heapline_text::Screen;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::record::{Kind, Rate, Recorded, max_size};
use crate::error::{note, warn};
use crate::output::Force;
use agent::{Agent, State};
use place::Place;
use program::Running;

/// The time between two looks at the program.
const INTERVAL: Duration = Duration::from_millis(20);

/// The time after which a program that has not begun to be recorded is said to wait.
const SOON: Duration = Duration::from_millis(300);

/// The time for which the beginning of a short recording is waited for.
const BEGIN: Duration = Duration::from_secs(2);

/// Record an OCaml program that is already running
///
/// The program needs no preparation, and may be stripped: native programs for x86-64 Linux with glibc,
/// built with OCaml 4.11 to 4.14, or 5.3 or later. Heapline stops it for about a millisecond to load a
/// library, which starts the sampler of OCaml's runtime in all threads and domains. Programs that were
/// started with `heapline record --wait` have the library: they are not stopped, and need not be traced.
/// Ctrl-C detaches: the trace is complete, and the program runs on as before.
///
/// Blocks that were allocated before are not in the trace.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline attach 4711
  heapline attach 4711 -o server.ctf --for 30s --summary
  heapline attach $(pidof server) --rate 1e-3 --max-size 1GiB
  heapline attach --detach 4711

If `heapline attach` is killed, the program goes on recording; `heapline attach --detach PID` ends that.")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent command-line flags"
)]
pub(crate) struct Args {
    /// Process to record
    #[arg(value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: i32,

    /// Write the trace to this file [default: PROGRAM.PID.ctf]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Set the samples per word (1e-4, 1/10000) or the memory per sample (512KiB)
    #[arg(long, default_value = "1e-4", value_name = "RATE")]
    rate: Rate,

    /// Detach after this time: 500ms, 30s, 5m, 2h [default: when interrupted]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    duration: Option<Duration>,

    /// Store a description in the trace
    #[arg(long, value_name = "TEXT")]
    context: Option<String>,

    /// Stop recording new blocks before the trace exceeds this size
    #[arg(long, value_name = "SIZE")]
    max_size: Option<Size>,

    /// Keep at most this many frames of a stack, the innermost ones [default: all]
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u32).range(1..))]
    stack_depth: Option<u32>,

    /// Attach to a program under a seccomp filter, which might kill it
    #[arg(long)]
    allow_seccomp: bool,

    /// End a recording that an earlier `heapline attach` has left running, and exit
    #[arg(long, conflicts_with_all = ["output", "duration", "context", "max_size", "stack_depth"])]
    detach: bool,

    /// Print the summary of the trace at the end
    #[arg(long)]
    summary: bool,

    /// Print only warnings and errors
    #[arg(short, long, conflicts_with = "summary")]
    quiet: bool,

    /// Print for how long the program was stopped
    #[arg(short, long)]
    verbose: bool,

    #[command(flatten)]
    force: Force,
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<jiff::SignedDuration>().ok();
    let parsed = parsed.and_then(|duration| Duration::try_from(duration).ok());
    parsed
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "expected a time, such as 500ms, 30s, 5m or 2h".to_owned())
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<ExitCode> {
        let max_size = max_size(self.max_size)?;
        let running = Running::find(self.pid, self.allow_seccomp)?;
        let agent = Agent::new(&running);
        if self.detach {
            return self.end_earlier(&agent);
        }
        if agent.is_active() {
            bail!(
                "heapline is recording process {0} already; end that first: \
                 heapline attach --detach {0}",
                self.pid
            );
        }
        let place = Place::new(&running, self.output.as_deref(), self.force.force)?;
        let began = "blocks allocated before are unknown";
        let context = match &self.context {
            Some(context) => format!("{context} (attached to process {}: {began})", self.pid),
            None => format!("attached to process {}: {began}", self.pid),
        };
        let settings = AttachSettings {
            trace: place.inside.clone(),
            rate: self.rate.0,
            context,
            max_size,
            stack_depth: self.stack_depth,
        };
        // From here on, signals end the recording, not this program.
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
        }
        let attached = agent.attach(&settings);
        let stopped = match attached {
            Ok(stopped) => stopped,
            Err(error) => {
                place.discard();
                return Err(error)
                    .with_context(|| format!("cannot attach to process {}", self.pid));
            }
        };
        self.say_stopped(stopped, "attach");
        if !self.quiet {
            let end = match self.duration {
                Some(_) => "press Ctrl-C to detach early",
                None => "press Ctrl-C to detach",
            };
            note(&format!(
                "attached to process {} ({}); {end}",
                self.pid, running.name
            ));
        }
        let recorded = self.wait(&running, &agent, &interrupted);
        if let Err(error) = recorded {
            place.discard();
            return Err(error);
        }
        let took = recorded?;
        // Not if it has executed another program.
        if running.is_alive() && agent.state() != State::Gone {
            match agent.detach() {
                Ok(stopped) => self.say_stopped(stopped, "detach"),
                Err(error) if running.is_alive() => {
                    warn(&format!(
                        "cannot detach: {error:#}; the program goes on recording to {}; try again: \
                         heapline attach --detach {}",
                        place.inside.display(),
                        self.pid
                    ));
                    return Ok(ExitCode::from(2));
                }
                Err(_) => {}
            }
        }
        let trace = place.collect()?;
        let Some(took) = took else {
            if !self.quiet {
                note("detached before the program ran OCaml code: nothing was recorded");
            }
            return Ok(ExitCode::SUCCESS);
        };
        let recorded = Recorded {
            trace,
            others: Vec::new(),
            prefix: PathBuf::new(),
            kind: Kind::Ocaml,
            rate: self.rate,
            took,
        };
        recorded.say(self.quiet, self.summary.then_some(screen))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Waits for the end of the recording. Returns the time that it took, if it has begun.
    fn wait(
        &self,
        running: &Running,
        agent: &Agent<'_>,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<Option<Duration>> {
        let attached = Instant::now();
        let mut began = None;
        let mut has_said = self.quiet;
        loop {
            match agent.state() {
                State::Recording => {
                    began.get_or_insert_with(Instant::now);
                }
                State::Failed(message) => bail!("cannot record process {}: {message}", self.pid),
                State::Armed if !has_said && attached.elapsed() > SOON => {
                    has_said = true;
                    note("recording starts when the program next runs OCaml code");
                }
                State::Armed => {}
                // The program has started a sampler of its own, or has executed another program.
                State::Idle | State::Gone => break,
            }
            // A busy program takes a moment to begin.
            let (since, duration) = match began {
                Some(began) => (began.elapsed(), self.duration),
                None => (
                    attached.elapsed(),
                    self.duration.map(|time| time.max(BEGIN)),
                ),
            };
            if interrupted.load(Ordering::Relaxed)
                || duration.is_some_and(|duration| since >= duration)
                || !running.is_alive()
            {
                break;
            }
            let left = duration.map_or(INTERVAL, |duration| duration.saturating_sub(since));
            thread::sleep(left.min(INTERVAL));
        }
        // It may have begun since the last look.
        if began.is_none() && agent.state() == State::Recording {
            began = Some(Instant::now());
        }
        Ok(began.map(|began| began.elapsed()))
    }

    /// Ends a recording that was left running.
    fn end_earlier(&self, agent: &Agent<'_>) -> anyhow::Result<ExitCode> {
        if !agent.is_active() {
            bail!("heapline is not recording process {}", self.pid);
        }
        let stopped = agent.detach()?;
        self.say_stopped(stopped, "detach");
        if !self.quiet {
            note(&format!("detached from process {}", self.pid));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn say_stopped(&self, stopped: Option<Duration>, what: &str) {
        let message = match stopped {
            Some(time) => {
                let millis = time.as_secs_f64() * 1e3;
                format!("the program was stopped for {millis:.2} ms to {what}")
            }
            None => format!("the program was not stopped to {what}"),
        };
        if self.verbose {
            note(&message);
        }
    }
}
