//! `heapline heatmap`.

use heapline_profile::reports::HeatmapOptions;
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

    #[command(flatten)]
    options: HeatmapOptions,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        let report = self.question.ask(&self.options)?;
        self.question
            .print(self.json, screen, &report, text::heatmap)
    }
}
