//! `diff`: changes between two traces or two windows.

use heapline_profile::reports::{Change, Compared, Diff, NamedDiff, Normalise};

use crate::own_code::own_code;
use crate::page::Page;
use crate::screen::Context;
use crate::styled::{Line, Style, Text};
use crate::table::{Align, Table};
use crate::units::{bytes, estimated_bytes, estimated_change, label, plural, signed_count_short};

/// Renders a comparison.
#[must_use]
pub fn diff(report: &NamedDiff, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    let diff = &report.diff;
    let names = [&*report.before_name, &*report.after_name];
    totals(&mut page, report.of, names, &diff.total);
    scaled(&mut page, diff.per, diff.scale);
    page.title(&format!(
        "Changes by {}, after minus before",
        diff.by.name()
    ));
    if diff.rows.is_empty() {
        page.note("None.");
        return page.finish();
    }
    page.table(&table(diff, context));
    page.hidden_rows(diff.hidden_rows);
    own_code(&mut page, &diff.after);
    significant(&mut page, diff.real_changes);
    page.finish()
}

/// Explains the marks of changes.
pub(crate) fn significant(page: &mut Page, real_changes: usize) {
    page.note(&match real_changes {
        0 => "○ within the sampling error. No change is significant.".to_owned(),
        n => format!(
            "● significant, ○ within the sampling error. {}; false discovery rate 5 %.",
            plural(n as u64, "significant change")
        ),
    });
}

/// The amounts of both sides and their change.
pub(crate) fn totals(page: &mut Page, of: Compared, names: [&str; 2], total: &Change) {
    page.title(match of {
        Compared::Allocated => "Allocated",
        Compared::Peak => "Live at peak",
        Compared::End => "Live at end",
    });
    for (label, figures, name) in [
        ("before", &total.before, names[0]),
        ("after", &total.after, names[1]),
    ] {
        let value = Line::plain(&format!("{}   ", estimated_bytes(figures.bytes)));
        page.row(label, &value.with(name, Style::Faint));
    }
    let percent = total
        .percent
        .map_or_else(String::new, |percent| format!(" ({percent:+.1} %)"));
    let significance = if total.is_real {
        "significant"
    } else {
        "within the sampling error"
    };
    let change = estimated_change(total.bytes);
    page.row(
        "change",
        &Line::plain(&format!("{change}{percent}, {significance}")),
    );
}

/// Says how amounts after are scaled.
pub(crate) fn scaled(page: &mut Page, per: Normalise, scale: f64) {
    if (scale - 1.0).abs() <= 1e-9 {
        return;
    }
    let to = match per {
        Normalise::None => "",
        Normalise::Time => " to the same time",
        Normalise::Allocated => " to the same total allocation",
    };
    page.note(&format!(
        "Amounts after are scaled by {scale:.4}{to} (see --per)."
    ));
}

fn table(diff: &Diff, context: &Context<'_>) -> Table {
    let mut table = Table::new(
        context.screen,
        &[
            ("change", Align::Right),
            ("%", Align::Right),
            ("before", Align::Right),
            ("after", Align::Right),
            ("blocks", Align::Right),
            ("", Align::Left),
            (diff.by.name(), Align::Left),
        ],
        6,
    )
    .droppable(&[4, 2, 3]);
    for row in &diff.rows {
        let change = &row.change;
        let style = match change.is_real {
            false => Style::Faint,
            true if change.bytes.value > 0.0 => Style::Bad,
            true => Style::Good,
        };
        let plain = if change.is_real {
            Style::Plain
        } else {
            Style::Faint
        };
        let percent = change
            .percent
            .map_or_else(|| "new".to_owned(), |percent| format!("{percent:+.1}"));
        table.row(vec![
            (estimated_change(change.bytes), style),
            (percent, plain),
            (bytes(change.before.bytes.value), plain),
            (bytes(change.after.bytes.value), plain),
            (signed_count_short(change.blocks.value), plain),
            (if change.is_real { "●" } else { "○" }.to_owned(), style),
            (label(&row.label), plain),
        ]);
    }
    table
}
