//! `heapline record`.

mod keep;
mod library;
mod others;
mod program;
mod run;
mod said;
mod snapshots;
mod started;
mod viewer;
mod wait;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, bail};
use clap::ValueEnum;
use heapline_profile::query::Size;
use heapline_recorder::tail;
use heapline_text::Screen;

use super::recording::RecordingOptions;
use super::view::Serving;
use crate::error::warn;
use keep::Keeping;
pub(super) use library::{AGENT, hash as agent_hash};
pub(super) use program::Kind;
pub(super) use said::Recorded;
use snapshots::{Snapshots, When};
pub(crate) use started::Started;
pub(super) use viewer::LiveViewer;

/// The minimum of `--max-size`: a few packets must fit.
const MIN_MAX_SIZE: f64 = 512.0 * 1024.0;

/// Record an OCaml program, or a Rust program that uses Heapline's allocator
///
/// OCaml programs need no changes: a preloaded library starts the sampler of OCaml's runtime. Native
/// programs for x86-64 Linux are supported, built with OCaml 4.11 to 4.14, or 5.3 or later. Rust
/// programs need two lines: Heapline's allocator, and a call of `heapline::trace_if_requested()` in
/// `main`. Input, output, signals and exit code of the program are unaffected.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline record -- ./server --port 8080
  heapline record -o parse.ctf --rate 1e-3 --summary -- ./parse big.json
  heapline record --rate 64KiB --max-size 1GiB -- coqc file.v
  heapline record --follow-exec -- make
  heapline record --view -- ./server --port 8080
  heapline record --keep 200MiB -o week.ctf -- ./server --port 8080
  heapline record --rate 512KiB -- target/release/my-rust-server
  heapline record --wait -- ./server --port 8080

The exit code is that of the program, 128 plus the signal number if a signal ended it, or 2 if it
was not started.")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent command-line flags"
)]
pub(crate) struct Args {
    #[command(flatten)]
    recording: RecordingOptions,

    /// Store a description in the trace
    #[arg(long, value_name = "TEXT")]
    context: Option<String>,

    /// Stop recording new blocks before the trace exceeds this size
    ///
    /// Promotions and collections of recorded blocks are still recorded, so their lifetimes are right.
    #[arg(long, value_name = "SIZE")]
    max_size: Option<Size>,

