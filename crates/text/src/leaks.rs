//! `leaks`: groups whose old memory grows.

use heapline_profile::reports::{Leak, Leaks};
use heapline_profile::{Estimate, Trend, TrendState};

use crate::chart::sparkline;
use crate::own_code::{condition, own_code};
use crate::page::Page;
use crate::sanitize::sanitize;
use crate::screen::Context;
use crate::styled::{Line, Style, Text};
use crate::table::{Align, Table};
use crate::units::{bytes, estimated_bytes, estimated_change, label, percent, plural, seconds};
use crate::width::fit;

/// Columns for the name of a holder.
const MAX_HOLDER: usize = 28;

/// Renders the groups that grow.
#[must_use]
pub fn leaks(report: &Leaks, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    let by = report.by.name();
    // Of the run, or of what precedes the time that was asked for.
    let is_end = report.at >= report.subject.duration;
    let (when, run) = if is_end {
        ("the end".to_owned(), "run")
    } else {
        (seconds(report.at), "time until then")
    };
    page.title(&format!(
        "{} live at {when} is older than {}, {} than half-way through the {run}",
        estimated_bytes(report.retained.bytes),
        seconds(report.min_age),
        more_or_less(report.growth)
    ));
    page.note(&format!(
        "Growth: memory older than {} ({} of the {run}) at {when}, minus half-way through. Rows grow \
         by more than the sampling error.",
        seconds(report.min_age),
        percent(report.tail, 1.0)
    ));
    page.gap();
    if report.rows.is_empty() {
        page.line(&Line::plain("No significant growth."));
    } else {
        page.table(&table(report, context));
    }
    if let Some(snapshot) = &report.snapshot
        && !report.rows.is_empty()
    {
        page.note(&format!(
            "Held by: what keeps most of a row's memory alive, by the heap snapshot {} (?: not in it).",
            sanitize(snapshot)
        ));
    }
    page.hidden_rows(report.hidden_rows);
    own_code(&mut page, &report.subject);
    if report.steady_groups > 0 {
        let more = if report.rows.is_empty() { "" } else { "more " };
        let (hold, show) = match report.steady_groups {
            1 => ("holds", "shows"),
            _ => ("hold", "show"),
        };
        page.note(&format!(
            "{} {hold} {} but {show} no significant growth.",
            plural(report.steady_groups as u64, &format!("{more}{by}")),
            bytes(report.steady.bytes.value)
        ));
    }
    let first = report.rows.first();
    if let Some(query) = first.and_then(|row| condition(report.by, &row.label, &report.subject)) {
        let at = if is_end {
            "end".to_owned()
        } else {
            format!("{}s", report.at)
        };
        page.next(
            context,
            &[(
                "tree",
                &["--live", &at, "--bottom-up", "--where", &query],
                "callers of the first row",
            )],
        );
    }
    page.finish()
}

fn table(report: &Leaks, context: &Context<'_>) -> Table {
    let held = if report.at >= report.subject.duration {
        "held at end"
    } else {
        "held then"
    };
    let mut columns = vec![
        ("growth", Align::Right),
        ("rate", Align::Right),
        (held, Align::Right),
        ("trend", Align::Left),
        ("live over time", Align::Left),
        (report.by.name(), Align::Left),
    ];
    if report.snapshot.is_some() {
        columns.push(("held by", Align::Left));
    }
    let mut table = Table::new(context.screen, &columns, 5).droppable(&[2, 4, 1]);
    for row in &report.rows {
        let (trend, style) = trend(&row.trend);
        let mut cells = vec![
            (estimated_change(row.growth), style),
            (rate(&row.trend), Style::Plain),
            (bytes(row.retained.bytes.value), Style::Plain),
            (trend, style),
            (sparkline(&live(row)), Style::Plain),
            (label(&row.label), Style::Plain),
        ];
        if report.snapshot.is_some() {
            cells.push((held_by(row), Style::Plain));
        }
        table.row(cells);
        if let Some(via) = &row.label.via {
            let mut cells = vec![(String::new(), Style::Plain); columns.len()];
            cells[5] = (format!("  in {}", sanitize(via)), Style::Faint);
            table.row(cells);
        }
    }
    table
}

/// The largest holder, with its share if there are others.
fn held_by(row: &Leak) -> String {
    let Some(holder) = row.held_by.first() else {
        return "?".to_owned();
    };
    let name = fit(&sanitize(&holder.name), MAX_HOLDER);
    let (part, whole) = (holder.bytes.value, row.retained.bytes.value);
    if part > 0.995 * whole {
        name
    } else {
        format!("{name} ({})", percent(part, whole))
    }
}

/// The direction at the end, and since when, such as `flat since 11.5 s ± 300 ms`.
fn trend(trend: &Trend) -> (String, Style) {
    let (state, style) = match trend.state {
        TrendState::Growing => ("growing", Style::Bad),
        TrendState::Flat => ("flat", Style::Plain),
        TrendState::Shrinking => ("shrinking", Style::Plain),
        TrendState::Uneven => ("up and down", Style::Plain),
    };
    let since = trend.since.map_or_else(String::new, |since| {
        format!(" since {} ± {}", seconds(since.time), seconds(since.error))
    });
    (format!("{state}{since}"), style)
}

/// The rate at which memory grows, or grew last.
fn rate(trend: &Trend) -> String {
    let rate = trend.rate.map(estimated_bytes);
    rate.map_or_else(String::new, |rate| format!("{rate}/s"))
}

/// Live bytes at about 24 points of time.
fn live(row: &Leak) -> Vec<f64> {
    row.live
        .chunks(row.live.len().div_ceil(24).max(1))
        .filter_map(|chunk| chunk.last().copied())
        .collect()
}

fn more_or_less(growth: Estimate) -> String {
    let word = if growth.value < 0.0 { "less" } else { "more" };
    let amount = estimated_change(growth);
    format!("{} {word}", amount.trim_start_matches(['+', '-']))
}
