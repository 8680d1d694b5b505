//! The heap snapshot that a command reads.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use heapline_engine::{LoadedSnapshot, Report, SnapshotSession, shell_quote};
use heapline_heap::reports::HeapError;
use heapline_heap::{Graph, Heap};
use heapline_heapfile::{MAGIC, is_snapshot};
use heapline_text::{Context, Screen};

use crate::error::warn;
use crate::progress::Watched;
use crate::question::{Json, command_line};

/// The argument of commands that read a heap snapshot.
#[derive(Args, Clone, Debug)]
pub(crate) struct SnapshotFile {
    /// Heap snapshot to read: a .heap file
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
}

impl SnapshotFile {
    /// Loads the snapshot, and perhaps an earlier one to compare it with. There is no recording of the run.
    pub(crate) fn session(&self, against: Option<&Self>) -> anyhow::Result<SnapshotSession> {
        // The earlier one first: warnings are in the order of the arguments.
        let against = against.map(Self::loaded).transpose()?;
        Ok(SnapshotSession::new(
            self.loaded()?,
            against,
            Err(HeapError::NoRecording.to_string()),
        ))
    }

    /// Loads the snapshot for a session.
    pub(crate) fn loaded(&self) -> anyhow::Result<LoadedSnapshot> {
        Ok(LoadedSnapshot {
            path: self.path.display().to_string(),
            size: self.path.metadata().ok().map(|metadata| metadata.len()),
            heap: self.load()?,
        })
    }

    /// Prints a report on the snapshot as JSON or as text.
    pub(crate) fn print(&self, json: Json, screen: Screen, report: &Report) -> anyhow::Result<()> {
        let suggest =
            |report: &str, arguments: &[&str]| command_line(report, &self.path, "", arguments);
        let context = Context {
            screen,
            suggest: Some(&suggest),
        };
        json.print(report, |report| heapline_text::render(report, &context))
    }

    /// Loads the snapshot and computes its dominators.
    pub(crate) fn load(&self) -> anyhow::Result<Heap> {
        self.graph().map(Heap::new)
    }

    /// Loads the snapshot, and warns if it is damaged.
    pub(crate) fn graph(&self) -> anyhow::Result<Graph> {
        let name = self.path.display().to_string();
        if head::<{ MAGIC.len() }>(&self.path).is_some_and(|head| !is_snapshot(&head)) {
            anyhow::bail!(
                "{name} is not a heap snapshot; take one of a running OCaml program with heapline snapshot PID, or of a \
                 program that is recorded with heapline record --snapshot end"
            );
        }
        let file = File::open(&self.path).with_context(|| format!("cannot open {name}"))?;
        let size = file.metadata().ok().map(|metadata| metadata.len());
        let input = BufReader::with_capacity(1 << 20, Watched::new(file, size));
        let graph = Graph::read(input).with_context(|| name.clone())?;
        let lost = graph.damage().total();
        if lost > 0 {
            warn(&format!(
                "{name} is damaged: {lost} references lead to blocks that it does not have"
            ));
        }
        let (stated, found) = graph.totals();
        if stated != found {
            warn(&format!(
                "{name} is damaged: it has {} of {} blocks",
                found.blocks, stated.blocks
            ));
        }
        Ok(graph)
    }
}

/// Returns true if a file is a heap snapshot. Pipes are not looked into.
pub(crate) fn is_snapshot_file(path: &Path) -> bool {
    head::<{ MAGIC.len() }>(path).is_some_and(|head| is_snapshot(&head))
}

/// The first bytes of a regular file.
fn head<const LENGTH: usize>(path: &Path) -> Option<[u8; LENGTH]> {
    let is_file = path.metadata().ok()?.is_file();
    let mut head = [0; LENGTH];
    let mut file = File::open(path).ok().filter(|_| is_file)?;
    file.read_exact(&mut head).ok()?;
    Some(head)
}

/// The recording of a snapshot's run, by the name that the snapshot has of it: there, or beside the snapshot if both were
/// moved. `None` if it is gone.
pub(crate) fn recording_of(snapshot: &Path, named: Option<&str>) -> Option<PathBuf> {
    let named = Path::new(named?);
    let beside = snapshot.with_file_name(named.file_name()?);
    [named, &beside]
        .into_iter()
        .find(|path| path.is_file())
        .map(Path::to_owned)
}

/// Fails if a file is a heap snapshot or a program, and says what to do with it.
pub(crate) fn refuse_other_than_trace(path: &Path) -> anyhow::Result<()> {
    let name = path.display();
    if is_snapshot_file(path) {
        anyhow::bail!(
            "{name} is a heap snapshot, not a trace; use: heapline view, info, retained, dominators, why, \
             findings, diff, report or export"
        );
    }
    if head(path) == Some(*b"\x7fELF") {
        // A name without a directory is looked up in PATH.
        let program = match path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => format!("./{name}"),
            _ => name.to_string(),
        };
        anyhow::bail!(
            "{name} is a program, not a trace; record it with: heapline record -- {}",
            shell_quote(&program)
        );
    }
    Ok(())
}
