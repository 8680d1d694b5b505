//! `why`: retaining paths.

use heapline_heap::Kind;
use heapline_heap::reports::{Step, Why, WhyRow};

use super::{amount, limits, named, program};
use crate::page::Page;
use crate::screen::Context;
use crate::styled::{Line, Style, Text};
use crate::units::{bytes, estimated_bytes, label, plural};

/// Sites shown below a path.
const SITES: usize = 3;

/// Columns of amounts.
const AMOUNT: usize = 16;

/// Renders paths.
#[must_use]
pub fn why(report: &Why, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    let subject = program(&report.subject);
    page.title(&match report.estimated {
        Some(estimated) => format!(
            "{subject}: {} held, estimated from {}",
            estimated_bytes(estimated),
            plural(report.selected.blocks, "sampled block")
        ),
        None => format!("{subject}: {} held", amount(report.selected)),
    });
    page.gap();
    for row in &report.rows {
        show(&mut page, row);
    }
    if report.rows.is_empty() {
        page.line(&Line::plain("No blocks, or none that match."));
    }
    page.hidden_rows(report.hidden_rows);
    if report.rows.iter().any(|row| row.is_cut) {
        page.note("> ...: paths that differ further below (see --depth).");
    }
    limits(&mut page, &report.subject);
    page.finish()
}

fn show(page: &mut Page, row: &WhyRow) {
    let size = match row.estimated {
        Some(estimated) => estimated_bytes(estimated),
        None => bytes(row.selected.bytes as f64),
    };
    let mut line = Line::plain(&format!("  {size:>AMOUNT$}  "));
    for (n, step) in row.path.iter().enumerate() {
        if n > 0 {
            line.push(" > ", Style::Faint);
        }
        line.push(&describe(step), Style::Plain);
    }
    if row.is_cut {
        line.push(" > ...", Style::Faint);
    }
    if row.estimated.is_none()
        && let Some(example) = &row.example
    {
        let blocks = plural(row.selected.blocks, "block");
        line.push(&format!("  {blocks}, such as {example}"), Style::Faint);
    }
    page.wrapped(&line, AMOUNT + 6);
    if row.sites.is_empty() {
        return;
    }
    let mut sites: Vec<String> = row
        .sites
        .iter()
        .take(SITES)
        .map(|site| format!("{} in {}", estimated_bytes(site.bytes), label(&site.site)))
        .collect();
    if row.sites.len() > SITES {
        sites.push(plural((row.sites.len() - SITES) as u64, "more site"));
    }
    let line = Line::plain(&" ".repeat(AMOUNT + 4))
        .with("allocated: ", Style::Faint)
        .with(&sites.join(", "), Style::Plain);
    page.wrapped(&line, AMOUNT + 6);
}

/// `Cache.table (cache.ml:12, global)`.
fn describe(step: &Step) -> String {
    let place = match (step.kind, step.place.as_deref()) {
        (Kind::Definition, Some(place)) => Some(format!("{place}, global")),
        (Kind::Definition, None) => Some("global".to_owned()),
        (_, place) => place.map(str::to_owned),
    };
    named(&step.name, place.as_deref())
}
