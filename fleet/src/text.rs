//! Renders answers for a terminal.

use heapline_profile::Estimate;
use heapline_text::units::{
    estimated_bytes, estimated_change, estimated_count_short, plural, signed_count_short,
};
use heapline_text::{Align, Page, Screen, Style, Table, Text};

use crate::compare::ChangeRow;
use crate::diff::Diff;
use crate::keys::Named;
use crate::question::Measure;
use crate::regressions::Regressions;
use crate::top::{Mean, Top};
use crate::trend::{Step, Trend};

const ERRORS: &str = "±: 95 % interval of the mean, with run-to-run variation and sampling error.";

/// Renders the groups that cost most.
#[must_use]
pub fn top(report: &Top, measure: Measure, screen: Screen) -> Text {
    let mut page = Page::new(screen);
    page.title(&format!(
        "{} per run, mean of {}",
        measure.title(),
        plural(report.runs, "run")
    ));
    let Some(first) = report.rows.first() else {
        page.note("Nothing, or nothing that matches.");
        return page.finish();
    };
    let mut columns = vec![
        ("mean", Align::Right),
        ("%", Align::Right),
        ("runs", Align::Right),
    ];
    columns.extend(first.group.0.iter().map(|(by, _)| (by.name(), Align::Left)));
    let mut table = Table::new(screen, &columns, columns.len() - 1);
    for row in &report.rows {
        let style = if row.mean.error >= row.mean.mean {
            Style::Faint
        } else {
            Style::Plain
        };
        let mut cells = vec![
            (amount(report.unit, &row.mean), style),
            (format!("{:.1}", row.percent), style),
            (row.mean.runs.to_string(), style),
        ];
        cells.extend(names(&row.group, style));
        table.row(cells);
    }
    page.table(&table);
    hidden(&mut page, report.hidden_rows);
    page.note(ERRORS);
    page.finish()
}

/// Renders an amount over days or versions.
#[must_use]
pub fn trend(report: &Trend, measure: Measure, screen: Screen) -> Text {
    let mut page = Page::new(screen);
    page.title(&format!("{} per run, by {}", measure.title(), report.over));
    if report.series.is_empty() {
        page.note("No runs, or none that match.");
        return page.finish();
    }
    for series in &report.series {
        if !series.group.0.is_empty() {
            let name: Vec<&str> = series
                .group
                .0
                .iter()
                .map(|(_, value)| shown(value))
                .collect();
            page.title(&name.join(", "));
        }
        let columns = [
            (report.over, Align::Left),
            ("runs", Align::Right),
            ("mean", Align::Right),
            ("change", Align::Right),
            ("%", Align::Right),
            ("", Align::Left),
        ];
        let mut table = Table::new(screen, &columns, 0);
        for point in &series.points {
            let plain = |text: String| (text, Style::Plain);
            let mut cells = vec![
                plain(shown(&point.name).to_owned()),
                plain(point.mean.runs.to_string()),
                plain(amount(report.unit, &point.mean)),
            ];
            cells.extend(match &point.step {
                Some(step) => step_cells(report.unit, step),
                None => vec![plain(String::new()); 3],
            });
            table.row(cells);
        }
        page.table(&table);
    }
    significance(&mut page, report.significant, report.tested, "step");
    page.note(ERRORS);
    page.finish()
}

fn step_cells(unit: &str, step: &Step) -> Vec<(String, Style)> {
    change_cells(
        unit,
        step.change,
        step.error,
        step.percent,
        step.is_significant,
    )
}

/// Renders the changes between two groups of runs.
#[must_use]
pub fn diff(report: &Diff, measure: Measure, screen: Screen) -> Text {
    let mut page = Page::new(screen);
    page.title(&format!(
        "{} per run, {} {} ({}) minus {} ({})",
        measure.title(),
        report.compared,
        report.after,
        plural(report.after_runs, "run"),
        report.before,
        plural(report.before_runs, "run"),
    ));
    changes(&mut page, &report.rows, report.unit, screen, false);
    hidden(&mut page, report.hidden_rows);
    significance(&mut page, report.significant, report.tested, "group");
    page.note(ERRORS);
    page.finish()
}

