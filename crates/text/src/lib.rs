#![doc = include_str!("../README.md")]

mod alloc_stats;
mod chart;
mod check;
mod compare_files;
mod diff;
mod heatmap;
mod hotspots;
mod info;
mod leaks;
mod page;
mod sanitize;
mod screen;
mod series;
mod stats;
mod styled;
mod summary;
mod table;
mod tree;
pub mod units;
mod width;
mod wrap;

pub use alloc_stats::alloc_stats;
pub use chart::{area, bar, points as chart_points, sparkline};
pub use check::check;
pub use compare_files::compare_files;
pub use diff::diff;
pub use heatmap::heatmap;
pub use hotspots::hotspots;
pub use info::{TraceFile, info};
pub use leaks::leaks;
pub use page::Page;
pub use sanitize::{sanitize, sanitize_lines};
pub use screen::{Context, Screen, Suggest};
pub use series::series;
pub use stats::stats;
pub use styled::{Line, Span, Style, Text};
pub use summary::summary;
pub use table::{Align, Table};
pub use tree::tree;
pub use width::{columns, fit};

/// Shown instead of a table when the selection is empty.
const NO_SAMPLES: &str = "No sampled blocks, or none that match the filter.";