    /// Keep the trace within this size, however long the program runs
    ///
    /// Blocks that are alive and those that died lately are kept one by one; older ones are summed up in
    /// intervals of time that get longer with age. Files take at most this much on disk together, while the
    /// program runs and afterwards. At least 1MiB.
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["max_size", "follow_fork", "follow_exec", "view"])]
    keep: Option<Size>,

    /// Keep at most this many frames of a stack, the innermost ones [default: all]
    ///
    /// A frame `<deeper calls>` stands for the others. Limits the cost of stacks with tens of thousands
    /// of frames.
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u32).range(1..))]
    stack_depth: Option<u32>,

    /// Record forked processes too, each to its own file (OCaml only)
    #[arg(long)]
    follow_fork: bool,

    /// Record OCaml programs started by the program too, each to its own file
    #[arg(long)]
    follow_exec: bool,

    /// Select who gets Gc.Memprof if the program uses it too
    #[arg(long, value_enum, default_value_t = Memprof::Ours, value_name = "WHOSE")]
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
    ])]
    wait: bool,

    /// Show the trace in the browser while it is being recorded
    ///
    /// The page grows with the trace, and stays when the program has ended, until Ctrl-C.
    #[arg(long)]
    view: bool,

    #[command(flatten)]
    serving: Serving,

    /// Print the path of the library to preload, and exit
    ///
    /// Set `LD_PRELOAD` to it to record programs that are started by other programs. `MEMTRACE` sets
    /// the output file, `MEMTRACE_RATE` the rate, as with memtrace.
    #[arg(long, exclusive = true)]
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

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<ExitCode> {
        if self.print_agent {
            let path = library::path()?;
            crate::output::to_stdout(format!("{}\n", path.display()).as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        }
        if self.wait {
            return self.exec_and_wait();
        }
        let Prepared {
            mut command,
            program,
            traces,
            kind,
            mut keeping,
        } = self.prepare()?;

        let viewer = self.view.then(|| LiveViewer::bind(&self.serving));
        let mut viewer = viewer.transpose()?;
        let start = Instant::now();
        let mut snapshots = Snapshots::new(&self.snapshot, &traces.shown_prefix);
        snapshots.prepare(&mut command, kind, self.recording.force.force)?;
        let started = |pid| {
            snapshots.start(pid, traces.first(pid));
            if let Some(keeping) = &mut keeping {
                keeping.start(traces.first(pid));
            }
            if let Some(viewer) = &mut viewer {
                viewer.start(&self.serving, traces.first(pid));
            }
        };
        let ended = run::run(&mut command, started)
            .with_context(|| format!("cannot run {}", program.display()))?;
        let took = start.elapsed();
        let recorded = Recorded {
            trace: traces.first(ended.pid),
            others: traces.others(ended.pid),
            prefix: traces.shown_prefix.clone(),
            kind,
            rate: self.recording.rate,
            took,
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
        let max_size = max_size(self.max_size)?;
        let traces = Traces::new(
            self.recording.output.as_deref(),
            &program_path,
            self.recording.force.force,
        )?;
        self.set_environment(&mut command, &traces, max_size, kind)?;
        let prefix = Path::new(&traces.prefix);
        let keeping = self.keep.map(|size| Keeping::prepare(size, prefix));
        let keeping = keeping.transpose()?;
        if let Some(keeping) = &keeping {
            keeping.set_environment(&mut command);
        }
        Ok(Prepared {
            command,
            program: program_path,
            traces,
            kind,
            keeping,
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

    /// The processes that are recorded too, as the agent has them.
    fn follow(&self) -> String {
        let follow = [(self.follow_fork, "fork"), (self.follow_exec, "exec")];
        let follow = follow.iter().filter(|(wanted, _)| *wanted);
        let follow: Vec<&str> = follow.map(|(_, word)| *word).collect();
        follow.join(",")
    }

    /// Passes the settings to the agent, or to the program's own sampler: see the recorder's
    /// `settings.rs`.
    fn set_environment(
        &self,
        command: &mut Command,
        traces: &Traces,
        max_size: Option<u64>,
        kind: Kind,
    ) -> anyhow::Result<()> {
        // A Rust program may run OCaml programs that are to be recorded.
        if kind == Kind::Ocaml || self.follow_exec {
            library::preload(command)?;
        }
        command.env("HEAPLINE_PREFIX", &traces.prefix);
        command.env("HEAPLINE_RATE", self.recording.rate.0.to_string());
        let memprof = match self.memprof {
            Memprof::Ours => "ours",
            Memprof::Theirs => "theirs",
        };
        command.env("HEAPLINE_MEMPROF", memprof);
        command.env("HEAPLINE_FOLLOW", self.follow());
        if let Some(first) = &traces.first {
            command.env("HEAPLINE_TRACE", first);
        }
        if let Some(context) = &self.context {
            command.env("HEAPLINE_CONTEXT", context);
        }
        if let Some(depth) = self.stack_depth {
            command.env("HEAPLINE_STACK_DEPTH", depth.to_string());
        }
        if let Some(max_size) = max_size {
            command.env("HEAPLINE_MAX_SIZE", max_size.to_string());
        }
        Ok(())
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
}

/// The bytes of `--max-size`.
pub(super) fn max_size(size: Option<Size>) -> anyhow::Result<Option<u64>> {
    let Some(size) = size else {
        return Ok(None);
    };
    let bytes = size.bytes(8.0);
    if bytes < MIN_MAX_SIZE {
        bail!("--max-size must be at least 512KiB");
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is positive, and a cast saturates"
    )]
    Ok(Some(bytes as u64))
}

/// The names of the output files.
struct Traces {
    /// The trace of the first process, if given by `--output`.
    first: Option<PathBuf>,
    /// Prefix of the other traces, which are named `PREFIX.PID.ctf`.
    prefix: OsString,
    /// The prefix relative to the current directory, for messages.
    shown_prefix: PathBuf,
    /// Files that matched the prefix before the program ran.
    before: Vec<PathBuf>,
}

impl Traces {
    fn new(output: Option<&Path>, program: &Path, force: bool) -> anyhow::Result<Self> {
        let shown_prefix = match output {
            Some(output) => {
                refuse_compressed(output)?;
                make_way(output, force)?;
                match output.extension() {
                    Some(extension) if extension == "ctf" => output.with_extension(""),
                    _ => output.to_owned(),
                }
            }
            None => program.file_name().unwrap_or_default().into(),
        };
        let mut traces = Self {
            first: output.map(std::path::absolute).transpose()?,
            prefix: std::path::absolute(&shown_prefix)?.into(),
            shown_prefix,
            before: Vec::new(),
        };
        if output.is_none() {
            let name = traces.numbered(std::process::id(), "");
            make_way(&name, true)?;
        }
        traces.before = traces.matching();
        Ok(traces)
    }

    /// The trace of the program itself.
    fn first(&self, pid: u32) -> PathBuf {
        let shown = self.shown_first();
        shown.unwrap_or_else(|| self.numbered(pid, ""))
    }

    fn shown_first(&self) -> Option<PathBuf> {
        let first = self.first.as_deref()?;
        let folder = std::env::current_dir().ok()?;
        Some(first.strip_prefix(folder).unwrap_or(first).to_owned())
    }

    /// The traces of other processes.
    fn others(&self, pid: u32) -> Vec<PathBuf> {
        let first = self.first(pid);
        let mut others = self.matching();
        others.retain(|path| *path != first && !self.before.contains(path));
        others.sort();
        others
    }

    fn numbered(&self, pid: u32, more: &str) -> PathBuf {
        let mut name = self.shown_prefix.clone().into_os_string();
        name.push(format!(".{pid}{more}.ctf"));
        name.into()
    }

    /// Existing files named `PREFIX.PID.ctf`.
    fn matching(&self) -> Vec<PathBuf> {
        let parent = self.shown_prefix.parent().unwrap_or(Path::new(""));
        let start = self.shown_prefix.file_name().unwrap_or_default();
        let start = format!("{}.", start.to_string_lossy());
        let folder = if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let is_one = |name: &str| {
            let number = name
                .strip_prefix(&start)
                .and_then(|rest| rest.strip_suffix(".ctf"));
            number.is_some_and(|n| {
                !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit() || b == b'-')
            })
        };
        entries
            .map(|entry| entry.file_name())
            .filter(|name| is_one(&name.to_string_lossy()))
            .map(|name| parent.join(name))
            .collect()
    }
}

pub(super) fn refuse_compressed(path: &Path) -> anyhow::Result<()> {
    let extension = path.extension().unwrap_or_default();
    if extension == "gz" || extension == "zst" {
        bail!(
            "cannot write {}: recordings are uncompressed, so that nothing is lost when the program \
             is killed; record to {}, and compress it afterwards",
            path.display(),
            path.with_extension("").display()
        );
    }
    Ok(())
}

/// Removes an existing file if that is allowed, and checks that the file can be written.
pub(super) fn make_way(path: &Path, force: bool) -> anyhow::Result<()> {
    let shown = path.display();
    let cannot_write = || format!("cannot write {shown}");
    if let Some(pid) = tail::owner(path).with_context(cannot_write)? {
        bail!("process {pid} is recording to {shown}; wait for its end, or give another file");
    }
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            bail!("{shown} is not a regular file; give a file to write to")
        }
        Ok(_) if !force => bail!("{shown} already exists; use --force to overwrite it"),
        Ok(_) => fs::remove_file(path).with_context(|| format!("cannot overwrite {shown}"))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(cannot_write),
    }
    File::create_new(path)
        .and_then(|_| fs::remove_file(path))
        .and_then(|()| tail::probe(path))
        .with_context(cannot_write)
}
