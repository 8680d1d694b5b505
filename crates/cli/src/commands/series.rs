//! `heapline series`.

use anyhow::Context;
use clap::ValueEnum;
use heapline_profile::query::TimePoint;
use heapline_profile::reports::{self, Measure, Series, SeriesOptions};
use heapline_text::units::label;
use heapline_text::{self as text, Screen};

use crate::question::{By, Json, Look, Question, pattern};

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
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
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
            None => text::chart_points(screen),
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
            return crate::output::to_stdout(&csv(&report)?);
        }
        self.question
            .print(self.json, screen, &report, text::series)
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
