//! `heapline dataset list`.

use std::process::ExitCode;

use heapline_dataset::{Dataset, RunList, text};
use heapline_text::Screen;

use super::Address;
use crate::error::warn;
use crate::question::Json;

/// List the runs of a dataset
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline dataset list profiles
  heapline dataset list profiles --json | jq '.runs[] | select(.damaged) | .trace'")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) address: Address,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<ExitCode> {
        let dataset = Dataset::open(self.address.dataset)?;
        let mut runs = Vec::new();
        let mut is_whole = true;
        for (_, run) in dataset.runs()? {
            match run {
                Ok(info) => runs.push(info),
                Err(error) => {
                    is_whole = false;
                    warn(&format!("{:#}", anyhow::Error::new(error)));
                }
            }
        }
        self.json
            .print(&RunList { runs }, |list| text::runs(&list.runs, screen))?;
        Ok(ExitCode::from(if is_whole { 0 } else { 2 }))
    }
}
