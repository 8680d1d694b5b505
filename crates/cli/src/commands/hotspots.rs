//! `heapline hotspots`.

use anstyle::Style;
use clap::ValueEnum;
use heapline_profile::Estimate;
use heapline_profile::reports::{self, Hotspot, HotspotOptions, Hotspots, SortBy};

use crate::draw::{Align, FAINT, Page, Table, sparkline};
use crate::question::{By, Json, Look, Question};
use crate::units::{
    bytes, count, count_short, duration_or_longer, estimated_bytes, label, seconds,
};

/// Show where memory is allocated or alive, as a table
///
/// A row is a function, unless --by says otherwise. `allocated` is what it allocates itself,
/// `with callees` what is allocated while it runs; `at peak` and `at end` are what is alive then of
/// what it allocated itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline hotspots trace.ctf
  heapline hotspots trace.ctf --by module --sort end
  heapline hotspots trace.ctf --where 'live at peak and size >= 64KiB' --by site")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,

    /// What a row is
    #[arg(long, value_enum, default_value_t = By::Function)]
    by: By,

    /// What rows are ordered by
    #[arg(long, value_enum, default_value_t = Sort::Allocated)]
    sort: Sort,

    /// How many rows at most
    #[arg(long, default_value_t = 20, value_name = "N")]
    rows: usize,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    json: Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// Bytes that it allocates itself
    Allocated,
    /// Bytes that are allocated while it runs
    Inclusive,
    /// Bytes alive at the peak
    Peak,
    /// Bytes alive at the end
    End,
    /// Blocks that it allocates itself
    Blocks,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let options = HotspotOptions {
            view: self.look.view(self.by)?,
            sort: match self.sort {
                Sort::Allocated => SortBy::Allocated,
                Sort::Inclusive => SortBy::Inclusive,
                Sort::Peak => SortBy::Peak,
                Sort::End => SortBy::End,
                Sort::Blocks => SortBy::Blocks,
            },
            rows: self.rows,
            ..HotspotOptions::default()
        };
        let profile = self.question.load()?;
        let scope = self.question.scope(&profile)?;
        let report = reports::hotspots(&scope, &options);
        self.json.print(&report, |report| self.text(report))
    }

    fn text(&self, report: &Hotspots) -> String {
        let mut page = Page::default();
        page.title(&format!(
            "{} by {}",
            estimated_bytes(report.total.allocated.bytes),
            report.by.name()
        ));
        if report.subject.sampled_blocks == 0 {
            page.note("No block was sampled, or none that the query selects.");
            return page.finish();
        }
        let mut table = Table::new(
            &[
                ("allocated", Align::Right),
                ("%", Align::Right),
                ("with callees", Align::Right),
                ("at peak", Align::Right),
                ("at end", Align::Right),
                ("blocks", Align::Right),
                ("mean", Align::Right),
                ("promoted", Align::Right),
                ("median life", Align::Right),
                ("live over time", Align::Left),
                (report.by.name(), Align::Left),
            ],
            10,
        )
        .droppable(match self.sort {
            // The column that rows are sorted by stays.
            Sort::Inclusive => &[6, 7, 5, 8],
            Sort::Blocks => &[6, 7, 8, 2],
            _ => &[6, 7, 5, 8, 2],
        });
        for row in &report.rows {
            table.row(cells(row, report));
        }
        if report.hidden_rows > 0 {
            let hidden = &report.hidden;
            let mut cells = vec![(String::new(), FAINT); 11];
            cells[0].0 = bytes(hidden.allocated.bytes.value);
            cells[1].0 = percent(hidden.allocated.bytes, report);
            cells[3].0 = or_nothing(hidden.live_at_peak.bytes);
            cells[4].0 = or_nothing(hidden.live_at_end.bytes);
            cells[5].0 = count_short(hidden.allocated.blocks.value);
            cells[10].0 = format!("other ({})", count(report.hidden_rows as u64));
            table.row(cells);
        }
        page.block(&table.finish());
        page.note(&format!(
            "The peak is {} after the start. > stands where more than \
             half of the blocks were alive at the end.",
            seconds(report.peak_time)
        ));
        if !report.subject.is_exact {
            page.note(
                "± is the 95 % interval of the first column. What has an error as large as itself \
                 cannot be told from noise.",
            );
        }
        let by = self.by.to_possible_value();
        let by = by.as_ref().map_or("function", |by| by.get_name());
        if by == "function" {
            page.next(&[
                (
                    self.question.command("hotspots", " --by site"),
                    "the same by line of the source",
                ),
                (
                    self.question.command("tree", " --bottom-up"),
                    "who calls these functions",
                ),
            ]);
        }
        page.finish()
    }
}

fn cells(row: &Hotspot, report: &Hotspots) -> Vec<(String, Style)> {
    let style = if row.is_noise { FAINT } else { Style::new() };
    let allocated = row.own.allocated;
    let cell = |text: String| (text, style);
    vec![
        cell(estimated_bytes(allocated.bytes)),
        cell(percent(allocated.bytes, report)),
        cell(
            row.inclusive
                .map_or_else(String::new, |figures| bytes(figures.bytes.value)),
        ),
        cell(or_nothing(row.own.live_at_peak.bytes)),
        cell(or_nothing(row.own.live_at_end.bytes)),
        cell(count_short(allocated.blocks.value)),
        cell(bytes(row.mean_size)),
        cell(
            row.promoted_percent
                .map_or_else(String::new, |percent| format!("{percent:.0} %")),
        ),
        cell(if allocated.samples == 0 {
            "-".to_owned()
        } else {
            duration_or_longer(row.lifetime.p50, report.subject.duration)
        }),
        cell(sparkline(&row.growth)),
        cell(label(&row.label)),
    ]
}

fn percent(estimate: Estimate, report: &Hotspots) -> String {
    crate::units::percent(estimate.value, report.total.allocated.bytes.value)
        .trim_end_matches(" %")
        .to_owned()
}

fn or_nothing(estimate: Estimate) -> String {
    if estimate.value == 0.0 {
        "-".to_owned()
    } else {
        bytes(estimate.value)
    }
}
