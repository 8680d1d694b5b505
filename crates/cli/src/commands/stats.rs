//! `heapline stats`.

use clap::ValueEnum;
use heapline_profile::reports::{self, StatsOptions};
use heapline_text::{self as text, Screen};

use crate::question::{Json, Question};

/// Show sizes and lifetimes: histograms, quantiles, phases
///
/// Each sampled block counts for as many as it stands for. Blocks that were alive at the end count
/// as living at least as long as they were seen.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline stats trace.ctf
  heapline stats trace.ctf --where 'heap = major'
  heapline stats trace.ctf --linear --bins 40
  heapline stats trace.ctf --compat alloc-stats")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,

    #[command(flatten)]
    options: StatsOptions,

    /// Print the numbers of another program, mistakes included
    #[arg(long, value_enum)]
    compat: Option<Compat>,

    #[command(flatten)]
    json: Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compat {
    /// ocaml-alloc-stats
    AllocStats,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        if self.compat.is_some() {
            if !self.question.filter.query().is_all() {
                anyhow::bail!("ocaml-alloc-stats has no filters: --where goes without --compat");
            }
            let profile = self.question.load()?;
            heapline_engine::check_lifetimes("sizes and lifetimes", &profile)?;
            let report = reports::alloc_stats(&profile);
            self.question.check_read(&profile)?;
            return self
                .question
                .print(self.json, screen, &report, text::alloc_stats);
        }
        let report = self.question.ask(&self.options)?;
        self.question.print(self.json, screen, &report, text::stats)
    }
}
