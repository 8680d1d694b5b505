//! The garbage collector in the last part of a run, in a few lines.

use heapline_profile::reports::Gc;

use super::{figures, pieces};
use crate::findings::push_sentence;
use crate::page::Page;
use crate::screen::Context;
use crate::styled::{Line, Style, Text};
use crate::units::{plural, seconds};

/// Columns before the cause of a pause.
const INDENT: usize = 5;

/// Renders what the collector did in an interval that ends now: its share of the time, the number of pauses, the promotion
/// rate, and the longest pause with its causes.
#[must_use]
pub fn gc_interval(report: &Gc, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    let mut line = Line::plain("Last ");
    line.push(&seconds((report.to - report.from).max(0.0)), Style::Plain);
    line.push(": ", Style::Plain);
    line.push(&figures(report), Style::Title);
    line.push(
        &format!(", {}", plural(report.pauses.count, "pause")),
        Style::Plain,
    );
    page.wrapped(&line, 2);
    if let Some(pause) = report.worst.first() {
        let mut line = Line::plain("  longest at ");
        line.push(&format!("{:.3} s", pause.start), Style::Plain);
        if report.domains.len() > 1 {
            line.push(&format!(", domain {}", pause.domain), Style::Plain);
        }
        line.push(&format!(": {}", pieces(pause)), Style::Faint);
        page.wrapped(&line, INDENT);
        for cause in &pause.causes {
            let mut line = Line::plain(&" ".repeat(INDENT));
            push_sentence(&mut line, &cause.sentence);
            page.wrapped(&line, INDENT);
        }
    }
    page.finish()
}
