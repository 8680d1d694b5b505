//! `peak`: the peak of live memory, and what it would be without some of the blocks.

use heapline_profile::reports::{PeakPoint, PeakReport, PeakWithout, Removal};

use crate::NO_SAMPLES;
use crate::own_code::{condition, own_code};
use crate::page::Page;
use crate::sanitize::sanitize;
use crate::screen::Context;
use crate::styled::{Line, Style, Text};
use crate::table::{Align, Table};
use crate::units::{estimated_bytes, label, percent, seconds};

/// Renders the peak.
#[must_use]
pub fn peak(report: &PeakReport, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    match &report.without {
        None => page.title(&format!("Peak: {}", point(&report.peak))),
        Some(removal) => {
            page.title(&format!(
                "Without {}, the peak is {} (now {})",
                removed(removal),
                point(&removal.rest.peak),
                point(&report.peak)
            ));
            page.line(&Line::plain(&saving(removal)));
        }
    }
    if is_window(report) {
        page.note(&format!(
            "From {} to {} of {}.",
            seconds(report.from),
            seconds(report.to),
            seconds(report.subject.duration)
        ));
    }
    if report.subject.sampled_blocks == 0 {
        page.note(NO_SAMPLES);
        return page.finish();
    }
    if report.rows.is_empty() {
        return page.finish();
    }
    page.gap();
    page.table(&table(report, context));
    page.hidden_rows(report.hidden_rows);
    own_code(&mut page, &report.subject);
    page.note(
        "Peak without: the highest live memory if the row was not allocated, and nothing else changed. \
         What a row saves is less than what it holds if memory is nearly as high at another time.",
    );
    next(&mut page, report, context);
    page.finish()
}

/// Returns true if the report is about a part of the run.
fn is_window(report: &PeakReport) -> bool {
    report.from > 0.0 || report.to < report.subject.duration
}

fn next(page: &mut Page, report: &PeakReport, context: &Context<'_>) {
    let (peak, rest) = match &report.without {
        None => (&report.peak, String::new()),
        Some(removal) => {
            let queries = removal.queries.iter();
            let not: Vec<String> = queries.map(|query| format!("not ({query})")).collect();
            (&removal.rest.peak, not.join(" and "))
        }
    };
    let time = format!("{}s", peak.time);
    let mut callers = vec!["--live", &time, "--bottom-up"];
    if !rest.is_empty() {
        callers.extend(["--where", &rest]);
    }
    let window = format!("{}s..{}s", report.from, report.to);
    let query = report
        .rows
        .first()
        .and_then(|row| condition(report.by, &row.label, &report.subject))
        .unwrap_or_default();
    let mut without = vec!["--without", &query];
    if is_window(report) {
        without.extend(["--window", &window]);
    }
    let commands = [
        ("tree", &callers[..], "callers of what is live at the peak"),
        ("peak", &without[..], "the peak without the first row"),
    ];
    let is_hint = rest.is_empty() && !query.is_empty();
    page.next(context, &commands[..if is_hint { 2 } else { 1 }]);
}

fn table(report: &PeakReport, context: &Context<'_>) -> Table {
    let columns = [
        ("live at peak", Align::Right),
        ("share", Align::Right),
        ("peak without", Align::Right),
        ("at", Align::Right),
        ("saves", Align::Right),
        (report.by.name(), Align::Left),
    ];
    let mut table = Table::new(context.screen, &columns, 5).droppable(&[3, 1, 2]);
    for row in &report.rows {
        let is_noise = !report.subject.is_exact && row.live.bytes.is_noise();
        let style = if is_noise { Style::Faint } else { Style::Plain };
        let is_saving = row.without.saved.low > 0.0;
        let saving_style = if is_saving { style } else { Style::Faint };
        table.row(vec![
            (estimated_bytes(row.live.bytes), style),
            (format!("{:.1} %", row.percent), style),
            (estimated_bytes(row.without.peak.live.bytes), style),
            (seconds(row.without.peak.time), style),
            (saved_bytes(&row.without), saving_style),
            (label(&row.label), style),
        ]);
    }
    table
}

/// The queries of removed blocks.
fn removed(removal: &Removal) -> String {
    sanitize(&removal.queries.join(" or ")).into_owned()
}

/// A peak in words, such as `118 ± 3 MiB at 7.1 s`.
fn point(peak: &PeakPoint) -> String {
    format!(
        "{} at {}",
        estimated_bytes(peak.live.bytes),
        seconds(peak.time)
    )
}

fn saving(removal: &Removal) -> String {
    let held = format!(
        "The removed blocks hold {} at the peak now.",
        estimated_bytes(removal.held.bytes)
    );
    let saved = &removal.rest;
    if saved.saved.value <= 0.0 {
        return format!("That saves nothing. {held}");
    }
    let share = percent(saved.saved_percent, 100.0);
    let significance = if saved.saved.low > 0.0 {
        ""
    } else {
        ", within the sampling error"
    };
    format!(
        "That saves {} ({share}{significance}). {held}",
        saved_bytes(saved)
    )
}

fn saved_bytes(without: &PeakWithout) -> String {
    estimated_bytes(without.saved)
}
