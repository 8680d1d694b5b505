//! `heapline summary`.

use heapline_profile::reports;
use heapline_text::{self as text, Screen};

use crate::question::{By, Json, Look, Question};

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

    /// What the lists are of
    #[arg(long, value_enum, default_value_t = By::Site)]
    by: By,

    /// Rows of each list
    #[arg(long, default_value_t = 5, value_name = "N")]
    rows: usize,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        let view = self.look.view(self.by)?;
        let profile = self.question.load()?;
        let scope = self.question.scope(&profile)?;
        let report = reports::summary(&scope, &view, self.rows);
        self.question
            .print(self.json, screen, &report, text::summary)
    }
}
