//! `heapline summary`.

use heapline_profile::reports::SummaryOptions;
use heapline_text::{self as text, Screen};

use crate::question::{Json, Question};

/// Show the totals, the peak, and the five lists that matter
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline summary trace.ctf
  heapline summary trace.ctf --by function --rows 10
  heapline summary trace.ctf --where 'inside \"Parser.*\"' --json")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,

    #[command(flatten)]
    options: SummaryOptions,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        let report = self.question.ask(&self.options)?;
        self.question
            .print(self.json, screen, &report, text::summary)
    }
}
