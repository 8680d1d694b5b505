//! `heapline attach`.

pub(super) mod agent;
mod dormant;
pub(super) mod place;
pub(super) mod program;
mod session;
mod staged;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use heapline_text::Screen;

use super::record::{LiveViewer, PushOptions};
use super::recording::{self, RecordingOptions, TraceOptions};
use super::top::{self, IsRunning};
use super::view::Serving;
use crate::error::note;
use crate::output::to_stdout;
use agent::Agent;
use program::{Purpose, Running};
use session::Session;

/// Record an OCaml program that is already running
///
/// The program needs no preparation, and may be stripped: native programs for x86-64 or arm64 Linux with
/// glibc, built with OCaml 4.11 to 4.14, or 5.3 to 5.5. Heapline stops it for about a millisecond to load a
/// library, which starts the sampler of OCaml's runtime in all threads and domains. Programs that were
/// started with `heapline record --wait` have the library: they are not stopped, and need not be traced.
/// Ctrl-C detaches: the trace is complete, and the program runs on as before.
///
/// Blocks that were allocated before are not in the trace.
#[derive(Debug, clap::Args)]
#[command(
    mut_args(recording::in_long_help),
    after_help = "\
Examples:
  heapline attach 4711
  heapline attach 4711 -o server.ctf --for 30s --summary
  heapline attach 4711 --view
  heapline attach $(pidof server) --rate 1e-3 --max-size 1GiB
  heapline attach --detach 4711

If `heapline attach` is killed, the program goes on recording; `heapline attach --detach PID` ends that."
)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent command-line flags"
)]
pub(crate) struct Args {
    /// Process to record
    #[arg(value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: i32,

    #[command(flatten)]
    recording: RecordingOptions,

    /// Detach after this time: 500ms, 30s, 5m, 2h [default: when interrupted]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    duration: Option<Duration>,

    #[command(flatten)]
    trace: TraceOptions,

    /// Attach to a program under a seccomp filter, which might kill it
    #[arg(long, hide_short_help = true)]
    allow_seccomp: bool,

    /// End a recording that an earlier `heapline attach` has left running, and exit
    #[arg(long, conflicts_with_all = ["output", "duration", "context", "max_size", "stack_depth", "view", "push"])]
    detach: bool,

    /// Print where heapline finds the data of the program's OCaml runtime, and exit
    #[arg(long, hide_short_help = true, conflicts_with_all = ["output", "duration", "context", "max_size", "stack_depth", "detach", "summary", "view", "push"])]
    explain: bool,

    /// Print the summary of the trace at the end
    #[arg(long)]
    summary: bool,

    /// Print only warnings and errors
    #[arg(short, long, conflicts_with = "summary")]
    quiet: bool,

    /// Print for how long the program was stopped
    #[arg(short, long, hide_short_help = true)]
    verbose: bool,

    /// Show the trace in the browser while it is being recorded
    ///
    /// The page grows with the trace, and stays after detaching, until Ctrl-C is pressed again.
    #[arg(long)]
    view: bool,

    #[command(flatten)]
    serving: Serving,

    #[command(flatten)]
    push: PushOptions,

    /// Show the trace in the terminal while it is being recorded, and detach when that is quit
    ///
    /// `heapline top PID` does the same, and has more options for what is shown.
    #[arg(long, conflicts_with_all = ["view", "duration", "detach", "explain", "push"])]
    top: bool,
}

/// Parses a time that is not zero.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<jiff::SignedDuration>().ok();
    let parsed = parsed.and_then(|duration| Duration::try_from(duration).ok());
    parsed
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "expected a time, such as 500ms, 30s, 5m or 2h".to_owned())
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<ExitCode> {
        if self.top {
            return top::attached(&self, screen);
        }
        let viewer = self.view.then(|| LiveViewer::bind(&self.serving));
        let mut viewer = viewer.transpose()?;
        let mut pushing = self.push.prepare()?;
        let running = self.find()?;
        if self.detach {
            return self.end_earlier(&running);
        }
        if self.explain {
            let description = Agent::new(&running).explain()?;
            to_stdout(format!("{description}\n").as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut session = Session::begin(&self, &running)?;
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
        if let Some(viewer) = &mut viewer {
            viewer.start(&self.serving, session.trace());
        }
        if let Some(pushing) = &mut pushing {
            pushing.start(session.trace());
        }
        session.wait()?;
        if !session.detach() {
            return Ok(ExitCode::from(2));
        }
        if let Some(mut pushing) = pushing {
            pushing.program_ended();
            pushing.finish(self.quiet);
        }
        if let Some(viewer) = viewer {
            if !self.quiet {
                note(&format!("detached from process {}", self.pid));
            }
            viewer.program_ended();
            viewer.stay(&session.trace())?;
        }
        session.finish(screen)
    }

    /// The recording of a process with defaults for all other options.
    pub(crate) fn of_process(pid: u32, recording: RecordingOptions) -> anyhow::Result<Self> {
        Ok(Self {
            recording,
            ..super::parse(vec![pid.to_string().into()])?
        })
    }

    /// Records the program while somebody looks at the trace.
    pub(crate) fn watch<T>(
        &self,
        screen: Screen,
        look: impl FnOnce(&Path, IsRunning) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let running = self.find()?;
        let mut session = Session::begin(self, &running)?;
        session.wait_for_beginning()?;
        let looked = look(&session.trace(), Box::new(running.watch()));
        if session.detach() {
            session.finish(screen)?;
        }
        looked
    }

    fn find(&self) -> anyhow::Result<Running> {
        Running::find(self.pid, Purpose::Record, self.allow_seccomp)
    }

    /// Ends a recording that was left running.
    fn end_earlier(&self, running: &Running) -> anyhow::Result<ExitCode> {
        let agent = Agent::new(running);
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
