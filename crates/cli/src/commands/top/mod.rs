//! `heapline top`.

#[cfg(recording)]
mod attached;
mod follow;
#[cfg(recording)]
mod program;

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use heapline_engine::Filter;
use heapline_profile::{GroupBy, Look};
use heapline_text::Screen;
use heapline_tui::{App, Choices, Left, Settings, TerminalOptions, Theme, Worker, WorkerOptions};

use super::rate::Rate;
use super::recording::RecordingOptions;
use crate::candidates::watchable;
use crate::input::Reading;
use crate::process;
#[cfg(recording)]
pub(super) use attached::attached;
use follow::Follower;
#[cfg(recording)]
pub(super) use follow::IsRunning;

/// Watch memory in the terminal: of a running program, or of a finished trace
///
/// Shows what is live now, what grew, and the allocation rate, as a table, a call tree and a
/// timeline. Of a finished trace or a Spacetime profile, Left and Right move between moments. F1
/// shows all keys.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline top trace.ctf
  heapline top 4711                     a process; records it if nobody does
  heapline top -- ./server --port 8080  start and record a program
  heapline top trace.ctf --by module --where 'size >= 64KiB'")]
pub(crate) struct Args {
    /// Trace to read, or process to watch
    ///
    /// A process that is not being recorded is recorded until top is left, as `heapline attach` does.
    #[arg(value_name = "TRACE|PID")]
    subject: Option<PathBuf>,

    /// Group by
    #[arg(long, value_enum, default_value_t = GroupBy::Function)]
    by: GroupBy,

    /// Read a growing trace at this interval, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,

    /// Use the mouse to select and scroll; the terminal then no longer selects text with it
    #[arg(long)]
    mouse: bool,

    #[command(flatten)]
    filter: Filter,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    recording: RecordingOptions,

    /// Program to start and record, and its arguments
    ///
    /// Its output is written to PROGRAM.PID.out.
    #[arg(last = true, value_name = "PROGRAM", conflicts_with = "subject")]
    command: Vec<OsString>,
}

/// Parses a number of seconds.
fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok();
    seconds
        .filter(|seconds| (0.1..=3600.0).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "expected a number of seconds from 0.1 to 3600".to_owned())
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<ExitCode> {
        if self.subject.is_none() && self.command.is_empty() {
            bail!(choices());
        }
        check_terminal()?;
        match &self.subject {
            Some(subject) => {
                let trace = match process::id(subject) {
                    Some(pid) => match process::find_trace(pid)? {
                        Some(trace) => trace,
                        None => return self.attach(pid, screen),
                    },
                    None => subject.clone(),
                };
                self.check_not_recording(&trace)?;
                let input = self.reading.input(&trace);
                let follower = Follower::open(input, self.filter.keep_recursion)?;
                self.show(follower, screen, false).map(exit_code)
            }
            None => self.start(screen),
        }
    }

    /// Refuses options of a recording if there is none to start.
    fn check_not_recording(&self, trace: &Path) -> anyhow::Result<()> {
        let RecordingOptions { output, rate, .. } = &self.recording;
        if output.is_some() || *rate != Rate::DEFAULT {
            bail!(
                "--output and --rate are for programs that top records; it only reads {}",
                trace.display()
            );
        }
        Ok(())
    }

    /// Shows a trace until the user leaves.
    fn show(&self, follower: Follower, screen: Screen, is_own: bool) -> anyhow::Result<Left> {
        let settings = Settings {
            file: follower.name(),
            theme: Theme {
                has_colors: has_colors(),
                is_ascii: screen.is_ascii(),
            },
            is_own_program: is_own,
        };
        let choices = Choices {
            by: self.by,
            query: self.query(),
            look: self.look.clone(),
            estimator: self.filter.estimator,
            keep_recursion: self.filter.keep_recursion,
            ..Choices::default()
        };
        let worker = WorkerOptions {
            interval: self.interval,
            estimator: self.filter.estimator,
            start_at: self.filter.live.clone(),
        };
        let worker = Worker::start(follower, worker);
        let options = TerminalOptions { mouse: self.mouse };
        heapline_tui::run(&mut App::new(settings, choices), &worker, options)
            .context("cannot use the terminal")
    }

    /// The filter without its moment, which can be changed.
    fn query(&self) -> heapline_profile::Query {
        let filter = Filter {
            live: None,
            ..self.filter.clone()
        };
        filter.query()
    }

    #[cfg(recording)]
    fn start(&self, screen: Screen) -> anyhow::Result<ExitCode> {
        program::watch(self, screen)
    }

    #[cfg(recording)]
    fn attach(&self, pid: u32, screen: Screen) -> anyhow::Result<ExitCode> {
        attached::watch(self, pid, screen)
    }

    #[cfg(not(recording))]
    #[expect(
        clippy::unused_self,
        reason = "same signature as in builds with recording"
    )]
    fn attach(&self, pid: u32, _screen: Screen) -> anyhow::Result<ExitCode> {
        process::trace_of(pid).map(|_| ExitCode::SUCCESS)
    }

    #[cfg(not(recording))]
    fn start(&self, _screen: Screen) -> anyhow::Result<ExitCode> {
        let _ = &self.recording.force;
        bail!(
            "this heapline cannot record programs (`heapline record` says why); \
             give a trace in place of {}",
            self.command[0].display()
        )
    }
}

/// Processes that are listed.
const LISTED: usize = 10;

/// The error if nothing was given to be shown.
fn choices() -> String {
    let mut message =
        "give a trace, a process or a program: top trace.ctf, top PID, top -- ./program".to_owned();
    let processes = watchable("");
    let listed = processes.iter().take(LISTED);
    let listed: Vec<String> = listed
        .map(|(pid, name)| format!("{pid} ({name})"))
        .collect();
    if !listed.is_empty() {
        message.push_str("; processes: ");
        message.push_str(&listed.join(", "));
    }
    message
}

/// Fails if there is no terminal to draw on.
fn check_terminal() -> anyhow::Result<()> {
    if !io::stdout().is_terminal() {
        bail!("top needs a terminal; for pipes and logs use: heapline summary --follow TRACE");
    }
    let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    if is_dumb && env::var_os("INSIDE_EMACS").is_some() {
        bail!("the shell of Emacs is no terminal; use: heapline summary --follow TRACE");
    }
    Ok(())
}

/// Returns true if the terminal has colours and the user wants them.
fn has_colors() -> bool {
    if env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        return false;
    }
    if cfg!(windows) {
        return true;
    }
    let term = env::var("TERM").unwrap_or_default();
    !(term.is_empty() || term == "dumb" || term.starts_with("vt") || term.ends_with("-m"))
}

/// The exit code after the user, or a signal, has left the screen.
fn exit_code(left: Left) -> ExitCode {
    match left {
        Left::Quit | Left::Kill => ExitCode::SUCCESS,
        Left::Signal(signal) => end_by(signal),
    }
}

/// Ends this process as a signal does.
fn end_by(signal: i32) -> ExitCode {
    #[cfg(unix)]
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}
