#![doc = include_str!("../README.md")]

mod alloc_stats;
mod blocks;
mod chart;
mod check;
mod combined;
mod compare_files;
mod diff;
mod diff_tree;
mod findings;
mod gc;
pub mod heap;
mod heatmap;
mod hotspots;
mod info;
mod leaks;
mod own_code;
mod page;
mod peak;
mod sanitize;
mod screen;
mod series;
mod snapshots;
mod source;
mod stats;
mod styled;
mod summary;
mod table;
mod temporary;
mod tree;
pub mod units;
mod width;
mod wrap;

pub use alloc_stats::alloc_stats;
pub use blocks::blocks;
pub use chart::{area, bar, points as chart_points, sparkline};
pub use check::check;
pub use combined::combined_summary;
pub use compare_files::compare_files;
pub use diff::diff;
pub use diff_tree::diff_tree;
pub use gc::{gc, gc_interval};
pub use heatmap::heatmap;
pub use hotspots::hotspots;
pub use info::{TraceFile, info};
pub use leaks::leaks;
pub use page::{Page, of_selection};
pub use peak::peak;
pub use sanitize::{sanitize, sanitize_lines};
pub use screen::{Context, Screen, Suggest};
pub use series::{series, series_of_height};
pub use source::source;
pub use stats::stats;
pub use styled::{Line, Span, Style, Text};
pub use summary::summary;
pub use table::{Align, Table};
pub use temporary::temporary;
pub use tree::{branch_and_name, tree, tree_branches, tree_room};
pub use width::{columns, fit};

use heapline_engine::Report;
use heapline_profile::Estimate;

/// Renders a report; columns of flame graphs and names to complete have no text.
#[must_use]
pub fn render(report: &Report, context: &Context<'_>) -> Text {
    match report {
        Report::Info(report) => {
            let file = TraceFile {
                name: &report.file,
                size: report.file_size,
            };
            info(&report.overview, file, context)
        }
        Report::Summary(report) => summary(report, context),
        Report::Hotspots(report) => hotspots(report, context),
        Report::Tree(report) => tree(report, context),
        Report::Series(report) => series(report, context),
        Report::Stats(report) => stats(report, context),
        Report::Heatmap(report) => heatmap(report, context),
        Report::Leaks(report) => leaks(report, context),
        Report::Peak(report) => peak(report, context),
        Report::Temporary(report) => temporary(report, context),
        Report::Gc(report) => gc(report, context),
        Report::Blocks(report) => blocks(report, context),
        Report::Source(report) => source(report, context),
        Report::Diff(report) => diff(report, context),
        Report::DiffTree(report) => diff_tree(report, context),
        Report::Retained(report) => heap::retained(report, context),
        Report::Dominators(report) => heap::dominators(report, context),
        Report::Why(report) => heap::why(report, context),
        Report::Findings(report) => heap::findings(report, context),
        Report::HeapDiff(report) => heap::diff(report, context),
        Report::Flame(_) | Report::Completion(_) => Text::default(),
    }
}

/// Shown below figures from snapshots.
const SNAPSHOTS_ONLY: &str = "The figures are exact. Live memory is known at snapshots, and how many \
     blocks were allocated is not (`?`).";

/// The same, if it is not known what is live at the end.
const LIVE_UNTOLD: &str =
    "The figures are exact. Live memory is known at snapshots only; what is not known is `?`.";

fn snapshots_only(live_at_end: Estimate) -> &'static str {
    if live_at_end.value.is_nan() {
        LIVE_UNTOLD
    } else {
        SNAPSHOTS_ONLY
    }
}

/// Notes that more may have been allocated and freed since.
const BY_LAST_SNAPSHOT: &str = "by the last snapshot";

/// Shown instead of a table when the selection is empty.
const NO_SAMPLES: &str = "No sampled blocks, or none that match the filter.";
