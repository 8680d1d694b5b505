//! `check`: verdicts on budgets.

use heapline_profile::reports::{Check, Outcome, Verdict};

use crate::page::Page;
use crate::screen::Context;
use crate::styled::{Line, Style, Text};
use crate::table::{Align, Table};
use crate::units::{
    bytes, count, count_short, estimated_bytes, estimated_change, estimated_count_short, label,
};

/// The columns before a budget.
const INDENT: usize = 11;

/// Renders the verdicts, with the largest functions of each budget that is not kept.
#[must_use]
pub fn check(report: &Check, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    if report.flaws > 0 {
        let note = format!(
            "at least {} allocations are missing from the trace: actual amounts are higher",
            count(report.lost_allocations)
        );
        page.wrapped(&headed("damaged", Style::Warning, &note), INDENT);
    }
    for verdict in &report.verdicts {
        let (word, style) = match verdict.outcome {
            Outcome::Kept => ("kept", Style::Good),
            Outcome::Broken => ("BROKEN", Style::Bad),
            Outcome::TooClose => ("too close", Style::Warning),
        };
        page.wrapped(&headed(word, style, &verdict.budget), INDENT);
        page.wrapped(&figures(verdict), INDENT);
        if !verdict.evidence.is_empty() {
            page.table(&evidence(verdict, context));
        }
    }
    page.finish()
}

fn headed(word: &str, style: Style, text: &str) -> Line {
    Line::new(word, style)
        .with(&" ".repeat(INDENT - word.len()), Style::Plain)
        .with(text, Style::Plain)
}

fn figures(verdict: &Verdict) -> Line {
    let (value, limit) = if verdict.in_blocks {
        (
            estimated_count_short(verdict.value),
            count_short(verdict.limit),
        )
    } else {
        (estimated_bytes(verdict.value), bytes(verdict.limit))
    };
    let mut line = Line::plain(&" ".repeat(INDENT)).with(&value, Style::Plain);
    match (verdict.before, verdict.excess) {
        (Some(before), Some(excess)) => {
            let before = estimated_bytes(before);
            let excess = estimated_change(excess);
            line.push(
                &format!(", before {before}; {excess} compared with the limit"),
                Style::Plain,
            );
        }
        _ => {
            line.push(&format!(", limit {limit}   "), Style::Plain);
            line.push(
                &format!(
                    "95 % interval {} to {}",
                    bound(verdict, verdict.value.low),
                    bound(verdict, verdict.value.high)
                ),
                Style::Faint,
            );
        }
    }
    line
}

fn evidence(verdict: &Verdict, context: &Context<'_>) -> Table {
    let mut table = Table::new(
        context.screen,
        &[("", Align::Right), ("", Align::Right), ("", Align::Left)],
        2,
    )
    .indent(INDENT);
    for row in &verdict.evidence {
        let amount = if verdict.in_blocks {
            estimated_count_short(row.figures.blocks)
        } else {
            estimated_bytes(row.figures.bytes)
        };
        let change = row.change.map_or_else(String::new, estimated_change);
        table.row(vec![
            (amount, Style::Faint),
            (change, Style::Faint),
            (label(&row.label), Style::Faint),
        ]);
    }
    table
}

fn bound(verdict: &Verdict, value: f64) -> String {
    if verdict.in_blocks {
        count_short(value.max(0.0))
    } else {
        bytes(value.max(0.0))
    }
}
