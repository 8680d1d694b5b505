//! `series`: memory over time.

use heapline_profile::reports::{Measure, Series};

use crate::NO_SAMPLES;
use crate::chart::{area, points, sparkline};
use crate::own_code::own_code;
use crate::page::Page;
use crate::screen::Context;
use crate::styled::{Line, Style, Text};
use crate::table::{Align, Table};
use crate::units::{bytes, count_short, label, seconds};

/// Renders a chart of the total and a table of the groups.
#[must_use]
pub fn series(report: &Series, context: &Context<'_>) -> Text {
    series_of_height(report, context, 12)
}

/// Renders a series with a curve of so many lines.
#[must_use]
pub fn series_of_height(report: &Series, context: &Context<'_>, height: usize) -> Text {
    let mut page = Page::new(context.screen);
    page.title(title(report.measure));
    if report.subject.sampled_blocks == 0 {
        page.note(NO_SAMPLES);
        return page.finish();
    }
    // One column shows the maximum of all points that fall into it.
    let fold = report.times.len().div_ceil(points(context.screen));
    let high = folded(&report.total.high, fold);
    let end = report.times.last().copied().unwrap_or(0.0);
    page.lines(area(
        context.screen,
        &high,
        (report.from, end),
        height,
        |value| format(report.measure, value),
    ));
    let highest = max(&report.total.high);
    let last = report.total.values.last().copied().unwrap_or(0.0);
    let at = report.total.high.iter().position(|&value| value >= highest);
    let time =
        |point: Option<usize>| seconds(point.map_or(report.from, |point| report.times[point]));
    page.line(&Line::plain(&format!(
        "maximum {} between {} and {}, {} at the end",
        format(report.measure, highest),
        time(at.and_then(|point| point.checked_sub(1))),
        time(at),
        format(report.measure, last)
    )));
    if report.groups.is_empty() {
        page.next(
            context,
            &[(
                "series",
                &["--by", "function"],
                "split by allocating function",
            )],
        );
    } else {
        page.gap();
        page.table(&groups(report, context));
        own_code(&mut page, &report.subject);
    }
    page.finish()
}

fn groups(report: &Series, context: &Context<'_>) -> Table {
    let mut table = Table::new(
        context.screen,
        &[
            ("maximum", Align::Right),
            ("at end", Align::Right),
            ("over time", Align::Left),
            ("", Align::Left),
        ],
        3,
    )
    .droppable(&[2]);
    let points = if context.screen.width() < 100 { 16 } else { 32 };
    for group in &report.groups {
        let style = if group.is_other {
            Style::Faint
        } else {
            Style::Plain
        };
        let curve = folded(&group.line.high, report.times.len().div_ceil(points));
        let last = group.line.values.last().copied().unwrap_or(0.0);
        table.row(vec![
            (format(report.measure, max(&group.line.high)), style),
            (format(report.measure, last), style),
            (sparkline(&curve), style),
            (label(&group.label), style),
        ]);
    }
    table
}

fn title(measure: Measure) -> &'static str {
    match measure {
        Measure::LiveBytes => "Live bytes",
        Measure::LiveBlocks => "Live blocks",
        Measure::LiveWords => "Live words",
        Measure::AllocatedWords => "Words allocated since the start",
        Measure::AllocatedBytes => "Bytes allocated since the start",
        Measure::AllocationRate => "Bytes allocated per second",
        Measure::PromotedBytes => "Bytes promoted since the start",
        Measure::PromotionRate => "Bytes promoted per second",
    }
}

fn format(measure: Measure, value: f64) -> String {
    match measure {
        Measure::LiveBlocks | Measure::LiveWords | Measure::AllocatedWords => count_short(value),
        Measure::AllocationRate | Measure::PromotionRate => format!("{}/s", bytes(value)),
        Measure::LiveBytes | Measure::AllocatedBytes | Measure::PromotedBytes => bytes(value),
    }
}

fn max(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// The maximum of every `n` values.
fn folded(values: &[f64], n: usize) -> Vec<f64> {
    values.chunks(n.max(1)).map(max).collect()
}
