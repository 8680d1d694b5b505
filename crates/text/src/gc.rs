//! `gc`: the pauses of the garbage collector, and their causes.

mod brief;

use std::fmt::Write as _;

use heapline_model::CollectionKind;
use heapline_profile::Estimate;
use heapline_profile::reports::{
    AuditedQuantity, CollectorWords, Gc, KindTimes, Lengths, PausePiece, WorstPause,
};

use crate::chart::{points, sparkline};
use crate::findings::push_sentence;
use crate::own_code::own_code;
use crate::page::Page;
use crate::screen::Context;
use crate::styled::{Line, Style, Text};
use crate::table::{Align, Table};
use crate::units::{
    bytes, count, count_short, estimated_bytes, label, percent, percent_number, plural, seconds,
};

pub use brief::gc_interval;

/// Columns before the text of a pause.
const INDENT: usize = 5;

/// The width of the names of curves.
const CURVE_NAME: usize = 12;

/// Renders the work of the garbage collector.
#[must_use]
pub fn gc(report: &Gc, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    page.title(&headline(report));
    page.note(&counts(report));
    losses(&mut page, report);
    if report.pauses.count == 0 {
        page.note("The collector did no work.");
        return page.finish();
    }
    page.gap();
    page.table(&kinds(report, context));
    words(&mut page, report, context);
    worst(&mut page, report, context);
    over_time(&mut page, report, context);
    domains(&mut page, report, context);
    next(&mut page, report, context);
    page.finish()
}

fn is_window(report: &Gc) -> bool {
    report.from > 0.0 || report.to + 1e-6 < report.subject.duration
}

/// Words in bytes.
fn in_bytes(report: &Gc, words: f64) -> f64 {
    words * report.subject.word_bytes
}

fn headline(report: &Gc) -> String {
    format!("Garbage collector: {}", figures(report))
}

/// The share of the time, the longest pause, and the promotion rate.
fn figures(report: &Gc) -> String {
    let share = percent(report.collector.percent, 100.0);
    let share = if share == "-" { "0 %" } else { &share };
    let mut line = format!("{share} of the time");
    if let Some(longest) = report.pauses.max {
        let _ = write!(line, ", longest pause {}", seconds(longest));
    }
    let promoted = report.words.as_ref();
    if let Some(rate) = promoted.and_then(|words| words.per_second(words.promoted)) {
        let _ = write!(line, ", {}/s promoted", bytes(in_bytes(report, rate)));
    }
    line
}

/// How often the collector ran.
fn counts(report: &Gc) -> String {
    let time = if is_window(report) {
        format!("from {} to {}", seconds(report.from), seconds(report.to))
    } else {
        format!("in {}", seconds(report.to))
    };
    let Some(counts) = report.counts else {
        return format!("{} {time}.", plural(report.pauses.count, "pause"));
    };
    let mut parts = vec![
        plural(counts.minor_collections, "minor collection"),
        plural(counts.major_collections, "major collection"),
    ];
    if counts.forced_major_collections > 0 {
        let forced = count(counts.forced_major_collections);
        parts.push(format!("{forced} forced"));
    }
    if counts.compactions > 0 {
        parts.push(plural(counts.compactions, "compaction"));
    }
    format!("{} {time}. Times and counts are exact.", parts.join(", "))
}

/// Says what the figures do not include.
fn losses(page: &mut Page, report: &Gc) {
    if let Some(missing @ 1..) = report.missing_collections {
        page.note(&format!(
            "{} that the runtime counted are missing from the recording: times and pauses are without them.",
            plural(missing, "minor collection")
        ));
    }
    if report.refused_collections > 0 {
        page.note(&format!(
            "{} with impossible times are left out.",
            plural(report.refused_collections, "collection")
        ));
    }
}

