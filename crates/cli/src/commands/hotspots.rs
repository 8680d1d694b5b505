//! `heapline hotspots`.

use heapline_profile::reports::HotspotOptions;
use heapline_text::{self as text, Screen};

use crate::question::{Json, Question};

/// Show where memory is allocated or alive, as a table
///
/// A row is a function, unless --by says otherwise. `allocated` is what it allocates itself,
/// `with callees` what is allocated while it runs; `at peak` and `at end` are what is alive then of
/// what it allocated itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline hotspots trace.ctf
  heapline hotspots trace.ctf --by module --sort end
  heapline hotspots trace.ctf --where 'live at peak and size >= 64KiB' --by site")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,

    #[command(flatten)]
    options: HotspotOptions,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        let report = self.question.ask(&self.options)?;
        self.question
            .print(self.json, screen, &report, text::hotspots)
    }
}
