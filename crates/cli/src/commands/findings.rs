//! `heapline findings`.

use heapline_heap::reports::{FindingsOptions, findings};
use heapline_text::{self as text, Context, Screen};

use crate::question::Json;
use crate::snapshot_file::SnapshotFile;

/// Show what looks like waste in a heap snapshot
///
/// Duplicate strings, hash tables and buffers that are mostly empty, parked continuations, and what
/// finalisers and ephemerons keep alive.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline findings server.heap
  heapline findings server.heap --top 20 --json")]
pub(crate) struct Args {
    #[command(flatten)]
    file: SnapshotFile,

    #[command(flatten)]
    options: FindingsOptions,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        let report = findings(&self.file.load()?, &self.options);
        self.json.print(&report, |report| {
            text::heap::findings(report, &Context::new(screen))
        })
    }
}
