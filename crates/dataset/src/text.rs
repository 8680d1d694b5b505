//! The runs and the state of a dataset as text.

use std::path::Path;

use heapline_text::{Align, Page, Screen, Style, Table, Text, sanitize, units};

use crate::{RunInfo, Verdict};

/// A table of runs.
#[must_use]
pub fn runs(runs: &[RunInfo], screen: Screen) -> Text {
    let columns = [
        ("run", Align::Left),
        ("service", Align::Left),
        ("version", Align::Left),
        ("day", Align::Left),
        ("seconds", Align::Right),
        ("allocated", Align::Right),
        ("at peak", Align::Right),
        ("at end", Align::Right),
        ("", Align::Left),
        ("trace", Align::Left),
    ];
    let mut table = Table::new(screen, &columns, columns.len() - 1).droppable(&[4, 7, 3]);
    for run in runs {
        let bytes = |column: &str| {
            let total = run.totals.get(column).unwrap_or_default();
            units::estimated_bytes(total.estimate())
        };
        let cells = [
            run.run.to_string(),
            run.service.clone(),
            run.version.clone().unwrap_or_default(),
            run.day.clone(),
            format!("{:.3}", run.duration_s),
            bytes("allocated_bytes"),
            bytes("live_at_peak_bytes"),
            bytes("live_at_end_bytes"),
            if run.damaged { "damaged" } else { "" }.to_owned(),
            run.trace.clone(),
        ];
        table.row(cells.map(|cell| (cell, Style::Plain)).to_vec());
    }
    let mut page = Page::new(screen);
    page.lines(table.lines());
    page.finish()
}

/// The state of a dataset, given whether leftovers have been removed.
#[must_use]
pub fn verdict(verdict: &Verdict, is_repaired: bool) -> String {
    let mut text = String::new();
    let mut line = |path: &Path, what: &str| text += &line(&format!("{}: {what}", path.display()));
    for problem in &verdict.problems {
        line(&problem.path, &problem.reason);
    }
    let leftover = if is_repaired {
        "removed: left by an add that was killed"
    } else {
        "left by an add that was killed; remove it with --repair"
    };
    for path in &verdict.leftovers {
        line(path, leftover);
    }
    let runs = units::plural(verdict.runs as u64, "run");
    let problems = units::plural(verdict.problems.len() as u64, "problem");
    let under_way = match verdict.under_way {
        0 => String::new(),
        n => format!(", {} under way", units::plural(n as u64, "add")),
    };
    text + &self::line(&format!("{runs}, {problems}{under_way}"))
}

/// A line of output that may have names of files and of programs in it.
#[must_use]
pub fn line(text: &str) -> String {
    sanitize(text).into_owned() + "\n"
}
