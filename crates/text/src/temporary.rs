//! `temporary`: groups by memory that is freed soon.

use heapline_profile::reports::{Temporary, TemporaryFigures};

use crate::NO_SAMPLES;
use crate::own_code::{condition, own_code};
use crate::page::Page;
use crate::screen::Context;
use crate::styled::{Line, Style, Text};
use crate::table::{Align, Table};
use crate::units::{bytes, estimated_bytes, label, percent, seconds};

/// Renders the groups with the most temporary memory.
#[must_use]
pub fn temporary(report: &Temporary, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    let total = &report.total;
    page.title(&format!(
        "{} allocated is freed within {}: {} of {}",
        estimated_bytes(total.temporary.bytes),
        seconds(report.within),
        share(total),
        bytes(total.allocated.bytes.value)
    ));
    if report.subject.sampled_blocks == 0 {
        page.note(NO_SAMPLES);
        return page.finish();
    }
    if report.subject.tells.promotions {
        page.note(&format!(
            "{} of it was promoted before it was freed: that costs most. A garbage collector notices \
             deaths at its next collection.",
            bytes(total.promoted.bytes.value)
        ));
    }
    page.gap();
    if report.rows.is_empty() {
        page.line(&Line::plain("No temporary memory."));
    } else {
        page.table(&table(report, context));
    }
    page.hidden_rows(report.hidden_rows);
    own_code(&mut page, &report.subject);
    let first = report.rows.first();
    if let Some(query) = first.and_then(|row| condition(report.by, &row.label, &report.subject)) {
        page.next(
            context,
            &[(
                "tree",
                &["--bottom-up", "--where", &query],
                "callers of the first row",
            )],
        );
    }
    page.finish()
}

fn table(report: &Temporary, context: &Context<'_>) -> Table {
    let tells_promotions = report.subject.tells.promotions;
    let mut columns = vec![("temporary", Align::Right), ("share of own", Align::Right)];
    if tells_promotions {
        columns.push(("promoted", Align::Right));
    }
    columns.push((report.by.name(), Align::Left));
    let mut table = Table::new(context.screen, &columns, columns.len() - 1);
    for row in &report.rows {
        let figures = &row.figures;
        let mut cells = vec![
            (estimated_bytes(figures.temporary.bytes), Style::Plain),
            (share(figures), Style::Plain),
        ];
        if tells_promotions {
            cells.push((bytes(figures.promoted.bytes.value), Style::Plain));
        }
        cells.push((label(&row.label), Style::Plain));
        table.row(cells);
    }
    table
}

/// The part of what a group allocates that is temporary.
fn share(figures: &TemporaryFigures) -> String {
    percent(figures.temporary.bytes.value, figures.allocated.bytes.value)
}
