//! `heapline summary`.

use anstyle::Style;
use heapline_profile::reports::{self, Ranking, RankingKind, Summary};

use crate::draw::{Align, FAINT, Page, Table, bar};
use crate::question::{By, Json, Look, Question};
use crate::units::{
    bytes, count, estimated_bytes, estimated_count, estimated_count_short, label, printable,
    seconds,
};

/// Show the totals, the peak, and the five lists that matter
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline summary trace.ctf
  heapline summary trace.ctf --by function --rows 10
  heapline summary trace.ctf --where 'inside \"Parser.*\"' --json")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,

    /// What the lists are of
    #[arg(long, value_enum, default_value_t = By::Site)]
    by: By,

    /// Rows of each list
    #[arg(long, default_value_t = 5, value_name = "N")]
    rows: usize,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let view = self.look.view(self.by)?;
        let profile = self.question.load()?;
        let scope = self.question.scope(&profile)?;
        let report = reports::summary(&scope, &view, self.rows);
        self.json.print(&report, |report| {
            text(report, &|name, arguments| {
                self.question.command(name, arguments)
            })
        })
    }
}

/// The report for people. `command` makes a command on the same trace.
pub(super) fn text(report: &Summary, command: &dyn Fn(&str, &str) -> String) -> String {
    let mut page = Page::default();
    let subject = &report.subject;
    let program = subject.program.rsplit('/').next().unwrap_or_default();
    page.title(&printable(program));
    let per_second = |rate: Option<heapline_profile::Estimate>| {
        rate.map_or_else(String::new, |rate| format!("{}/s", bytes(rate.value)))
    };
    let rows = [
        (
            "Allocated",
            &report.allocated,
            per_second(report.allocation_rate),
        ),
        (
            "Promoted",
            &report.promoted,
            per_second(report.promotion_rate),
        ),
        ("Collected", &report.collected, String::new()),
        (
            "Live at peak",
            &report.live_at_peak,
            format!("{} after the start", seconds(report.peak_time)),
        ),
        (
            "Live at end",
            &report.live_at_end,
            format!("{} after the start", seconds(subject.duration)),
        ),
    ];
    let cells: Vec<[String; 2]> = rows
        .iter()
        .map(|(_, figures, _)| {
            [
                estimated_bytes(figures.bytes),
                estimated_count(figures.blocks),
            ]
        })
        .collect();
    let widths = [0, 1].map(|i| {
        cells
            .iter()
            .map(|c| c[i].chars().count())
            .max()
            .unwrap_or(0)
    });
    for ((name, _, note), [amount, blocks]) in rows.iter().zip(&cells) {
        let note = match &**note {
            "" => String::new(),
            note => format!("{FAINT}{note}{FAINT:#}"),
        };
        page.row(
            name,
            format_args!(
                "{amount:>0$}   {blocks:>1$} blocks   {note}",
                widths[0], widths[1]
            ),
        );
    }
    page.note(&how_exact(report));
    for list in &report.lists {
        ranking(&mut page, list, report);
    }
    if subject.sampled_blocks > 0 {
        page.next(&[
            (
                command("hotspots", ""),
                "all of it as a table, with lifetimes and growth",
            ),
            (
                command("tree", " --live peak --bottom-up"),
                "who calls what is alive at the peak",
            ),
            (command("leaks", ""), "what grows and never dies"),
        ]);
    }
    page.finish()
}

fn how_exact(report: &Summary) -> String {
    let subject = &report.subject;
    if subject.is_exact {
        return "Every block was recorded: these numbers are exact. Headers are counted."
            .to_owned();
    }
    format!(
        "Estimated from {} sampled blocks, one sample for {} on average; ± is the 95 % interval.",
        count(subject.sampled_blocks as u64),
        bytes(subject.bytes_per_sample)
    )
}

fn ranking(page: &mut Page, list: &Ranking, report: &Summary) {
    let title = match list.kind {
        RankingKind::LiveAtPeak => "Most alive at the peak".to_owned(),
        RankingKind::LiveAtEnd => "Most alive at the end".to_owned(),
        RankingKind::Allocated => "Most allocated".to_owned(),
        RankingKind::Blocks => "Most blocks".to_owned(),
        RankingKind::ShortLived => format!(
            "Most short-lived (dead within {}, 1 % of the run): {} in all",
            seconds(report.short),
            bytes(list.total.bytes.value)
        ),
    };
    page.title(&title);
    if list.rows.is_empty() {
        return page.note("Nothing was seen.");
    }
    let in_blocks = list.kind == RankingKind::Blocks;
    let mut table = Table::new(
        &[
            ("", Align::Right),
            ("", Align::Right),
            ("", Align::Left),
            ("", Align::Left),
        ],
        3,
    );
    for row in &list.rows {
        let amount = if in_blocks {
            estimated_count_short(row.figures.blocks)
        } else {
            estimated_bytes(row.figures.bytes)
        };
        let is_noise = if in_blocks {
            row.figures.blocks.is_noise()
        } else {
            row.figures.bytes.is_noise()
        };
        let style = if is_noise && !report.subject.is_exact {
            FAINT
        } else {
            Style::new()
        };
        table.row(vec![
            (amount, style),
            (format!("{:.1} %", row.percent), style),
            (bar(row.percent / 100.0, 8), style),
            (label(&row.label), style),
        ]);
    }
    page.block(&table.finish());
}
