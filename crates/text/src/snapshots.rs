//! The snapshots of a profile that has those in place of single blocks, as part of `info`.

use heapline_model::{GcCounters, Snapshot};
use heapline_profile::reports::Overview;

use crate::page::Page;
use crate::sanitize::sanitize;
use crate::screen::Context;
use crate::styled::{Line, Style};
use crate::table::{Align, Table};
use crate::units::{bytes, count, plural, seconds};

/// Snapshots and events that are shown; `--json` has all.
const SHOWN: usize = 24;

/// Adds the snapshots, the garbage collector's counters at the last one, and the program's events.
pub(crate) fn snapshots(page: &mut Page, overview: &Overview, context: &Context<'_>) {
    page.title("Snapshots");
    if overview.snapshots.is_empty() {
        page.note("None were taken: all that is known is what was allocated.");
    } else {
        page.table(&table(overview, context));
    }
    let hidden = overview.snapshots.len().saturating_sub(SHOWN);
    if hidden > 0 {
        page.note(&format!(
            "{} in between (see --json).",
            plural(hidden as u64, "more snapshot")
        ));
    }
    if overview
        .snapshots
        .iter()
        .any(|snapshot| snapshot.unattributed_bytes > 0)
    {
        page.note("`unknown`: the part of the live memory whose allocation was not recorded.");
    }
    if !overview.marks.is_empty() {
        page.title("Events");
    }
    for mark in overview.marks.iter().take(SHOWN) {
        let time = seconds(mark.time as f64 / 1e6);
        page.row(&time, &Line::plain(&sanitize(&mark.name)));
    }
    let hidden = overview.marks.len().saturating_sub(SHOWN);
    if hidden > 0 {
        let more = plural(hidden as u64, "more event");
        page.note(&format!("{more} (see --json)."));
    }
    if let Some(gc) = overview.snapshots.last().and_then(|last| last.gc) {
        page.title("Garbage collector, at the last snapshot");
        counters(page, &gc, overview.trace.word_size as f64 / 8.0);
    }
}

fn table(overview: &Overview, context: &Context<'_>) -> Table {
    let mut table = Table::new(
        context.screen,
        &[
            ("", Align::Right),
            ("time", Align::Right),
            ("live", Align::Right),
            ("blocks", Align::Right),
            ("unknown", Align::Right),
            ("heap", Align::Right),
            ("collections", Align::Right),
        ],
        0,
    )
    .droppable(&[6, 4, 5]);
    let snapshots = &overview.snapshots;
    let last = snapshots.len().saturating_sub(SHOWN / 2);
    let is_shown = |i: usize| snapshots.len() <= SHOWN || i < SHOWN / 2 || i >= last;
    for (i, snapshot) in snapshots.iter().enumerate().filter(|(i, _)| is_shown(*i)) {
        table.row(cells(i, snapshot, overview.trace.word_size / 8));
    }
    table
}

fn cells(number: usize, snapshot: &Snapshot, word_bytes: u64) -> Vec<(String, Style)> {
    let plain = |text: String| (text, Style::Plain);
    let gc = snapshot.gc;
    vec![
        (number.to_string(), Style::Faint),
        plain(seconds(snapshot.time as f64 / 1e6)),
        plain(bytes(snapshot.live_bytes as f64)),
        plain(count(snapshot.live_blocks)),
        plain(match snapshot.unattributed_bytes {
            0 => "-".to_owned(),
            n => bytes(n as f64),
        }),
        plain(gc.map_or_else(String::new, |gc| {
            bytes(gc.heap_words.saturating_mul(word_bytes) as f64)
        })),
        plain(gc.map_or_else(String::new, |gc| {
            let (minor, major) = (count(gc.minor_collections), count(gc.major_collections));
            format!("{minor} minor, {major} major")
        })),
    ]
}

fn counters(page: &mut Page, gc: &GcCounters, word_bytes: f64) {
    let words = |n: u64| format!("{} ({} words)", bytes(n as f64 * word_bytes), count(n));
    for (label, value) in [
        ("Minor heap", format!("{} allocated", words(gc.minor_words))),
        ("Promoted", words(gc.promoted_words)),
        (
            "Major heap",
            format!("{} allocated or promoted", words(gc.major_words)),
        ),
        (
            "Heap",
            format!(
                "{} in {}, at most {}",
                words(gc.heap_words),
                plural(gc.heap_chunks, "chunk"),
                bytes(gc.top_heap_words as f64 * word_bytes)
            ),
        ),
        (
            "Collections",
            format!(
                "{} minor, {} major, {}",
                count(gc.minor_collections),
                count(gc.major_collections),
                plural(gc.compactions, "compaction")
            ),
        ),
    ] {
        page.row(label, &Line::plain(&value));
    }
}
