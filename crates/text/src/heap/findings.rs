//! `findings`: what looks like waste.

use heapline_heap::reports::{Finding, Findings};

use super::{amount, limits, program};
use crate::page::Page;
use crate::screen::Context;
use crate::styled::{Style, Text};
use crate::table::{Align, Table};
use crate::units::{bytes, count};

/// Renders findings.
#[must_use]
pub fn findings(report: &Findings, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    let subject = &report.subject;
    page.title(&format!("{}: {}", program(subject), amount(subject.total)));
    let sections: [(&str, &Finding, &str); 6] = [
        (
            "Duplicate strings",
            &report.duplicate_strings,
            "would be saved by one copy of each",
        ),
        (
            "Hash tables with fewer bindings than half of their buckets",
            &report.sparse_tables,
            "are empty buckets",
        ),
        (
            "Buffers that use less than half of their memory",
            &report.sparse_buffers,
            "are unused",
        ),
        (
            "Continuations that wait to be resumed",
            &report.continuations,
            "are retained by them",
        ),
        (
            "Memory that only finalisers keep alive",
            &report.finalisers,
            "would be freed without them",
        ),
        (
            "Data of ephemerons whose keys are alive",
            &report.ephemerons,
            "are retained by it",
        ),
    ];
    let mut is_empty = true;
    for (title, finding, what) in sections {
        if finding.values == 0 {
            continue;
        }
        is_empty = false;
        page.title(title);
        page.note(&format!("{} {what}.", bytes(finding.bytes as f64)));
        page.table(&table(finding, context));
        page.hidden_rows(finding.hidden_rows);
    }
    if is_empty {
        page.note("Nothing found.");
    }
    limits(&mut page, subject);
    page.finish()
}

fn table(finding: &Finding, context: &Context<'_>) -> Table {
    let columns = [
        ("bytes", Align::Right),
        ("values", Align::Right),
        ("", Align::Left),
        ("held by", Align::Left),
    ];
    let mut table = Table::new(context.screen, &columns, 3);
    for row in &finding.rows {
        let held_by = row
            .held_by
            .clone()
            .unwrap_or_else(|| "several roots".to_owned());
        table.row(vec![
            (bytes(row.bytes as f64), Style::Plain),
            (count(row.values), Style::Plain),
            (row.name.clone(), Style::Plain),
            (held_by, Style::Plain),
        ]);
    }
    table
}
