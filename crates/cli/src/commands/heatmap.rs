//! `heapline heatmap`.

use anstyle::Style;
use heapline_profile::reports::{self, Heatmap, HeatmapOptions};

use crate::draw::{Align, FAINT, Page, Table, sparkline};
use crate::question::{Json, Question};
use crate::units::{bytes, seconds};

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
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let profile = self.question.load()?;
        let scope = self.question.scope(&profile)?;
        let options = HeatmapOptions {
            times: usize::from(self.times),
        };
        let report = reports::heatmap(&scope, &options);
        self.json.print(&report, text)
    }
}

fn text(report: &Heatmap) -> String {
    let mut page = Page::default();
    page.title("Allocated over time, by how long it lived");
    if report.subject.sampled_blocks == 0 {
        page.note("No block was sampled, or none that the query selects.");
        return page.finish();
    }
    let mut table = Table::new(
        &[
            ("lived", Align::Right),
            ("bytes", Align::Right),
            ("when it was allocated", Align::Left),
        ],
        2,
    );
    let ages = report.ages.len() - 1;
    let by_age = (0..ages)
        .rev()
        .map(|age| report.bytes.iter().map(|row| row[age]).collect());
    let rows: Vec<Vec<f64>> = std::iter::once(report.alive_bytes.clone())
        .chain(by_age)
        .collect();
    // All rows are drawn to the same scale.
    let drawn: Vec<char> = sparkline(&rows.concat()).chars().collect();
    let names = std::iter::once("alive at the end".to_owned()).chain(
        report
            .ages
            .windows(2)
            .rev()
            .map(|age| format!("{} to {}", seconds(age[0]), seconds(age[1]))),
    );
    let times = report.times.len() - 1;
    for ((name, row), cells) in names.zip(&rows).zip(drawn.chunks(times)) {
        let sum: f64 = row.iter().sum();
        let style = if sum > 0.0 { Style::new() } else { FAINT };
        table.row(vec![
            (name, style),
            (bytes(sum), style),
            (cells.iter().collect(), style),
        ]);
    }
    page.block(&table.finish());
    page.note(&format!(
        "From the start to {} after it, in {times} parts; the higher, the more bytes.",
        seconds(report.subject.duration)
    ));
    page.finish()
}
