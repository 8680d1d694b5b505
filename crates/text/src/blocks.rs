//! `blocks`: single sampled blocks.

use heapline_profile::reports::{BlockRow, BlockSort, Blocks};

use crate::NO_SAMPLES;
use crate::page::Page;
use crate::screen::Context;
use crate::styled::{Style, Text};
use crate::table::{Align, Table};
use crate::units::{bytes, estimated_bytes, label, plural, seconds};

/// Frames of each stack that are shown.
const FRAMES: usize = 3;

/// Renders a list of blocks.
#[must_use]
pub fn blocks(report: &Blocks, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    let subject = &report.subject;
    page.title(&format!(
        "{}: {}, {}",
        plural(subject.sampled_blocks as u64, "sampled block"),
        estimated_bytes(report.total.bytes),
        match report.sort {
            BlockSort::Size => "largest first",
            BlockSort::Weight => "those that represent most bytes first",
            BlockSort::Age => "longest lifetime first",
            BlockSort::Birth => "earliest allocation first",
        }
    ));
    if subject.sampled_blocks == 0 {
        page.note(NO_SAMPLES);
        return page.finish();
    }
    page.table(&table(report, context));
    page.hidden_rows(report.hidden_rows);
    if !subject.is_exact {
        page.note("Represents: the bytes that were allocated for each such sample, on average.");
    }
    if report.rows.iter().any(|row| row.is_live) {
        page.note(">: live at the end, so the lifetime is a lower bound.");
    }
    if report.rows.iter().any(|row| row.stack.len() > FRAMES) {
        page.note(&format!(
            "The {FRAMES} innermost frames of each stack; --json has all."
        ));
    }
    page.finish()
}

fn table(report: &Blocks, context: &Context<'_>) -> Table {
    let columns = [
        ("size", Align::Right),
        ("represents", Align::Right),
        ("allocated at", Align::Right),
        ("lifetime", Align::Right),
        ("heap", Align::Left),
        ("domain", Align::Right),
        ("site and callers", Align::Left),
    ];
    let mut table = Table::new(context.screen, &columns, 6).droppable(&[5, 4, 2]);
    for row in &report.rows {
        let frames = row.stack.iter().take(FRAMES).map(label);
        let mut frames = frames.collect::<Vec<_>>().into_iter();
        let site = frames.next().unwrap_or_else(|| "(unknown)".to_owned());
        table.row(vec![
            (bytes(row.size as f64), Style::Plain),
            (bytes(row.bytes.value), Style::Plain),
            (seconds(row.allocated), Style::Plain),
            (lifetime(row), Style::Plain),
            (heap(row), Style::Plain),
            (row.domain.to_string(), Style::Plain),
            (site, Style::Plain),
        ]);
        for caller in frames {
            let mut cells = vec![(String::new(), Style::Plain); columns.len()];
            cells[columns.len() - 1] = (format!("  {caller}"), Style::Faint);
            table.row(cells);
        }
    }
    table
}

fn lifetime(row: &BlockRow) -> String {
    let sign = if row.is_live { "> " } else { "" };
    format!("{sign}{}", seconds(row.lifetime))
}

/// The heap of a block, and the one that it was promoted to.
fn heap(row: &BlockRow) -> String {
    match row.promoted {
        Some(_) => format!("{} → major", row.heap),
        None => row.heap.to_owned(),
    }
}
