//! `heapline record`.

mod keep;
mod library;
mod others;
mod program;
mod pushing;
mod run;
mod said;
mod snapshots;
mod started;
mod traces;
mod viewer;
mod wait;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use clap::ValueEnum;
use heapline_profile::query::Size;
use heapline_recorder::settings::{self, Follow, Output, RecordingSettings};
use heapline_text::Screen;

use super::recording::{self, RecordingOptions, TraceOptions};
use super::view::Serving;
use crate::error::warn;
use keep::Keeping;
pub(super) use library::{AGENT, hash as agent_hash};
pub(super) use program::Kind;
pub(super) use pushing::PushOptions;
pub(super) use said::Recorded;
use snapshots::{Snapshots, When};
pub(crate) use started::Started;
use traces::Traces;
pub(super) use traces::{make_way, refuse_compressed};
pub(super) use viewer::LiveViewer;

/// Record an OCaml program, or a Rust program that uses Heapline's allocator
///
/// OCaml programs need no changes: a preloaded library starts the sampler of OCaml's runtime. Native
/// programs for x86-64 and arm64 Linux are supported, built with OCaml 4.11 to 4.14, or 5.3 to 5.5.
/// Rust programs need two lines: Heapline's allocator, and a call of `heapline::trace_if_requested()`
/// in `main`. Input, output, signals and exit code of the program are unaffected.
#[derive(Debug, clap::Args)]
#[command(
    mut_args(recording::in_long_help),
    after_help = "\
Examples:
  heapline record -- ./server --port 8080
  heapline record -o parse.ctf --rate 1e-3 --summary -- ./parse big.json
  heapline record --rate 64KiB --max-size 1GiB -- coqc file.v
  heapline record --follow-exec -- make
  heapline record --view -- ./server --port 8080
  heapline record --keep 200MiB -o week.ctf -- ./server --port 8080
  heapline record --push otlp=http://localhost:4318 -- ./server --port 8080
  heapline record --rate 512KiB -- target/release/my-rust-server
  heapline record --wait -- ./server --port 8080

The exit code is that of the program, 128 plus the signal number if a signal ended it, or 2 if it
was not started."
)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent command-line flags"
)]
pub(crate) struct Args {
    #[command(flatten)]
    recording: RecordingOptions,

    #[command(flatten)]
    trace: TraceOptions,

    /// Keep the trace within this size, however long the program runs
    ///
    /// Blocks that are alive and those that died lately are kept one by one; older ones are summed up in
    /// intervals of time that get longer with age. Files take at most this much on disk together, while the
    /// program runs and afterwards. At least 1MiB.
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["max_size", "follow_fork", "follow_exec", "view", "push"])]
    keep: Option<Size>,

    /// Record forked processes too, each to its own file (OCaml only)
    #[arg(long)]
    follow_fork: bool,

    /// Record OCaml programs started by the program too, each to its own file
    #[arg(long)]
    follow_exec: bool,

    /// Leave the arguments of programs out of their traces, which --follow-exec stores
    #[arg(long, requires = "follow_exec", hide_short_help = true)]
    no_arguments: bool,

    /// Select who gets Gc.Memprof if the program uses it too
    #[arg(long, value_enum, default_value_t = Memprof::Ours, value_name = "WHOSE", hide_short_help = true)]
    memprof: Memprof,

    /// Take heap snapshots: `end`, `10s`, `every 60s`, `live > 1GiB`, `limit 90%`, `signal USR2`
    ///
    /// At the end of the program; after a time; again and again; when the heap exceeds a size; when the control
    /// group of the program has used so much of its memory; when the program gets a signal, USR1 or USR2, that it
    /// does not handle itself. Can be given more than once. The snapshots are
    /// NAME.1.heap and so on, beside the trace, and know which sampled blocks they have.
    #[arg(long, value_name = "WHEN", conflicts_with_all = ["wait", "keep", "follow_fork", "follow_exec"])]
    snapshot: Vec<When>,

    /// Print the summary of the trace at the end
    #[arg(long)]
    summary: bool,

    /// Print only warnings and errors at the end
    #[arg(short, long, conflicts_with = "summary")]
    quiet: bool,

    /// Record nothing until `heapline attach`
    ///
    /// The program runs in place of `heapline record`, as the same process, and waits for `heapline attach
    /// PID` of the same user or root. Attaching then needs no permission to trace the program, and does not
    /// stop it. With --follow-fork and --follow-exec, processes that it starts wait too.
    #[arg(long, conflicts_with_all = [
        "output", "rate", "context", "max_size", "stack_depth", "memprof", "summary", "view", "port", "listen", "no_browser", "force",
        "push",
    ], hide_short_help = true)]
    wait: bool,

    /// Show the trace in the browser while it is being recorded
    ///
    /// The page grows with the trace, and stays when the program has ended, until Ctrl-C.
    #[arg(long)]
    view: bool,

    #[command(flatten)]
    serving: Serving,

    #[command(flatten)]
    push: PushOptions,

    /// Print the path of the library to preload, and exit
    ///
    /// Set `LD_PRELOAD` to it to record programs that are started by other programs. `MEMTRACE` sets
    /// the output file, `MEMTRACE_RATE` the rate, as with memtrace.
    #[arg(long, exclusive = true, hide_short_help = true)]
    print_agent: bool,

    /// Program to record, and its arguments
    #[arg(
        required_unless_present = "print_agent",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    command: Vec<OsString>,
}