fn kinds(report: &Gc, context: &Context<'_>) -> Table {
    let columns = [
        ("", Align::Left),
        ("count", Align::Right),
        ("time", Align::Right),
        ("share", Align::Right),
        ("mean", Align::Right),
        ("p50", Align::Right),
        ("p90", Align::Right),
        ("p99", Align::Right),
        ("p99.9", Align::Right),
        ("longest", Align::Right),
    ];
    // The name never shrinks: means and two of the quantiles go first.
    let mut table = Table::new(context.screen, &columns, 0).droppable(&[4, 6, 8, 3]);
    let time = |seconds_of: Option<f64>| seconds_of.map_or_else(String::new, seconds);
    let mut row = |name: &str, lengths: &Lengths, total: f64, style: Style| {
        let cells = [
            name.to_owned(),
            count(lengths.count),
            seconds(total),
            format!("{} %", percent_number(total, report.collector.of_seconds)),
            time(lengths.mean),
            time(lengths.p50),
            time(lengths.p90),
            time(lengths.p99),
            time(lengths.p999),
            time(lengths.max),
        ];
        table.row(cells.into_iter().map(|cell| (cell, style)).collect());
    };
    for KindTimes { kind, lengths } in &report.kinds {
        row(kind_name(*kind), lengths, lengths.total, Style::Plain);
    }
    // The moments between the pieces of a pause are none of the collector's.
    row(
        "pauses",
        &report.pauses,
        report.collector.seconds,
        Style::Label,
    );
    table
}

/// All work of a kind in a table.
fn kind_name(kind: CollectionKind) -> &'static str {
    match kind {
        CollectionKind::Minor => "minor",
        CollectionKind::Slice => "major slices",
        CollectionKind::Forced => "forced major",
        CollectionKind::Finalisers => "finalisers",
        CollectionKind::Reading => "readings",
    }
}

fn words(page: &mut Page, report: &Gc, context: &Context<'_>) {
    let Some(words) = &report.words else {
        page.gap();
        page.note("Words allocated and promoted: unknown, since the runtime's counters are missing or inconsistent.");
        return;
    };
    page.gap();
    page.table(&amounts(report, words, context));
    if let Some(heap) = &report.heap {
        let heap_bytes = |words: u64| bytes(in_bytes(report, words as f64));
        page.row(
            "Major heap",
            &Line::plain(&format!(
                "at most {}, at {}; {} at the end, of which {} is free",
                heap_bytes(heap.max_words),
                seconds(heap.max_time),
                heap_bytes(heap.end_words),
                percent(heap.end_free_words as f64, heap.end_words as f64),
            )),
        );
    }
    let until = if words.is_complete || is_window(report) {
        String::new()
    } else {
        format!(" up to {}, when they were last read", seconds(words.to))
    };
    let disagrees = report.audit.is_some_and(|audit| audit.disagrees);
    page.note(&if disagrees {
        "The samples disagree with the runtime's counters by more than their error: figures of other reports are off by as much."
            .to_owned()
    } else if report.audit.is_some() {
        format!("Counted by the runtime{until}, so they are exact. The samples agree with them.")
    } else {
        format!("Counted by the runtime{until}, so they are exact.")
    });
}

