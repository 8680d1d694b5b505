//! `heapline tree`.

use heapline_profile::reports::TreeOptions;
use heapline_text::{self as text, Screen};

use crate::question::{Json, Question};

/// Show allocations as a call tree
///
/// From the program's entry down, from allocations up (--bottom-up), or both ways from functions
/// in focus (--focus). Recursion is collapsed: a function is in a path once.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline tree trace.ctf --live peak
  heapline tree trace.ctf --bottom-up --live end
  heapline tree trace.ctf --focus 'Parser.*'
  heapline tree trace.ctf --focus Typecore.type_expect --focus Ctype.unify --min 2%")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,

    #[command(flatten)]
    options: TreeOptions,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        if self.options.details && !self.json.is_json() {
            anyhow::bail!("--details applies to JSON only; add --json");
        }
        let report = self.question.ask(&self.options)?;
        self.question.print(self.json, screen, &report, text::tree)
    }
}
