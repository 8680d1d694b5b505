//! `heapline dataset check`.

use std::process::ExitCode;

use heapline_dataset::{Dataset, text};

use super::Address;
use crate::output::to_stdout;

/// Check that all runs of a dataset are complete and consistent; exit with code 1 if not
///
/// Reads all tables. Adds that are under way do not disturb it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline dataset check profiles
  heapline dataset check profiles --repair")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) address: Address,

    /// Remove what adds that were killed left behind
    #[arg(long)]
    repair: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let dataset = Dataset::open(self.address.dataset)?;
        let verdict = dataset.check()?;
        if self.repair {
            dataset.remove_leftovers(&verdict.leftovers)?;
        }
        let text = text::verdict(&verdict, self.repair);
        to_stdout(text.as_bytes())?;
        Ok(ExitCode::from(u8::from(!verdict.is_good(self.repair))))
    }
}
