//! `hotspots`: a flat table of where memory is allocated.

use heapline_profile::reports::{Hotspot, Hotspots, SortBy};
use heapline_profile::{Estimate, GroupBy};

use crate::chart::sparkline;
use crate::own_code::own_code;
use crate::page::Page;
use crate::screen::Context;
use crate::styled::{Style, Text};
use crate::table::{Align, Table};
use crate::units::{
    bytes, bytes_or_dash, count, count_short, duration_or_longer, estimated_bytes, label,
    percent_number, seconds,
};
use crate::{NO_SAMPLES, SNAPSHOTS_ONLY};

/// Renders a table of hotspots.
#[must_use]
pub fn hotspots(report: &Hotspots, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    page.title(&format!(
        "{} by {}",
        estimated_bytes(report.total.allocated.bytes),
        report.by.name()
    ));
    if report.subject.sampled_blocks == 0 {
        page.note(NO_SAMPLES);
        return page.finish();
    }
    page.table(&table(report, context));
    page.note(&format!("The peak is at {}.", seconds(report.peak_time)));
    own_code(&mut page, &report.subject);
    if !report.subject.tells.sizes {
        page.note(SNAPSHOTS_ONLY);
    }
    if report.subject.tells.lifetimes && report.rows.iter().any(has_unknown_median) {
        page.note(
            "`>`: more than half of the blocks were still live at the end, so the median is a \
             lower bound.",
        );
    }
    if !report.subject.is_exact {
        page.note(
            "±: 95 % interval of the first column. Dimmed rows are within the sampling error.",
        );
    }
    if report.by == GroupBy::Function {
        let tree: &[&str] = match &report.subject.own_code {
            Some(own) if !own.libraries.is_empty() => &["--bottom-up", "--own-code"],
            _ => &["--bottom-up"],
        };
        page.next(
            context,
            &[
                ("hotspots", &["--by", "site"], "the same by source line"),
                ("tree", tree, "callers of these functions"),
            ],
        );
    }
    page.finish()
}

fn table(report: &Hotspots, context: &Context<'_>) -> Table {
    let mut table = Table::new(
        context.screen,
        &[
            ("allocated", Align::Right),
            ("%", Align::Right),
            ("with callees", Align::Right),
            ("at peak", Align::Right),
            ("at end", Align::Right),
            ("blocks", Align::Right),
            ("mean", Align::Right),
            ("promoted", Align::Right),
            ("median life", Align::Right),
            ("live over time", Align::Left),
            (report.by.name(), Align::Left),
        ],
        10,
    )
    .droppable(match report.sort {
        // The column that rows are sorted by stays.
        SortBy::Inclusive => &[6, 7, 5, 8, 9, 3],
        SortBy::Blocks => &[6, 7, 8, 2, 9, 3],
        SortBy::Peak => &[6, 7, 5, 8, 2, 9, 4],
        SortBy::Allocated | SortBy::End | SortBy::Name => &[6, 7, 5, 8, 2, 9, 3],
        SortBy::Size => &[7, 5, 8, 2, 9, 3],
        SortBy::Promoted => &[6, 5, 8, 2, 9, 3],
        SortBy::Lifetime => &[6, 7, 5, 2, 9, 3],
    });
    for row in &report.rows {
        table.row(cells(row, report));
    }
    if report.hidden_rows > 0 {
        let hidden = &report.hidden;
        let mut cells = vec![(String::new(), Style::Faint); 11];
        cells[0].0 = bytes(hidden.allocated.bytes.value);
        cells[1].0 = share(hidden.allocated.bytes, report);
        cells[3].0 = bytes_or_dash(hidden.live_at_peak.bytes);
        cells[4].0 = bytes_or_dash(hidden.live_at_end.bytes);
        cells[5].0 = count_short(hidden.allocated.blocks.value);
        cells[10].0 = format!("other ({})", count(report.hidden_rows as u64));
        table.row(cells);
    }
    table
}

fn cells(row: &Hotspot, report: &Hotspots) -> Vec<(String, Style)> {
    let style = if row.is_noise {
        Style::Faint
    } else {
        Style::Plain
    };
    let allocated = row.own.allocated;
    let cell = |text: String| (text, style);
    vec![
        cell(estimated_bytes(allocated.bytes)),
        cell(share(allocated.bytes, report)),
        cell(
            row.inclusive
                .map_or_else(String::new, |figures| bytes(figures.bytes.value)),
        ),
        cell(bytes_or_dash(row.own.live_at_peak.bytes)),
        cell(bytes_or_dash(row.own.live_at_end.bytes)),
        cell(count_short(allocated.blocks.value)),
        cell(if report.subject.tells.sizes {
            bytes(row.mean_size)
        } else {
            String::new()
        }),
        cell(
            row.promoted_percent
                .map_or_else(String::new, |percent| format!("{percent:.0} %")),
        ),
        cell(if !report.subject.tells.lifetimes {
            String::new()
        } else if allocated.samples == 0 {
            "-".to_owned()
        } else {
            duration_or_longer(row.lifetime.p50, row.oldest.unwrap_or(0.0))
        }),
        cell(sparkline(&row.growth)),
        cell(label(&row.label)),
    ]
}

fn has_unknown_median(row: &Hotspot) -> bool {
    row.own.allocated.samples > 0 && row.lifetime.p50.is_none()
}

fn share(estimate: Estimate, report: &Hotspots) -> String {
    percent_number(estimate.value, report.total.allocated.bytes.value)
}
