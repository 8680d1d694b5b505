//! `heapline dataset list`.

use std::process::ExitCode;

use heapline_dataset::{Dataset, RunInfo};
use heapline_text::{Align, Page, Screen, Style, Table, Text, units};
use serde::Serialize;

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

#[derive(Serialize)]
struct List {
    runs: Vec<RunInfo>,
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
            .print(&List { runs }, |list| table(&list.runs, screen))?;
        Ok(ExitCode::from(if is_whole { 0 } else { 2 }))
    }
}

fn table(runs: &[RunInfo], screen: Screen) -> Text {
    let columns = [
        ("run", Align::Left),
        ("service", Align::Left),
        ("version", Align::Left),
        ("day", Align::Left),
        ("seconds", Align::Right),
        ("allocated", Align::Right),
        ("at peak", Align::Right),
        ("at end", Align::Right),
        ("", Align::Left),
        ("trace", Align::Left),
    ];
    let mut table = Table::new(screen, &columns, columns.len() - 1).droppable(&[4, 7, 3]);
    for run in runs {
        let bytes = |column: &str| {
            let total = run.totals.get(column).unwrap_or_default();
            units::estimated_bytes(total.estimate())
        };
        let cells = [
            run.run.to_string(),
            run.service.clone(),
            run.version.clone().unwrap_or_default(),
            run.day.clone(),
            format!("{:.3}", run.duration_s),
            bytes("allocated_bytes"),
            bytes("live_at_peak_bytes"),
            bytes("live_at_end_bytes"),
            if run.damaged { "damaged" } else { "" }.to_owned(),
            run.trace.clone(),
        ];
        table.row(cells.map(|cell| (cell, Style::Plain)).to_vec());
    }
    let mut page = Page::new(screen);
    page.lines(table.lines());
    page.finish()
}
