//! `heapline hotspots`.

use clap::ValueEnum;
use heapline_profile::reports::{self, HotspotOptions, SortBy};
use heapline_text::{self as text, Screen};

use crate::question::{By, Json, Look, Question};

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

    /// What a row is
    #[arg(long, value_enum, default_value_t = By::Function)]
    by: By,

    /// What rows are ordered by
    #[arg(long, value_enum, default_value_t = Sort::Allocated)]
    sort: Sort,

    /// How many rows at most
    #[arg(long, default_value_t = 20, value_name = "N")]
    rows: usize,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    json: Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// Bytes that it allocates itself
    Allocated,
    /// Bytes that are allocated while it runs
    Inclusive,
    /// Bytes alive at the peak
    Peak,
    /// Bytes alive at the end
    End,
    /// Blocks that it allocates itself
    Blocks,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        let options = HotspotOptions {
            view: self.look.view(self.by)?,
            sort: match self.sort {
                Sort::Allocated => SortBy::Allocated,
                Sort::Inclusive => SortBy::Inclusive,
                Sort::Peak => SortBy::Peak,
                Sort::End => SortBy::End,
                Sort::Blocks => SortBy::Blocks,
            },
            rows: self.rows,
            ..HotspotOptions::default()
        };
        let profile = self.question.load()?;
        let scope = self.question.scope(&profile)?;
        let report = reports::hotspots(&scope, &options);
        self.question
            .print(self.json, screen, &report, text::hotspots)
    }
}
