//! `info` of a heap snapshot.

use heapline_heap::reports::HeapInfo;

use super::{amount, limits};
use crate::info::{TraceFile, date};
use crate::page::Page;
use crate::screen::Context;
use crate::styled::{Line, Style, Text};
use crate::table::{Align, Table};
use crate::units::{bytes, count, plural, program_name};

/// Renders the contents of a heap snapshot.
#[must_use]
pub fn info(info: &HeapInfo, file: TraceFile<'_>, context: &Context<'_>) -> Text {
    let subject = &info.subject;
    let mut page = Page::new(context.screen);
    let program = subject.program.as_deref().unwrap_or_default();
    page.title(program_name(program));
    let mut row = |label: &str, value: String| page.row(label, &Line::plain(&value));
    let pid = subject.pid.map(|pid| format!(" (pid {pid})"));
    row("Program", format!("{program}{}", pid.unwrap_or_default()));
    if let Some(time) = info.time_ns {
        let stopped = info.stopped().map(|stopped| {
            let milliseconds = stopped.as_secs_f64() * 1e3;
            format!(", with a stop of {milliseconds:.1} ms")
        });
        row(
            "Taken",
            format!("{}{}", date(time / 1000), stopped.unwrap_or_default()),
        );
    }
    let size = file.size.map(|size| format!(", {}", bytes(size as f64)));
    let runtime = info
        .runtime
        .as_ref()
        .map(|runtime| format!(", of {runtime}"));
    row(
        "Snapshot",
        format!(
            "{}{}{}",
            file.name,
            size.unwrap_or_default(),
            runtime.unwrap_or_default()
        ),
    );
    if let Some(trace) = &info.trace {
        let sampled = plural(info.sampled_blocks, "sampled block");
        row("Recording", format!("{trace}, {sampled}"));
    }
    row("Reachable", amount(subject.total));
    if info.outside > 0 {
        row(
            "  outside",
            format!(
                "{} of that is outside of the heap",
                bytes(info.outside as f64)
            ),
        );
    }
    row(
        "Static data",
        format!("{}, does not count", amount(info.fixed)),
    );
    page.title("Blocks by tag, with static data");
    let columns = [
        ("bytes", Align::Right),
        ("blocks", Align::Right),
        ("tag", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(context.screen, &columns, 3).droppable(&[2]);
    for row in &info.tags {
        table.row(vec![
            (bytes(row.amount.bytes as f64), Style::Plain),
            (count(row.amount.blocks), Style::Plain),
            (row.tag.to_string(), Style::Faint),
            (row.name.to_owned(), Style::Plain),
        ]);
    }
    page.table(&table);
    limits(&mut page, subject);
    page.finish()
}
