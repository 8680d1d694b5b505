//! `heapline dataset check`.

use std::process::ExitCode;

use heapline_dataset::Dataset;
use heapline_text::units;

use super::{Address, line};
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
        let mut text = String::new();
        for problem in &verdict.problems {
            text += &line(&format!("{}: {}", problem.path.display(), problem.reason));
        }
        if self.repair {
            dataset.remove_leftovers(&verdict.leftovers)?;
        }
        let leftover = if self.repair {
            "removed: left by an add that was killed"
        } else {
            "left by an add that was killed; remove it with --repair"
        };
        for path in &verdict.leftovers {
            text += &line(&format!("{}: {leftover}", path.display()));
        }
        let is_good = verdict.problems.is_empty() && (self.repair || verdict.leftovers.is_empty());
        let runs = units::plural(verdict.runs as u64, "run");
        let problems = units::plural(verdict.problems.len() as u64, "problem");
        let under_way = match verdict.under_way {
            0 => String::new(),
            n => format!(", {} under way", units::plural(n as u64, "add")),
        };
        text += &line(&format!("{runs}, {problems}{under_way}"));
        to_stdout(text.as_bytes())?;
        Ok(ExitCode::from(u8::from(!is_good)))
    }
}
