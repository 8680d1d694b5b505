//! `heapline series`.

use std::fmt::Write;

use anyhow::Context;
use clap::ValueEnum;
use heapline_profile::query::TimePoint;
use heapline_profile::reports::{self, Measure, Series, SeriesOptions};

use crate::draw::{Align, FAINT, Page, Table, area, chart_points, sparkline};
use crate::question::{By, Json, Look, Question, pattern};
use crate::units::{bytes, count_short, label, seconds};

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

    /// What is measured
    #[arg(long, value_enum, default_value_t = MeasureName::LiveBytes)]
    measure: MeasureName,

    /// Also the largest groups, each apart, and the rest
    #[arg(long, value_enum)]
    by: Option<By>,

    /// How many groups
    #[arg(long, default_value_t = 10, value_name = "N")]
    top: usize,

    /// Points of time; as many as fit, if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    points: Option<u32>,

    /// Only from this time on: 10s, 20%, peak. Values are as in the whole series
    #[arg(long, value_name = "TIME")]
    from: Option<String>,

    /// Only up to this time
    #[arg(long, value_name = "TIME")]
    to: Option<String>,

    /// Only what this function allocates, split by who calls it. Given several times, functions
    /// that call each other, from the one that allocates up
    #[arg(long, value_name = "PATTERN")]
    callers_of: Vec<String>,

    /// Print a table of all values as CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    json: Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MeasureName {
    /// Bytes that are alive
    LiveBytes,
    /// Blocks that are alive
    LiveBlocks,
    /// Words that are alive
    LiveWords,
    /// Words allocated since the start
    AllocatedWords,
    /// Bytes allocated since the start
    AllocatedBytes,
    /// Bytes allocated per second
    AllocationRate,
    /// Bytes promoted since the start
    PromotedBytes,
    /// Bytes promoted per second
    PromotionRate,
}

impl MeasureName {
    fn measure(self) -> Measure {
        match self {
            Self::LiveBytes => Measure::LiveBytes,
            Self::LiveBlocks => Measure::LiveBlocks,
            Self::LiveWords => Measure::LiveWords,
            Self::AllocatedWords => Measure::AllocatedWords,
            Self::AllocatedBytes => Measure::AllocatedBytes,
            Self::AllocationRate => Measure::AllocationRate,
            Self::PromotedBytes => Measure::PromotedBytes,
            Self::PromotionRate => Measure::PromotionRate,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::LiveBytes => "Live bytes",
            Self::LiveBlocks => "Live blocks",
            Self::LiveWords => "Live words",
            Self::AllocatedWords => "Words allocated since the start",
            Self::AllocatedBytes => "Bytes allocated since the start",
            Self::AllocationRate => "Bytes allocated per second",
            Self::PromotedBytes => "Bytes promoted since the start",
            Self::PromotionRate => "Bytes promoted per second",
        }
    }

