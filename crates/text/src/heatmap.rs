//! `heatmap`: allocations by time and lifetime.

use heapline_profile::reports::Heatmap;

use crate::NO_SAMPLES;
use crate::chart::sparkline;
use crate::page::Page;
use crate::screen::Context;
use crate::styled::{Style, Text};
use crate::table::{Align, Table};
use crate::units::{bytes, seconds};
use crate::width::columns;

/// Renders a heatmap, one line per lifetime.
#[must_use]
pub fn heatmap(report: &Heatmap, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    page.title("Allocations over time, by lifetime");
    if report.subject.sampled_blocks == 0 {
        page.note(NO_SAMPLES);
        return page.finish();
    }
    let mut table = Table::new(
        context.screen,
        &[
            ("lifetime", Align::Right),
            ("bytes", Align::Right),
            ("allocated over time", Align::Left),
        ],
        2,
    );
    let ages = report.ages.len() - 1;
    let by_age = (0..ages)
        .rev()
        .map(|age| report.bytes.iter().map(|row| row[age]).collect());
    let rows: Vec<Vec<f64>> = std::iter::once(report.alive_bytes.clone())
        .chain(by_age)
        .collect();
    let lifetimes = report
        .ages
        .windows(2)
        .rev()
        .map(|age| format!("{} to {}", seconds(age[0]), seconds(age[1])));
    let labels: Vec<(String, f64)> = std::iter::once("live at end".to_owned())
        .chain(lifetimes)
        .zip(&rows)
        .map(|(name, row)| (name, row.iter().sum()))
        .collect();
    let label_width = labels
        .iter()
        .map(|(name, sum)| columns(name) + columns(&bytes(*sum)))
        .max()
        .unwrap_or(0);
    let room = context.screen.width().saturating_sub(label_width + 8);
    let rows = folded(&rows, room);
    // One scale for all rows.
    let drawn: Vec<char> = sparkline(&rows.concat()).chars().collect();
    let slices = rows.first().map_or(1, Vec::len);
    for ((name, sum), cells) in labels.into_iter().zip(drawn.chunks(slices)) {
        let style = if sum > 0.0 {
            Style::Plain
        } else {
            Style::Faint
        };
        table.row(vec![
            (name, style),
            (bytes(sum), style),
            (cells.iter().collect(), style),
        ]);
    }
    page.table(&table);
    page.note(&format!(
        "{slices} time slices from 0 to {}; the taller, the more bytes.",
        seconds(report.subject.duration)
    ));
    page.finish()
}

/// The rows with at most `room` columns, each the mean of neighbouring ones.
fn folded(rows: &[Vec<f64>], room: usize) -> Vec<Vec<f64>> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    rows.iter()
        .map(|row| {
            let n = row.len().div_ceil(room.max(12)).max(1);
            row.chunks(n).map(mean).collect()
        })
        .collect()
}
