//! `summary`: totals, the peak, and ranked lists.

use heapline_profile::reports::{CountedMemory, Figures, Ranking, RankingKind, Summary};
use heapline_profile::{Estimate, GroupBy};

use crate::chart::bar;
use crate::findings::findings;
use crate::info::{history, missing};
use crate::own_code::own_code;
use crate::page::Page;
use crate::screen::Context;
use crate::styled::{Style, Text};
use crate::table::{Align, Table};
use crate::units::{
    bytes, count, estimated_bytes, estimated_count, estimated_count_short, label, program_name,
    seconds,
};
use crate::{BY_LAST_SNAPSHOT, snapshots_only};

/// Renders a summary.
#[must_use]
pub fn summary(report: &Summary, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    page.title(program_name(&report.subject.program));
    page.table(&totals(report, context));
    page.note(&precision(report));
    if let Some(counted) = &report.counted {
        page.note(&counted_by_runtime(counted));
    }
    if report.subject.attached_to.is_some() {
        page.note(
            "Recorded since Heapline attached to the program: what it had allocated before is not counted, nor live.",
        );
    }
    if let Some(coarse) = &report.subject.coarse {
        page.note(&format!("History: {}.", history(coarse)));
    }
    if let Some(gaps) = &report.subject.gaps {
        page.note(&format!("Gaps: {}.", missing(gaps)));
    }
    own_code(&mut page, &report.subject);
    findings(&mut page, &report.findings, context);
    let tells = report.subject.tells;
    for list in &report.lists {
        let is_told = match list.kind {
            RankingKind::Blocks => tells.sizes,
            RankingKind::ShortLived => tells.lifetimes,
            RankingKind::LiveAtPeak => !report.live_at_peak.bytes.value.is_nan(),
            RankingKind::LiveAtEnd => !report.live_at_end.bytes.value.is_nan(),
            RankingKind::Allocated => true,
        };
        if !is_told {
            continue;
        }
        let list = List {
            ranking: list,
            by: report.by,
            short: report.short,
            is_exact: report.subject.is_exact,
        };
        ranking(&mut page, &list, context);
    }
    if report.subject.sampled_blocks > 0 {
        let hints: [(&str, &[&str], &str); 3] = [
            ("hotspots", &[], "full table, with lifetimes and growth"),
            (
                "tree",
                &["--live", "peak", "--bottom-up"],
                "callers of what is live at the peak",
            ),
            ("leaks", &[], "memory that grows and is never freed"),
        ];
        if tells.lifetimes {
            page.next(context, &hints);
        } else {
            page.next(context, &hints[1..2]);
        }
    }
    page.finish()
}

const PROMOTED: &str = "Promoted";

fn totals(report: &Summary, context: &Context<'_>) -> Table {
    let per_second = |rate: Option<Estimate>| {
        rate.map_or_else(String::new, |rate| format!("{}/s", bytes(rate.value)))
    };
    let at = |time: f64| format!("at {}", seconds(time));
    let tells = report.subject.tells;
    let dead = if tells.promotions {
        "Collected"
    } else {
        "Freed"
    };
    let freed = if tells.lifetimes || report.collected.bytes.value.is_nan() {
        String::new()
    } else {
        BY_LAST_SNAPSHOT.to_owned()
    };
    // What the runtime counted is exact; blocks are not counted by it.
    let counted = report.counted.as_ref();
    let duration = report.subject.duration;
    let amount = |counted: Option<Estimate>, figures: &Figures, rate: Option<Estimate>| {
        let amount = counted.unwrap_or(figures.bytes);
        let rate = match counted {
            Some(counted) => rate.map(|_| counted.per(duration)),
            None => rate,
        };
        let exact = if counted.is_some_and(|counted| counted.error == 0.0) {
            ", exact"
        } else {
            ""
        };
        (estimated_bytes(amount), per_second(rate) + exact)
    };
    let (allocated, allocated_note) = amount(
        counted.map(|counted| counted.allocated),
        &report.allocated,
        report.allocation_rate,
    );
    let (promoted, promoted_note) = amount(
        counted.map(|counted| Estimate::exact(counted.promoted)),
        &report.promoted,
        report.promotion_rate,
    );
    let sampled = |figures: &Figures| estimated_bytes(figures.bytes);
    let rows = [
        ("Allocated", &report.allocated, allocated, allocated_note),
        (PROMOTED, &report.promoted, promoted, promoted_note),
        (dead, &report.collected, sampled(&report.collected), freed),
        (
            "Live at peak",
            &report.live_at_peak,
            sampled(&report.live_at_peak),
            at(report.peak_time),
        ),
        (
            "Live at end",
            &report.live_at_end,
            sampled(&report.live_at_end),
            at(report.subject.duration),
        ),
    ];
    let mut table = Table::new(
        context.screen,
        &[
            ("", Align::Left),
            ("", Align::Right),
            ("", Align::Right),
            ("", Align::Left),
        ],
        0,
    )
    .droppable(&[3, 2]);
    for (name, figures, amount, note) in rows {
        if name == PROMOTED && !tells.promotions {
            continue;
        }
        table.row(vec![
            (name.to_owned(), Style::Label),
            (amount, Style::Plain),
            (
                format!("{} blocks", estimated_count(figures.blocks)),
                Style::Plain,
            ),
            (note, Style::Faint),
        ]);
    }
    table
}

