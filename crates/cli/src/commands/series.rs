//! `heapline series`.

use clap::ValueEnum;
use heapline_export::is_formula;
use heapline_profile::query::Window;
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
  heapline series trace.ctf --by module -n 8
  heapline series trace.ctf --measure allocation-rate --where 'heap = major'
  heapline series trace.ctf --window 10s..20s
  heapline series trace.ctf --points 1000 --format csv > memory.csv")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,

    #[command(flatten)]
    options: SeriesOptions,

    /// Show a part of the run: 0s..10s, ..peak, 50%.. [default: the whole run]
    #[arg(long, value_name = "FROM..TO", conflicts_with_all = ["from", "to"], help_heading = "Select")]
    window: Option<Window>,

    /// Select the output format
    #[arg(long, value_enum, default_value_t = Format::Text, hide_short_help = true)]
    format: Format,

    /// Print a table of all values as CSV; short for --format csv
    #[arg(long, conflicts_with_all = ["json", "format"])]
    csv: bool,

    /// Print JSON (see docs/json.md); short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Charts
    Text,
    /// The complete report
    Json,
    /// A table of all values
    Csv,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        let format = self.format();
        let mut options = self.options;
        if let Some(window) = &self.window {
            let (from, to) = window.bounds();
            options.from = Some(from.clone());
            options.to = Some(to.clone());
        }
        if options.points.is_none() && format == Format::Text {
            options.points = Some(text::chart_points(screen));
        }
        let report = self.question.ask(&options)?;
        if format == Format::Csv {
            return crate::output::to_stdout(&csv(&report)?);
        }
        let json = Json::new(format == Format::Json);
        self.question.print(json, screen, &report, text::series)
    }

    fn format(&self) -> Format {
        if self.json {
            Format::Json
        } else if self.csv {
            Format::Csv
        } else {
            self.format
        }
    }
}

/// The name of a group as text that no spreadsheet takes for a formula.
fn title(name: &str) -> String {
    let apostrophe = if is_formula(name.as_bytes()) { "'" } else { "" };
    format!("{apostrophe}{name}")
}

/// The values as CSV: the total, and a column per group.
fn csv(report: &Series) -> anyhow::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let titles = ["seconds", "total", "low", "high"].map(str::to_owned);
    let names = report
        .groups
        .iter()
        .map(|group| title(&label(&group.label)));
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
