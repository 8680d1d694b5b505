//! `summary` of several traces: totals, a row for each trace, and ranked lists.

use heapline_profile::reports::{CombinedSummary, TraceSummary};

use crate::page::Page;
use crate::sanitize::sanitize;
use crate::screen::Context;
use crate::snapshots_only;
use crate::styled::{Style, Text};
use crate::summary::{List, ranking};
use crate::table::{Align, Table};
use crate::units::{
    bytes, count, estimated_bytes, estimated_count, estimated_count_short, plural, seconds,
};

/// Traces that are listed; JSON has all.
const LISTED: usize = 40;

/// Renders the summary of several traces.
#[must_use]
pub fn combined_summary(report: &CombinedSummary, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    page.title(&plural(report.traces.len() as u64, "trace"));
    page.table(&totals(report, context));
    page.note(&if report.is_exact && !report.tells_sizes {
        let mut live = report.traces.iter().map(|trace| trace.live_at_end.bytes);
        let untold = live.find(|live| live.value.is_nan());
        snapshots_only(untold.unwrap_or_default()).to_owned()
    } else if report.is_exact {
        "Every block was recorded, so the figures are exact.".to_owned()
    } else {
        let blocks = count(report.sampled_blocks as u64);
        format!("Estimated from {blocks} sampled blocks; ± is the 95 % interval.")
    });
    traces(&mut page, report, context);
    for list in &report.lists {
        let list = List {
            ranking: list,
            by: report.by,
            short: 0.0,
            is_exact: report.is_exact,
        };
        ranking(&mut page, &list, context);
    }
    if report.sampled_blocks > 0 {
        page.next(context, &[("summary", &[], "the first trace by itself")]);
    }
    page.finish()
}

fn totals(report: &CombinedSummary, context: &Context<'_>) -> Table {
    let columns = [
        ("", Align::Left),
        ("", Align::Right),
        ("", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(context.screen, &columns, 0).droppable(&[3, 2]);
    let peak = |trace: &&TraceSummary| trace.live_at_peak.bytes.value;
    let largest = report
        .traces
        .iter()
        .filter(|trace| !peak(trace).is_nan())
        .max_by(|a, b| peak(a).total_cmp(&peak(b)));
    let mut rows = vec![("Allocated", report.allocated, String::new())];
    if report.tells_promotions {
        rows.push(("Promoted", report.promoted, String::new()));
    }
    rows.push(("Freed", report.collected, String::new()));
    if let Some(trace) = largest {
        let place = format!("in {}", sanitize(&trace.file));
        rows.push(("Largest peak", trace.live_at_peak, place));
    }
    for (name, figures, note) in rows {
        table.row(vec![
            (name.to_owned(), Style::Label),
            (estimated_bytes(figures.bytes), Style::Plain),
            (
                format!("{} blocks", estimated_count(figures.blocks)),
                Style::Plain,
            ),
            (note, Style::Faint),
        ]);
    }
    table
}

fn traces(page: &mut Page, report: &CombinedSummary, context: &Context<'_>) {
    page.title("Traces");
    let columns = [
        ("allocated", Align::Right),
        ("at peak", Align::Right),
        ("blocks", Align::Right),
        ("time", Align::Right),
        ("trace", Align::Left),
        ("command", Align::Left),
    ];
    let mut table = Table::new(context.screen, &columns, 5).droppable(&[3, 2]);
    let used = report.traces.iter().filter(|trace| !is_empty(trace));
    let shown = used.clone().take(LISTED);
    for trace in shown {
        table.row(vec![
            (estimated_bytes(trace.allocated.bytes), Style::Plain),
            (bytes(trace.live_at_peak.bytes.value), Style::Plain),
            (estimated_count_short(trace.allocated.blocks), Style::Plain),
            (seconds(trace.subject.duration), Style::Plain),
            (sanitize(&trace.file).into_owned(), Style::Plain),
            (sanitize(&trace.command).into_owned(), Style::Faint),
        ]);
    }
    let used = used.count();
    if used > 0 {
        page.table(&table);
    }
    if let Some(more @ 1..) = used.checked_sub(LISTED) {
        page.note(&format!(
            "{} (see --json).",
            plural(more as u64, "more trace")
        ));
    }
    if let empty @ 1.. = report.traces.len() - used {
        let traces = plural(empty as u64, "trace");
        let verb = if empty == 1 { "has" } else { "have" };
        page.note(&format!(
            "{traces} {verb} no sampled blocks, or none that match the filter."
        ));
    }
}

fn is_empty(trace: &TraceSummary) -> bool {
    trace.subject.sampled_blocks == 0
}