    fn format(self, value: f64) -> String {
        match self {
            Self::LiveBlocks | Self::LiveWords | Self::AllocatedWords => count_short(value),
            Self::AllocationRate | Self::PromotionRate => format!("{}/s", bytes(value)),
            _ => bytes(value),
        }
    }
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let groups = match self.by {
            Some(by) => Some((self.look.view(by)?, self.top)),
            None if !self.callers_of.is_empty() => Some((self.look.view(By::Function)?, self.top)),
            None => None,
        };
        if !self.callers_of.is_empty() && !self.by.is_none_or(|by| by.group().is_of_frames()) {
            anyhow::bail!("callers are functions, sites, files or modules; --by says which");
        }
        let points = match self.points {
            Some(points) => points as usize,
            None if self.json.json || self.csv => 100,
            None => chart_points(),
        };
        let window = self.window()?;
        let callers_of = self
            .callers_of
            .iter()
            .map(|text| pattern(text).context("cannot understand --callers-of"))
            .collect::<anyhow::Result<_>>()?;
        let profile = self.question.load()?;
        let scope = self.question.scope(&profile)?;
        let report = reports::series(
            &scope,
            &SeriesOptions {
                measure: self.measure.measure(),
                points,
                groups,
                window,
                callers_of,
            },
        );
        if self.csv {
            return crate::output::to_stdout(csv(&report).as_bytes());
        }
        self.json.print(&report, |report| self.text(report))
    }

    fn window(&self) -> anyhow::Result<Option<(TimePoint, TimePoint)>> {
        let time = |text: &Option<String>, name: &str, default| match text {
            Some(text) => {
                TimePoint::parse(text).with_context(|| format!("cannot understand --{name}"))
            }
            None => Ok(default),
        };
        if self.from.is_none() && self.to.is_none() {
            return Ok(None);
        }
        Ok(Some((
            time(&self.from, "from", TimePoint::Start)?,
            time(&self.to, "to", TimePoint::End)?,
        )))
    }

    /// When the first interval begins.
    fn start(&self, report: &Series) -> f64 {
        match report.times[..] {
            [first, second, ..] if self.from.is_some() => (2.0 * first - second).max(0.0),
            _ => 0.0,
        }
    }

    fn text(&self, report: &Series) -> String {
        const HEIGHT: usize = 12;
        let mut page = Page::default();
        page.title(self.measure.title());
        if report.subject.sampled_blocks == 0 {
            page.note("No block was sampled, or none that the query selects.");
            return page.finish();
        }
        // A screen has room for so many points; each shows the highest of those that it stands for.
        let fold = report.times.len().div_ceil(chart_points());
        let high = folded(&report.total.high, fold);
        let start = self.start(report);
        let end = report.times.last().copied().unwrap_or(0.0);
        page.block(&area(&high, (start, end), HEIGHT, |value| {
            self.measure.format(value)
        }));
        let highest = largest(&report.total.high);
        let last = report.total.values.last().copied().unwrap_or(0.0);
        let at = report.total.high.iter().position(|&value| value >= highest);
        let time = |point: Option<usize>| seconds(point.map_or(start, |point| report.times[point]));
        page.line(format_args!(
            "highest {} between {} and {}, at the end {}",
            self.measure.format(highest),
            time(at.and_then(|point| point.checked_sub(1))),
            time(at),
            self.measure.format(last)
        ));
        if report.groups.is_empty() {
            page.next(&[(
                self.question.command("series", " --by function"),
                "the same, split by who allocates",
            )]);
            return page.finish();
        }
        page.gap();
        page.block(&self.groups(report));
        page.finish()
    }

    fn groups(&self, report: &Series) -> String {
        let mut table = Table::new(
            &[
                ("highest", Align::Right),
                ("at end", Align::Right),
                ("over time", Align::Left),
                ("", Align::Left),
            ],
            3,
        );
        for group in &report.groups {
            let style = if group.is_other {
                FAINT
            } else {
                anstyle::Style::new()
            };
            let curve = folded(&group.line.high, report.times.len().div_ceil(32));
            let last = group.line.values.last().copied().unwrap_or(0.0);
            table.row(vec![
                (self.measure.format(largest(&group.line.high)), style),
                (self.measure.format(last), style),
                (sparkline(&curve), style),
                (label(&group.label), style),
            ]);
        }
        table.finish()
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// The largest of each so many values.
fn folded(values: &[f64], n: usize) -> Vec<f64> {
    values.chunks(n.max(1)).map(largest).collect()
}

fn csv(report: &Series) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let mut out = String::from("seconds,total,low,high");
    for group in &report.groups {
        out.push(',');
        out.push_str(&quoted(&label(&group.label)));
    }
    out.push('\n');
    for (i, time) in report.times.iter().enumerate() {
        let total = &report.total;
        // Writing to a string does not fail.
        let _ = write!(
            out,
            "{time},{},{},{}",
            total.values[i], total.low[i], total.high[i]
        );
        for group in &report.groups {
            let _ = write!(out, ",{}", group.line.values[i]);
        }
        out.push('\n');
    }
    out
}
