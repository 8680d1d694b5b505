//! `retained`: what would be freed.

use heapline_heap::reports::{Retained, RetainedBy};

use super::{amount, limits, named, path, program};
use crate::page::Page;
use crate::screen::Context;
use crate::styled::{Line, Style, Text};
use crate::table::{Align, Table};
use crate::units::{bytes, count_short, percent_number};

/// Renders retained sizes.
#[must_use]
pub fn retained(report: &Retained, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    let subject = program(&report.subject);
    if report.at.is_empty() {
        page.title(&format!(
            "{subject}: {}, retained by {}",
            amount(report.retained),
            report.by.name()
        ));
    } else {
        page.title(&format!(
            "{subject}: {}, retained by",
            amount(report.retained)
        ));
        page.line(&Line::plain(&path(&report.at)));
    }
    page.gap();
    if report.rows.is_empty() {
        page.line(&Line::plain("Nothing."));
        return page.finish();
    }
    page.table(&table(report, context));
    page.hidden_rows(report.hidden_rows);
    if report.rows.iter().any(|row| row.is_shared) {
        page.note(
            "(several ...): several of them reach it, so that it is freed with none of them alone.",
        );
    }
    if report.rows.iter().any(|row| row.reached.is_some()) {
        page.note(
            "reached: memory whose shortest path from a root goes through the row, shared or not.",
        );
    }
    if report.at.is_empty() && matches!(report.by, RetainedBy::Closure | RetainedBy::Kind) {
        page.note("Values may retain values of other rows: rows overlap.");
    }
    limits(&mut page, &report.subject);
    let rows = report.rows.iter().rev();
    let largest = rows
        .filter(|row| !row.is_shared && row.name != "(itself)")
        .max_by_key(|row| row.retained.bytes);
    // If others reach the memory too, what the row alone retains explains nothing.
    let rows = report.rows.iter().rev();
    let nearest = rows.max_by_key(|row| row.reached.map(|reached| reached.bytes));
    let shared = nearest.filter(|row| row.is_mostly_shared);
    if let Some(row) = largest {
        let mut at: Vec<&str> = report.at.iter().map(|step| step.name.as_str()).collect();
        at.push(&row.name);
        let at = at.join(" > ");
        let (option, name, paths) = match shared {
            Some(row) => (
                "--through",
                &row.name,
                "paths through the one that reaches most",
            ),
            None => ("--held-by", &row.name, "paths to what it retains"),
        };
        page.next(
            context,
            &[
                ("retained", &["--at", &at], "what the largest one retains"),
                ("why", &[option, name], paths),
            ],
        );
    }
    page.finish()
}

fn table(report: &Retained, context: &Context<'_>) -> Table {
    let title = if report.at.is_empty() {
        report.by.name()
    } else {
        "value"
    };
    let mut table = Table::new(
        context.screen,
        &[
            ("retained", Align::Right),
            ("%", Align::Right),
            ("reached", Align::Right),
            ("blocks", Align::Right),
            ("own", Align::Right),
            ("values", Align::Right),
            (title, Align::Left),
        ],
        6,
    )
    .droppable(&[5, 3, 4]);
    let whole = report.subject.total.bytes as f64;
    for row in &report.rows {
        let style = if row.is_shared {
            Style::Faint
        } else {
            Style::Plain
        };
        let values = if row.values > 1 {
            count_short(row.values as f64)
        } else {
            String::new()
        };
        let reached = row.reached.filter(|_| !row.is_shared);
        let reached = reached.map_or_else(String::new, |reached| bytes(reached.bytes as f64));
        let own = if row.own.blocks > 0 {
            bytes(row.own.bytes as f64)
        } else {
            String::new()
        };
        table.row(vec![
            (bytes(row.retained.bytes as f64), style),
            (percent_number(row.retained.bytes as f64, whole), style),
            (reached, style),
            (count_short(row.retained.blocks as f64), style),
            (own, style),
            (values, style),
            (named(&row.name, row.place.as_deref()), style),
        ]);
    }
    table
}
