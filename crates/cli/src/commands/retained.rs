//! `heapline retained`.

use heapline_heap::reports::{RetainedOptions, retained};
use heapline_text::{self as text, Screen};

use crate::question::Json;
use crate::snapshot_file::SnapshotFile;

/// Show what keeps memory alive, by what would be freed with it
///
/// A row retains what can only be reached through it: it would be freed with the row. `reached` is the
/// memory whose shortest path from a root goes through the row, also if others reach it too. `own` is
/// the value itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline retained server.heap
  heapline retained server.heap --by module --top 5
  heapline retained server.heap --at 'Cache.table > Hashtbl.t'
  heapline retained server.heap --by closure --json")]
pub(crate) struct Args {
    #[command(flatten)]
    file: SnapshotFile,

    #[command(flatten)]
    options: RetainedOptions,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        let report = retained(&self.file.load()?, &self.options)?;
        let suggest = |report: &str, arguments: &[&str]| self.file.suggest(report, arguments);
        let context = text::Context {
            screen,
            suggest: Some(&suggest),
        };
        self.json
            .print(&report, |report| text::heap::retained(report, &context))
    }
}