/// The owner of the runtime's sampler.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Memprof {
    /// Heapline: the program's Gc.Memprof.start succeeds, but its callbacks are not called
    Ours,
    /// The program: the recording ends when it starts its own sampler
    Theirs,
}

impl From<Memprof> for settings::Memprof {
    fn from(memprof: Memprof) -> Self {
        match memprof {
            Memprof::Ours => Self::Ours,
            Memprof::Theirs => Self::Theirs,
        }
    }
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<ExitCode> {
        if self.print_agent {
            let path = library::path()?;
            crate::output::to_stdout(format!("{}\n", path.display()).as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut pushing = self.push.prepare()?;
        if self.wait {
            return self.exec_and_wait();
        }
        let Prepared {
            mut command,
            program,
            traces,
            kind,
            mut keeping,
            mut snapshots,
        } = self.prepare()?;

        let viewer = self.view.then(|| LiveViewer::bind(&self.serving));
        let mut viewer = viewer.transpose()?;
        self.push.hide_credentials(&mut command);
        let started = |pid| {
            snapshots.start(pid, traces.first(pid));
            if let Some(keeping) = &mut keeping {
                keeping.start(traces.first(pid));
            }
            if let Some(viewer) = &mut viewer {
                viewer.start(&self.serving, traces.first(pid));
            }
            if let Some(pushing) = &mut pushing {
                pushing.start(traces.first(pid));
            }
        };
        let ended = run::run(&mut command, started)
            .with_context(|| format!("cannot run {}", program.display()))?;
        if let Some(pushing) = &mut pushing {
            pushing.program_ended();
        }
        let recorded = Recorded {
            trace: traces.first(ended.pid),
            others: traces.others(ended.pid),
            prefix: traces.shown_prefix.clone(),
            kind,
            rate: self.recording.rate,
            cpu_time: ended.cpu_time,
            became: ended.became.clone().filter(|_| !self.follow_exec),
        };
        let summary = self.summary.then_some(screen);
        let said = match &mut keeping {
            Some(keeping) => recorded.say_kept(keeping, self.quiet, summary),
            None => recorded.say(self.quiet, summary),
        };
        // The program has run: its exit code counts, whatever became of the recording.
        if let Err(error) = said {
            warn(&format!("{error:#}"));
        }
        snapshots.finish(self.quiet);
        if let Some(pushing) = pushing {
            pushing.finish(self.quiet);
        }
        if let Some(viewer) = viewer {
            viewer.program_ended();
            viewer.stay(&recorded.trace)?;
        }
        Ok(ended.exit_code())
    }

    /// The recording of a program with defaults for all other options.
    pub(crate) fn of_program(
        command: Vec<OsString>,
        recording: RecordingOptions,
    ) -> anyhow::Result<Self> {
        let mut arguments: Vec<OsString> = vec!["--".into()];
        arguments.extend(command);
        Ok(Self {
            recording,
            ..super::parse(arguments)?
        })
    }

    /// Starts the program, and does not wait for it.
    pub(crate) fn start(self) -> anyhow::Result<Started> {
        let prepared = self.prepare()?;
        Started::new(self, prepared)
    }

    /// Checks that the program can be recorded, and sets it up.
    fn prepare(&self) -> anyhow::Result<Prepared> {
        let (mut command, program_path, kind) = self.command()?;
        let traces = Traces::new(
            self.recording.output.as_deref(),
            &program_path,
            self.recording.force.force,
        )?;
        let prefix = Path::new(&traces.prefix);
        let keeping = self.keep.map(|size| Keeping::prepare(size, prefix));
        let keeping = keeping.transpose()?;
        let first = match &keeping {
            Some(keeping) => Some(keeping.raw.clone()),
            None => traces.first.clone(),
        };
        let output = Output::New {
            first,
            prefix: traces.prefix.clone(),
        };
        let mut settings = RecordingSettings {
            max_allocated: keeping.as_ref().map(Keeping::max_allocated),
            follow: self.follow(),
            memprof: self.memprof.into(),
            ..self.trace.settings(output, self.recording.rate)
        };
        let snapshots = Snapshots::new(&self.snapshot, &traces.shown_prefix);
        snapshots.prepare(&mut settings, kind, self.recording.force.force)?;
        // A Rust program may run OCaml programs that are to be recorded.
        if kind == Kind::Ocaml || self.follow_exec {
            library::preload(&mut command)?;
        }
        settings.set_environment(&mut command);
        Ok(Prepared {
            command,
            program: program_path,
            traces,
            kind,
            keeping,
            snapshots,
        })
    }

    /// The program with its arguments, if it is of a kind that can be recorded.
    fn command(&self) -> anyhow::Result<(Command, PathBuf, Kind)> {
        let [program, arguments @ ..] = &self.command[..] else {
            bail!("give a program to record");
        };
        let path = program::find(Path::new(program))?;
        let kind = program::check(&path, self.follow_exec)?;
        let mut command = Command::new(&path);
        command.args(arguments);
        std::os::unix::process::CommandExt::arg0(&mut command, program);
        Ok((command, path, kind))
    }

    /// The processes that are recorded too.
    fn follow(&self) -> Follow {
        Follow {
            fork: self.follow_fork,
            exec: self.follow_exec,
            hide_arguments: self.no_arguments,
        }
    }
}

/// A program that can be recorded.
struct Prepared {
    command: Command,
    program: PathBuf,
    traces: Traces,
    kind: Kind,
    /// The history, if it is kept within a size.
    keeping: Option<Keeping>,
    snapshots: Snapshots,
}