fn amounts(report: &Gc, words: &CollectorWords, context: &Context<'_>) -> Table {
    let columns = [
        ("", Align::Left),
        ("counted", Align::Right),
        ("per second", Align::Right),
        ("sampled", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(context.screen, &columns, 0).droppable(&[4]);
    let per_second = |amount: u64| {
        words.per_second(amount).map_or_else(String::new, |rate| {
            format!("{}/s", bytes(in_bytes(report, rate)))
        })
    };
    let audit = report.audit.as_ref();
    let sum = audit.map(|audit| {
        // The parts are sampled independently.
        let (minor, direct) = (audit.minor.sampled, audit.direct.sampled);
        Estimate {
            value: minor.value + direct.value,
            error: minor.error.hypot(direct.error),
            ..Estimate::exact(minor.value + direct.value)
        }
    });
    let sampled = |quantity: Option<&AuditedQuantity>| match quantity {
        Some(quantity) if quantity.disagrees => {
            format!("{} (!)", estimated_bytes(quantity.sampled))
        }
        Some(quantity) => estimated_bytes(quantity.sampled),
        None => String::new(),
    };
    let share = words.promoted_percent.map_or_else(String::new, |share| {
        format!("{} of the minor heap", percent(share, 100.0))
    });
    let rows = [
        (
            "Allocated",
            words.allocated,
            sum.map_or_else(String::new, estimated_bytes),
            String::new(),
        ),
        (
            "  on the minor heap",
            words.minor,
            sampled(audit.map(|audit| &audit.minor)),
            String::new(),
        ),
        (
            "  directly on the major heap",
            words.direct,
            sampled(audit.map(|audit| &audit.direct)),
            String::new(),
        ),
        (
            "Promoted",
            words.promoted,
            sampled(audit.and_then(|audit| audit.promoted.as_ref())),
            share,
        ),
    ];
    for (name, amount, sampled, note) in rows {
        table.row(vec![
            (name.to_owned(), Style::Label),
            (bytes(in_bytes(report, amount as f64)), Style::Plain),
            (per_second(amount), Style::Plain),
            (sampled, Style::Faint),
            (note, Style::Faint),
        ]);
    }
    table
}

fn worst(page: &mut Page, report: &Gc, context: &Context<'_>) {
    if report.worst.is_empty() {
        return;
    }
    page.title("Longest pauses");
    let has_several = report.domains.len() > 1;
    for (number, pause) in (1..).zip(&report.worst) {
        let mut line = Line::plain(&format!("{number:>3}. "));
        line.push(&seconds(pause.length), Style::Label);
        line.push(&format!(" at {:.3} s", pause.start), Style::Plain);
        if has_several {
            line.push(&format!(", domain {}", pause.domain), Style::Plain);
        }
        line.push(&format!(": {}", pieces(pause)), Style::Faint);
        page.wrapped(&line, INDENT);
        for cause in &pause.causes {
            let mut line = Line::plain(&" ".repeat(INDENT));
            push_sentence(&mut line, &cause.sentence);
            page.wrapped(&line, INDENT);
        }
        if let Some(promoted) = &pause.promoted
            && !promoted.rows.is_empty()
        {
            page.table(&promoted_sites(pause, context));
        }
    }
    if report.hidden_rows > 0 {
        let pauses = plural(report.hidden_rows, "more pause");
        page.note(&format!("{pauses} (see --rows)."));
    }
    if report.worst.iter().any(|pause| pause.promoted.is_some()) {
        own_code(page, &report.subject);
    }
}

/// The work of a pause in words: `minor collection 1.2 ms, major slice (mark) 3.4 ms`.
fn pieces(pause: &WorstPause) -> String {
    /// More than these do not fit into a line.
    const SHOWN: usize = 3;
    let shown = pause.pieces.iter().take(SHOWN);
    let mut parts: Vec<String> = shown.map(|piece| piece_text(pause, piece)).collect();
    let hidden = pause.pieces.len().saturating_sub(SHOWN) as u64 + pause.hidden_pieces;
    if hidden > 0 {
        parts.push(format!("and {} more", count(hidden)));
    }
    parts.join(", ")
}

fn piece_text(pause: &WorstPause, piece: &PausePiece) -> String {
    let phase = piece
        .phase
        .map_or_else(String::new, |phase| format!(" ({})", phase.name()));
    let name = piece.kind.name();
    if pause.pieces.len() == 1 && pause.hidden_pieces == 0 {
        return format!("{name}{phase}");
    }
    format!("{name}{phase} {}", seconds(piece.length))
}

/// The sites whose blocks a pause promoted.
fn promoted_sites(pause: &WorstPause, context: &Context<'_>) -> Table {
    let columns = [("", Align::Right), ("", Align::Right), ("", Align::Left)];
    let mut table = Table::new(context.screen, &columns, 2).indent(INDENT + 2);
    let rows = pause.promoted.iter().flat_map(|promoted| &promoted.rows);
    for row in rows {
        let is_noise = row.bytes.error > 0.0 && row.bytes.is_noise();
        let style = if is_noise { Style::Faint } else { Style::Plain };
        table.row(vec![
            (estimated_bytes(row.bytes), style),
            (format!("{:.1} %", row.percent), style),
            (label(&row.label), style),
        ]);
    }
    table
}

fn over_time(page: &mut Page, report: &Gc, context: &Context<'_>) {
    let series = &report.series;
    let width = points(context.screen).saturating_sub(CURVE_NAME);
    let fold = series.times.len().div_ceil(width.max(1));
    let column = series.times.len().div_ceil(fold.max(1)).max(1);
    page.title(&format!(
        "Over time (a column is {})",
        seconds((report.to - report.from) / column as f64)
    ));
    let word_bytes = report.subject.word_bytes;
    let largest = |values: &[f64]| -> Vec<f64> {
        let groups = values.chunks(fold.max(1));
        groups
            .map(|group| group.iter().copied().fold(0.0, f64::max))
            .collect()
    };
    let mut table = Table::new(
        context.screen,
        &[("", Align::Left), ("", Align::Left), ("", Align::Left)],
        2,
    );
    let mut curve = |name: &str, values: &[f64], format: &dyn Fn(f64) -> String| {
        let values = largest(values);
        let most = values.iter().copied().fold(0.0, f64::max);
        if most > 0.0 {
            table.row(vec![
                (name.to_owned(), Style::Label),
                (sparkline(&values), Style::Plain),
                (format!("up to {}", format(most)), Style::Faint),
            ]);
        }
    };
    let rate = |words: f64| format!("{}/s", bytes(words * word_bytes));
    curve("collector", &series.collector_percent, &|share| {
        percent(share, 100.0)
    });
    curve("pause", &series.longest_pause, &seconds);
    curve("minor gc", &series.minor_collections, &|n| {
        format!("{}/s", count_short(n))
    });
    let counted = [
        ("allocated", &series.minor_words),
        ("direct", &series.direct_words),
        ("promoted", &series.promoted_words),
    ];
    for (name, values) in counted {
        curve(name, values.as_deref().unwrap_or(&[]), &rate);
    }
    let sizes = [("heap", &series.heap_words), ("free", &series.free_words)];
    for (name, values) in sizes {
        let values = values.as_deref().unwrap_or(&[]).iter();
        let values: Vec<f64> = values.map(|words| words.unwrap_or(0.0)).collect();
        curve(name, &values, &|words| bytes(words * word_bytes));
    }
    page.table(&table);
}

fn domains(page: &mut Page, report: &Gc, context: &Context<'_>) {
    if report.domains.len() < 2 {
        return;
    }
    page.title("By domain");
    let columns = [
        ("domain", Align::Right),
        ("collector", Align::Right),
        ("pauses", Align::Right),
        ("longest", Align::Right),
        ("allocated", Align::Right),
        ("promoted", Align::Right),
        ("arrived last", Align::Right),
        ("held up others", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(context.screen, &columns, 8).droppable(&[2, 6, 4, 3]);
    for domain in &report.domains {
        let stops = report.stops.as_ref().and_then(|stops| {
            let mut domains = stops.domains.iter();
            domains.find(|stops| stops.domain == domain.domain)
        });
        let words = |words: fn(&CollectorWords) -> u64| {
            domain.words.as_ref().map_or_else(
                || "?".to_owned(),
                |found| bytes(in_bytes(report, words(found) as f64)),
            )
        };
        let cells = [
            domain.domain.to_string(),
            percent(domain.collector.percent, 100.0),
            count(domain.pauses.count),
            domain.pauses.max.map_or_else(String::new, seconds),
            words(|words| words.allocated),
            words(|words| words.promoted),
            stops.map_or_else(String::new, |stops| count(stops.arrived_last)),
            stops.map_or_else(String::new, |stops| seconds(stops.held_up)),
            String::new(),
        ];
        let cells = cells.into_iter().map(|cell| (cell, Style::Plain));
        table.row(cells.collect());
    }
    page.table(&table);
    let Some(stops) = &report.stops else {
        return;
    };
    if let Some(worst) = stops.worst_gathering {
        page.note(&format!(
            "A minor collection stops all domains: {} did, in which they waited {} for the last one to arrive, all together. \
             The longest wait was {} at {:.3} s, for domain {}.",
            plural(stops.lengths.count, "collection"),
            seconds(stops.waited),
            seconds(worst.gathering),
            worst.start,
            worst.arrived_last,
        ));
    }
}

fn next(page: &mut Page, report: &Gc, context: &Context<'_>) {
    let mut commands: Vec<(&str, Vec<&str>, &str)> = Vec::new();
    let has_promoted = report.words.is_some_and(|words| words.promoted > 0);
    if has_promoted {
        commands.push((
            "hotspots",
            vec!["--where", "promoted", "--by", "site"],
            "which code allocates what is promoted",
        ));
    }
    // A window around the longest pause.
    let window = report.worst.first().map(|pause| {
        let margin = (10.0 * pause.length).max(1e-3);
        let from = (pause.start - margin).max(0.0);
        format!("{from:.3}s..{:.3}s", pause.start + pause.length + margin)
    });
    if let Some(window) = &window
        && !is_window(report)
    {
        commands.push((
            "gc",
            vec!["--window", window],
            "the time around the longest pause",
        ));
    }
    let commands: Vec<(&str, &[&str], &str)> = commands
        .iter()
        .map(|(report, arguments, reason)| (*report, &arguments[..], *reason))
        .collect();
    if !commands.is_empty() {
        page.next(context, &commands);
    }
}

#[cfg(test)]
mod tests;
