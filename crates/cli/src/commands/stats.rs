//! `heapline stats`.

use anstyle::Style;
use clap::ValueEnum;
use heapline_profile::reports::{self, Bin, Quantiles, Segment, Stats, StatsOptions};

use super::alloc_stats;
use crate::draw::{Align, FAINT, Page, Table, bar};
use crate::question::{Json, Question};
use crate::units::{bytes, count, count_short, estimated_bytes, estimated_count, seconds};

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

    /// Histograms with bars of equal width
    #[arg(long)]
    linear: bool,

    /// Bars of the linear histogram of lifetimes
    #[arg(long, default_value_t = 20, value_name = "N")]
    bins: usize,

    /// Equal parts of the run
    #[arg(long, default_value_t = 10, value_name = "N")]
    segments: usize,

    /// The numbers of another program, mistakes included
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
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let profile = self.question.load()?;
        if self.compat.is_some() {
            if !self.question.filter.query()?.is_all() {
                anyhow::bail!("ocaml-alloc-stats has no filters: --where goes without --compat");
            }
            let report = reports::alloc_stats(&profile);
            return self.json.print(&report, alloc_stats::text);
        }
        let scope = self.question.scope(&profile)?;
        let options = StatsOptions {
            segments: self.segments,
            bins: self.bins,
        };
        let report = reports::stats(&scope, &options);
        self.json.print(&report, |report| self.text(report))
    }

    fn text(&self, report: &Stats) -> String {
        let mut page = Page::default();
        page.title(&format!(
            "{} blocks of {}",
            estimated_count(report.total.blocks),
            estimated_bytes(report.total.bytes)
        ));
        if report.subject.sampled_blocks == 0 {
            page.note("No block was sampled, or none that the query selects.");
            return page.finish();
        }
        sizes(&mut page, report, self.linear);
        lifetimes(&mut page, report, self.linear);
        if report.phases.len() > 1 {
            page.title("Phases: where the rate of allocation changes");
            segments(&mut page, &report.phases);
        }
        page.title("Equal parts of the run");
        segments(&mut page, &report.segments);
        page.finish()
    }
}

fn sizes(page: &mut Page, report: &Stats, linear: bool) {
    let sizes = &report.sizes;
    page.title("Sizes, in words without the header");
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.2}"));
    page.row(
        "mean",
        format_args!(
            "{}, standard deviation {}, variance {}",
            number(sizes.mean),
            number(sizes.sd),
            number(sizes.variance)
        ),
    );
    let Quantiles { p50, p90, p99 } = sizes.quantiles;
    let whole = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.0}"));
    page.row(
        "quantiles",
        format_args!(
            "50 % {}, 90 % {}, 99 % {}, largest {}",
            whole(p50),
            whole(p90),
            whole(p99),
            count(sizes.max)
        ),
    );
    page.row(
        &format!("over {}", sizes.large_limit),
        format_args!(
            "{} % of blocks, {} % of bytes",
            number(sizes.large_blocks_percent),
            number(sizes.large_bytes_percent)
        ),
    );
    page.gap();
    let (bins, single) = if linear {
        (&sizes.linear, true)
    } else {
        (&sizes.log, false)
    };
    histogram(page, bins, |bin| {
        if single || bin.high - bin.low <= 1.0 {
            format!("{}", bin.low)
        } else {
            format!("{} - {}", bin.low, bin.high - 1.0)
        }
    });
}

fn lifetimes(page: &mut Page, report: &Stats, linear: bool) {
    let lifetimes = &report.lifetimes;
    page.title("Lifetimes");
    page.row(
        "alive at end",
        format_args!(
            "{} blocks, {}: they count as living longer than they were seen",
            estimated_count(lifetimes.alive.blocks),
            bytes(lifetimes.alive.bytes.value)
        ),
    );
    let quantiles = |Quantiles { p50, p90, p99 }: Quantiles, show: &dyn Fn(f64) -> String| {
        let one = |value: Option<f64>| value.map_or_else(|| "longer".to_owned(), show);
        format!("50 % {}, 90 % {}, 99 % {}", one(p50), one(p90), one(p99))
    };
    page.row(
        "in time",
        format_args!("{}", quantiles(lifetimes.seconds, &seconds)),
    );
    page.row(
        "in allocation",
        format_args!("{} allocated meanwhile", quantiles(lifetimes.bytes, &bytes)),
    );
    if let (Some(mean), Some(max)) = (lifetimes.mean, lifetimes.max) {
        page.row(
            "of the dead",
            format_args!("mean {}, longest {}", seconds(mean), seconds(max)),
        );
    }
    page.gap();
    let bins = if linear {
        &lifetimes.linear
    } else {
        &lifetimes.log
    };
    histogram(page, bins, |bin| format!("< {}", seconds(bin.high)));
    page.note("Times are those at which the garbage collector noticed.");
}

fn histogram(page: &mut Page, bins: &[Bin], name: impl Fn(&Bin) -> String) {
    let most = bins.iter().map(|bin| bin.blocks).fold(0.0, f64::max);
    let all_bytes: f64 = bins.iter().map(|bin| bin.bytes).sum();
    let mut table = Table::new(
        &[
            ("", Align::Right),
            ("blocks", Align::Right),
            ("bytes", Align::Right),
            ("%", Align::Right),
            ("", Align::Left),
        ],
        4,
    );
    let last = bins.iter().rposition(|bin| bin.sampled > 0).unwrap_or(0);
    for bin in &bins[..bins.len().min(last + 1)] {
        let style = if bin.sampled == 0 {
            FAINT
        } else {
            Style::new()
        };
        table.row(vec![
            (name(bin), style),
            (count_short(bin.blocks), style),
            (bytes(bin.bytes), style),
            (
                crate::units::percent(bin.bytes, all_bytes)
                    .trim_end_matches(" %")
                    .to_owned(),
                style,
            ),
            (bar(bin.blocks / most, 32), style),
        ]);
    }
    page.block(&table.finish());
}

fn segments(page: &mut Page, segments: &[Segment]) {
    let mut table = Table::new(
        &[
            ("from", Align::Right),
            ("to", Align::Right),
            ("allocated", Align::Right),
            ("per second", Align::Right),
            ("", Align::Left),
            ("mean words", Align::Right),
            ("sd", Align::Right),
            ("% large", Align::Right),
            ("% promoted", Align::Right),
            ("live at end", Align::Right),
        ],
        4,
    )
    .droppable(&[6, 4, 7, 5, 8]);
    let rate = |segment: &Segment| segment.allocation_rate.map_or(0.0, |rate| rate.value);
    let fastest = segments.iter().map(rate).fold(0.0, f64::max);
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.1}"));
    for segment in segments {
        let cell = |text: String| (text, Style::new());
        table.row(vec![
            cell(seconds(segment.from)),
            cell(seconds(segment.to)),
            cell(estimated_bytes(segment.allocated.bytes)),
            cell(format!("{}/s", bytes(rate(segment)))),
            cell(bar(rate(segment) / fastest, 8)),
            cell(number(segment.mean_size)),
            cell(number(segment.sd_size)),
            cell(number(segment.large_percent)),
            cell(number(segment.promoted_percent)),
            cell(bytes(segment.live_at_end)),
        ]);
    }
    page.block(&table.finish());
}
