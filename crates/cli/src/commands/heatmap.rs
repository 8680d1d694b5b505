//! `heapline heatmap`.

use heapline_profile::reports::{self, HeatmapOptions};
use heapline_text::{self as text, Screen};

use crate::question::{Json, Question};

/// Show when blocks were allocated by how long they lived
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline heatmap trace.ctf
  heapline heatmap trace.ctf --where 'inside \"Cache.*\"' --times 20")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,

    /// Equal parts of the run
    #[arg(long, default_value_t = 48, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    times: u16,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        let profile = self.question.load()?;
        let scope = self.question.scope(&profile)?;
        let options = HeatmapOptions {
            times: usize::from(self.times),
        };
        let report = reports::heatmap(&scope, &options);
        self.question
            .print(self.json, screen, &report, text::heatmap)
    }
}
