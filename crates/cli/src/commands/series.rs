//! `heapline series`.

use heapline_profile::reports::{Series, SeriesOptions};
use heapline_text::units::label;
use heapline_text::{self as text, Screen};

use crate::question::{Json, Question};

/// Show memory over time
///
/// The curve has the largest value of each interval, so that no peak is lost.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline series trace.ctf
  heapline series trace.ctf --by module --top 8
  heapline series trace.ctf --measure allocation-rate --where 'heap = major'
  heapline series trace.ctf --points 1000 --csv > memory.csv")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,

    #[command(flatten)]
    options: SeriesOptions,

    /// Print a table of all values as CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        let mut options = self.options.clone();
        if options.points.is_none() && !self.json.json && !self.csv {
            options.points = Some(text::chart_points(screen));
        }
        let report = self.question.ask(&options)?;
        if self.csv {
            return crate::output::to_stdout(&csv(&report)?);
        }
        self.question
            .print(self.json, screen, &report, text::series)
    }
}

/// The values as CSV: the total, and a column per group.
fn csv(report: &Series) -> anyhow::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let titles = ["seconds", "total", "low", "high"].map(str::to_owned);
    let names = report.groups.iter().map(|group| label(&group.label));
    writer.write_record(titles.into_iter().chain(names))?;
    let total = &report.total;
    for (i, time) in report.times.iter().enumerate() {
        let totals = [*time, total.values[i], total.low[i], total.high[i]];
        let groups = report.groups.iter().map(|group| group.line.values[i]);
        let values = totals.into_iter().chain(groups);
        writer.write_record(values.map(|value| value.to_string()))?;
    }
    Ok(writer.into_inner()?)
}
