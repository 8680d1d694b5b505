//! The heap snapshot that a command reads.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use heapline_heap::Heap;
use heapline_heapfile::{MAGIC, is_snapshot};

use crate::error::warn;
use crate::progress::Watched;
use crate::question::command_line;

/// The argument of commands that read a heap snapshot.
#[derive(Args, Clone, Debug)]
pub(crate) struct SnapshotFile {
    /// Heap snapshot to read: a .heap file
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
}

impl SnapshotFile {
    /// Loads the snapshot and computes its dominators.
    pub(crate) fn load(&self) -> anyhow::Result<Heap> {
        let name = self.path.display().to_string();
        let file = File::open(&self.path).with_context(|| format!("cannot open {name}"))?;
        let size = file.metadata().ok().map(|metadata| metadata.len());
        let input = BufReader::with_capacity(1 << 20, Watched::new(file, size));
        let heap = Heap::read(input).with_context(|| name.clone())?;
        let lost = heap.graph().damage().total();
        if lost > 0 {
            warn(&format!(
                "{name} is damaged: {lost} references lead to blocks that it does not have"
            ));
        }
        let (stated, found) = heap.graph().totals();
        if stated != found {
            warn(&format!(
                "{name} is damaged: it has {} of {} blocks",
                found.blocks, stated.blocks
            ));
        }
        Ok(heap)
    }

    /// The command line of another report on the same snapshot.
    pub(crate) fn suggest(&self, report: &str, arguments: &[&str]) -> String {
        command_line(report, &self.path, "", arguments)
    }
}

/// Returns true if a file is a heap snapshot. Pipes are not looked into.
pub(crate) fn is_snapshot_file(path: &Path) -> bool {
    let head = || {
        let is_file = path.metadata().ok()?.is_file();
        let mut head = [0; MAGIC.len()];
        let mut file = File::open(path).ok().filter(|_| is_file)?;
        file.read_exact(&mut head).ok()?;
        Some(head)
    };
    head().is_some_and(|head| is_snapshot(&head))
}

/// Fails if a file is a heap snapshot, which is no trace.
pub(crate) fn refuse_snapshot(path: &Path) -> anyhow::Result<()> {
    if is_snapshot_file(path) {
        anyhow::bail!(
            "{} is a heap snapshot, not a trace; use: heapline retained, why, findings, diff or export",
            path.display()
        );
    }
    Ok(())
}