/// What is exact in spite of sampling, and what is not part of it.
pub(crate) fn counted_by_runtime(counted: &CountedMemory) -> String {
    let mut note =
        "Bytes allocated on OCaml's heaps and promoted are exact: the runtime counted them."
            .to_owned();
    if counted.external.value > 0.0 {
        note += &format!(
            " {} was allocated outside of them, which is estimated.",
            estimated_bytes(counted.external)
        );
    }
    if counted.audit.is_some_and(|audit| audit.disagrees) {
        note += " The samples disagree with them by more than their error (see heapline gc): all other figures are off by as much.";
    }
    note
}

/// The precision of the figures.
fn precision(report: &Summary) -> String {
    let subject = &report.subject;
    if !subject.tells.sizes {
        let note = snapshots_only(report.live_at_end.bytes);
        return format!("{note} Sizes include headers.");
    }
    if subject.is_exact {
        let headers = if subject.word_bytes > 1.0 {
            " Sizes include headers."
        } else {
            ""
        };
        return format!("Every block was recorded, so the figures are exact.{headers}");
    }
    format!(
        "Estimated from {} sampled blocks, one sample per {} on average; ± is the 95 % interval.",
        count(subject.sampled_blocks as u64),
        bytes(subject.bytes_per_sample)
    )
}

/// A list, and what its title and styles depend on.
pub(crate) struct List<'a> {
    pub(crate) ranking: &'a Ranking,
    pub(crate) by: GroupBy,
    /// Seconds that a short-lived block lives less than.
    pub(crate) short: f64,
    pub(crate) is_exact: bool,
}

pub(crate) fn ranking(page: &mut Page, list: &List<'_>, context: &Context<'_>) {
    let List {
        ranking: list,
        by,
        short,
        is_exact,
    } = *list;
    let by = by.name();
    page.title(&match list.kind {
        RankingKind::LiveAtPeak => format!("Live at peak, by {by}"),
        RankingKind::LiveAtEnd => format!("Live at end, by {by}"),
        RankingKind::Allocated => format!("Bytes allocated, by {by}"),
        RankingKind::Blocks => format!("Blocks allocated, by {by}"),
        RankingKind::ShortLived => format!(
            "Short-lived (dead within {}, 1 % of the run), by {by}: {} in total",
            seconds(short),
            bytes(list.total.bytes.value)
        ),
    });
    if list.rows.is_empty() {
        return page.note("None.");
    }
    let in_blocks = list.kind == RankingKind::Blocks;
    let mut table = Table::new(
        context.screen,
        &[
            ("", Align::Right),
            ("", Align::Right),
            ("", Align::Left),
            ("", Align::Left),
        ],
        3,
    );
    for row in &list.rows {
        let (amount, is_noise) = if in_blocks {
            let blocks = row.figures.blocks;
            (estimated_count_short(blocks), blocks.is_noise())
        } else {
            let bytes = row.figures.bytes;
            (estimated_bytes(bytes), bytes.is_noise())
        };
        let style = if is_noise && !is_exact {
            Style::Faint
        } else {
            Style::Plain
        };
        table.row(vec![
            (amount, style),
            (format!("{:.1} %", row.percent), style),
            (bar(row.percent / 100.0, 8), style),
            (label(&row.label), style),
        ]);
    }
    page.table(&table);
}