/// Renders significant growths.
#[must_use]
pub fn regressions(report: &Regressions, measure: Measure, screen: Screen) -> Text {
    let mut page = Page::new(screen);
    page.title(&format!(
        "Significant growth: {} per run",
        measure.title().to_lowercase()
    ));
    if report.rows.is_empty() {
        page.note("None.");
    }
    changes(&mut page, &report.rows, report.unit, screen, true);
    hidden(&mut page, report.hidden_rows);
    for compared in report.services.iter().take(10) {
        page.note(&format!(
            "{}: {} ({}) compared to {} ({})",
            shown(&compared.service),
            compared.after,
            plural(compared.after_runs, "run"),
            compared.before,
            plural(compared.before_runs, "run"),
        ));
    }
    if report.services.len() > 10 {
        page.note(&format!(
            "{} more services (see --json).",
            report.services.len() - 10
        ));
    }
    if !report.not_compared.is_empty() {
        page.note(&format!(
            "Without two versions to compare: {}.",
            report.not_compared.join(", ")
        ));
    }
    page.note(&format!(
        "{} tested; false discovery rate 5 %. {ERRORS}",
        plural(report.tested as u64, "group")
    ));
    page.finish()
}

fn changes(page: &mut Page, rows: &[ChangeRow], unit: &str, screen: Screen, all_significant: bool) {
    let Some(first) = rows.first() else { return };
    let mut columns = vec![
        ("change", Align::Right),
        ("%", Align::Right),
        ("", Align::Left),
        ("before", Align::Right),
        ("after", Align::Right),
    ];
    columns.extend(first.group.0.iter().map(|(by, _)| (by.name(), Align::Left)));
    let mut table = Table::new(screen, &columns, columns.len() - 1).droppable(&[3, 4]);
    for row in rows {
        let style = if row.is_significant {
            Style::Plain
        } else {
            Style::Faint
        };
        let mut cells = change_cells(unit, row.change, row.error, row.percent, row.is_significant);
        if all_significant {
            cells[2].0.clear();
        }
        cells.push((amount(unit, &row.before), style));
        cells.push((amount(unit, &row.after), style));
        cells.extend(names(&row.group, style));
        table.row(cells);
    }
    page.table(&table);
}

fn change_cells(
    unit: &str,
    change: f64,
    error: f64,
    percent: Option<f64>,
    is_significant: bool,
) -> Vec<(String, Style)> {
    let style = match is_significant {
        false => Style::Faint,
        true if change > 0.0 => Style::Bad,
        true => Style::Good,
    };
    let estimate = estimate(change, error);
    let amount = match unit {
        "bytes" => estimated_change(estimate),
        _ => format!(
            "{} ± {}",
            signed_count_short(change),
            signed_count_short(error).trim_start_matches('+')
        ),
    };
    let percent = percent.map_or_else(|| "new".to_owned(), |percent| format!("{percent:+.1}"));
    let mark = if is_significant { "●" } else { "○" };
    vec![(amount, style), (percent, style), (mark.to_owned(), style)]
}

fn amount(unit: &str, mean: &Mean) -> String {
    let estimate = estimate(mean.mean, mean.error);
    match unit {
        "bytes" => estimated_bytes(estimate),
        _ => estimated_count_short(estimate),
    }
}

fn estimate(value: f64, error: f64) -> Estimate {
    Estimate {
        value,
        error,
        low: value - error,
        high: value + error,
    }
}

fn names(group: &Named, style: Style) -> Vec<(String, Style)> {
    group
        .0
        .iter()
        .map(|(_, value)| (shown(value).to_owned(), style))
        .collect()
}

/// A value, or a word for none.
fn shown(value: &str) -> &str {
    if value.is_empty() { "(none)" } else { value }
}

fn hidden(page: &mut Page, rows: usize) {
    if rows > 0 {
        page.note(&format!(
            "{} (see --rows).",
            plural(rows as u64, "more row")
        ));
    }
}

fn significance(page: &mut Page, significant: usize, tested: usize, thing: &str) {
    let tests = plural(tested as u64, thing);
    page.note(&match (tested, significant) {
        (0, _) => "○ not tested: run-to-run variation needs two runs on each side.".to_owned(),
        (_, 0) => format!("○ within run-to-run variation. No change is significant; {tests} tested."),
        (_, n) => format!(
            "● significant, ○ within run-to-run variation. {}; {tests} tested, false discovery rate 5 %.",
            plural(n as u64, "significant change")
        ),
    });
}
