//! `heapline snapshot`.

mod finish;
mod names;
mod room;

pub(super) use finish::{Finished, finish};
pub(super) use room::used_share;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use heapline_engine::shell_path;
use heapline_recorder::control::FileView;
use heapline_recorder::settings::{Fold, SnapshotSettings};
use heapline_text::units::bytes;
use rustix::fs::{FlockOperation, flock};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::attach::agent::{Agent, State};
use super::attach::place::Place;
use super::attach::program::{Purpose, Running};
use crate::error::note;
use crate::output::Force;

/// The time between two looks at the program.
const INTERVAL: Duration = Duration::from_millis(10);

/// The time after which the user is told what is waited for.
const SOON: Duration = Duration::from_secs(1);

/// Take a snapshot of the heap of a running OCaml program
///
/// The snapshot has all blocks that can be reached, and what holds them: `heapline retained` shows which
/// modules and functions hold most memory, `heapline why` shows why something is still alive. The program
/// needs no preparation, and is stopped for some milliseconds while the system copies it; the copy writes
/// the snapshot. Memory that the program changes meanwhile is needed twice.
///
/// For native programs for x86-64 or arm64 Linux with glibc, built with OCaml 4.11 to 4.14, or 5.3 to 5.5.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline snapshot 4711
  heapline snapshot $(pidof server) -o before.heap
  heapline retained before.heap")]
pub(crate) struct Args {
    /// Process to take a snapshot of
    #[arg(value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: i32,

    /// Write the snapshot to this file [default: PROGRAM.PID.heap]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Stop the program until the snapshot is written, instead of copying it
    ///
    /// For programs that are too large for a copy. A heap that was damaged by C code can crash the program.
    #[arg(long)]
    in_place: bool,

    /// Fold list cells and small blocks into the blocks that hold them
    ///
    /// The file is smaller, and takes less memory to read. All amounts are exact; only blocks with a single
    /// reference are folded, and have no address any more.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    fold: FoldWhen,

    /// Take a snapshot of a program under a seccomp filter, which might kill it
    #[arg(long)]
    allow_seccomp: bool,

    /// Print only warnings and errors
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    force: Force,
}

/// Which snapshots are folded.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum FoldWhen {
    /// Snapshots of programs that use more than 1 GiB
    Auto,
    /// All snapshots
    Always,
    /// No snapshot
    Never,
}

impl From<FoldWhen> for Fold {
    fn from(when: FoldWhen) -> Self {
        match when {
            FoldWhen::Auto => Self::Auto,
            FoldWhen::Always => Self::Always,
            FoldWhen::Never => Self::Never,
        }
    }
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
        }
        let (file, finished) = self.take(&interrupted)?;
        if !self.quiet {
            say(&file, &finished);
        }
        Ok(())
    }

    /// A snapshot of a process with defaults for all other options.
    pub(super) fn of_process(pid: u32, output: &Path) -> anyhow::Result<Self> {
        let arguments = vec![pid.to_string().into(), "--quiet".into()];
        Ok(Self {
            output: Some(output.to_owned()),
            ..super::parse(arguments)?
        })
    }

    /// Takes the snapshot.
    pub(super) fn take(&self, interrupted: &AtomicBool) -> anyhow::Result<(PathBuf, Finished)> {
        let pid = self.pid;
        let running = Running::find(pid, Purpose::Snapshot, self.allow_seccomp)?;
        if !self.in_place {
            room::check(pid.unsigned_abs())?;
        }
        let agent = Agent::new(&running);
        let place = Place::new(&running, self.output.as_deref(), "heap", self.force.force)?;
        let settings = SnapshotSettings {
            file: place.inside.clone(),
            in_place: self.in_place,
            fold: self.fold.into(),
        };
        let taken = agent.snapshot(&settings).and_then(|_| {
            let written = self.wait(&running, &agent, &place, interrupted);
            // Also of one that failed.
            if running.is_alive() {
                let _ = agent.end_snapshot();
            }
            written
        });
        if let Err(error) = taken {
            place.discard();
            return Err(error).with_context(|| format!("cannot take a snapshot of process {pid}"));
        }
        let file = place.collect()?;
        // The way to the files that the program sees.
        let root = match running.files() {
            Ok(files) if files.is_same(&FileView::of("self")?) => PathBuf::from("/"),
            _ => running.root(),
        };
        let finished = finish(&file, &root)
            .with_context(|| format!("cannot take a snapshot of process {pid}"))
            .inspect_err(|_| drop(fs::remove_file(&file)))?;
        Ok((file, finished))
    }

    /// Waits until the snapshot is written.
    fn wait(
        &self,
        running: &Running,
        agent: &Agent<'_>,
        place: &Place,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<()> {
        let start = Instant::now();
        let mut has_said = self.quiet;
        loop {
            match agent.snapshot_state() {
                State::Recording => break,
                State::Failed(message) => bail!("{message}"),
                _ if !running.is_alive() => bail!("the program has ended"),
                State::Idle | State::Armed | State::Gone => {}
            }
            if interrupted.load(Ordering::Relaxed) {
                bail!("interrupted");
            }
            if !has_said && start.elapsed() > SOON {
                has_said = true;
                note("the snapshot is taken when the program next runs OCaml code");
            }
            thread::sleep(INTERVAL);
        }
        let file = place.open().context("cannot open the snapshot")?;
        wait_for_writer(&file, interrupted)
    }
}

/// Waits until the snapshot is not written any more: whoever writes it has locked it.
pub(super) fn wait_for_writer(file: &File, interrupted: &AtomicBool) -> anyhow::Result<()> {
    while flock(file, FlockOperation::NonBlockingLockShared).is_err() {
        if interrupted.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        thread::sleep(INTERVAL);
    }
    Ok(())
}

/// Says where a snapshot is.
pub(super) fn say(file: &Path, finished: &Finished) {
    let path = file.to_string_lossy();
    note(&format!(
        "wrote {path} ({}); the program was stopped for {:.1} ms; next: heapline retained {}",
        bytes(finished.size as f64),
        finished.stopped.as_secs_f64() * 1e3,
        shell_path(&path)
    ));
}
