//! `diff`: paths to memory that grew.

use heapline_heap::reports::HeapDiff;

use super::{amount, limits, path, program};
use crate::page::Page;
use crate::screen::Context;
use crate::styled::{Line, Style, Text};
use crate::units::{bytes, signed_count_short};

/// Columns of changes.
const CHANGE: usize = 10;

/// Renders a comparison of two snapshots.
#[must_use]
pub fn diff(report: &HeapDiff, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    page.title(&program(&report.after));
    page.row("before", &Line::plain(&amount(report.before.total)));
    page.row("after", &Line::plain(&amount(report.after.total)));
    let change = report.after.total.bytes as f64 - report.before.total.bytes as f64;
    page.row("change", &Line::plain(&signed(change)));
    page.title("Changes by path, after minus before");
    if report.rows.is_empty() {
        page.note("None.");
        return page.finish();
    }
    for row in &report.rows {
        let style = if row.bytes > 0 {
            Style::Bad
        } else {
            Style::Good
        };
        let own = if row.is_own { " (itself)" } else { "" };
        let amounts = format!(
            "  {} before, {} after, {} blocks",
            bytes(row.before.bytes as f64),
            bytes(row.after.bytes as f64),
            signed_count_short(row.blocks as f64)
        );
        let line = Line::plain("  ")
            .with(&format!("{:>CHANGE$}  ", signed(row.bytes as f64)), style)
            .with(&format!("{}{own}", path(&row.path)), Style::Plain)
            .with(&amounts, Style::Faint);
        page.wrapped(&line, CHANGE + 6);
    }
    page.hidden_rows(report.hidden_rows);
    page.note(
        "The figures are exact. Values are compared by the names on their shortest path from a root.",
    );
    if (report.before.folded > 0) != (report.after.folded > 0) {
        page.note(
            "Only one of the snapshots is folded, so that small blocks are in other rows; take both with the same --fold.",
        );
    }
    limits(&mut page, &report.before);
    limits(&mut page, &report.after);
    page.finish()
}

fn signed(change: f64) -> String {
    let sign = if change > 0.0 { "+" } else { "" };
    format!("{sign}{}", bytes(change))
}
