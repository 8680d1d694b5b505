//! `leaks`: groups whose old memory grows.

use heapline_profile::reports::{Leak, Leaks};
use heapline_profile::{Estimate, GrowthShape, Trend, TrendPiece, TrendState};

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
        ("per second", Align::Right),
        (held, Align::Right),
        ("shape", Align::Left),
        ("live over time", Align::Left),
        (report.by.name(), Align::Left),
    ];
    if report.snapshot.is_some() {
        columns.push(("held by", Align::Left));
    }
    let mut table = Table::new(context.screen, &columns, 5).droppable(&[1, 4, 2]);
    for row in &report.rows {
        let (shape, style) = shape(row.shape);
        let mut cells = vec![
            (estimated_change(row.growth), style),
            (format!("{}/s", bytes(row.growth_per_second)), Style::Plain),
            (bytes(row.retained.bytes.value), Style::Plain),
            (shape.to_owned(), style),
            (sparkline(&live(row)), Style::Plain),
            (label(&row.label), Style::Plain),
        ];
        if report.snapshot.is_some() {
            cells.push((held_by(row), Style::Plain));
        }
        table.row(cells);
        let via = row.label.via.as_ref();
        let below = via.map(|via| format!("  in {}", sanitize(via)));
        for text in below
            .into_iter()
            .chain([format!("  {}", trend(&row.trend))])
        {
            let mut cells = vec![(String::new(), Style::Plain); columns.len()];
            cells[5] = (text, Style::Faint);
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

/// The growth in words, such as `grew 2.1 ± 0.3 MiB/s until 11.5 ± 0.3 s, flat since`.
fn trend(trend: &Trend) -> String {
    let Some(piece) = trend.last_growth() else {
        return "no steady growth".to_owned();
    };
    let rate = format!("{}/s", estimated_bytes(piece.rate));
    let until = |end: &TrendPiece| format!("{} ± {}", seconds(end.to), seconds(end.to_error));
    let since = match trend.state {
        TrendState::Growing => {
            let before = trend.pieces.iter().rev().nth(1);
            let since = before.map_or_else(String::new, |end| format!(" since {}", until(end)));
            return format!("still growing, {rate}{since}");
        }
        TrendState::Flat => "flat",
        TrendState::Shrinking => "shrinking",
    };
    format!("grew {rate} until {}, {since} since", until(piece))
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

fn shape(shape: GrowthShape) -> (&'static str, Style) {
    match shape {
        GrowthShape::Linear => ("linear", Style::Bad),
        GrowthShape::Bounded => ("bounded", Style::Plain),
        GrowthShape::Burst => ("burst", Style::Warning),
        GrowthShape::Periodic => ("periodic", Style::Plain),
        GrowthShape::Irregular => ("irregular", Style::Warning),
        GrowthShape::Unclear => ("unclear", Style::Faint),
    }
}
