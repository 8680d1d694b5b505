//! `diff --compat prof_spacetime`: the table of `prof_spacetime compare`.

use heapline_profile::reports::FileChange;

use crate::page::Page;
use crate::sanitize::sanitize;
use crate::screen::Context;
use crate::styled::{Line, Text};
use crate::width::padding;

/// Renders the table in the layout of that program, whatever the width of the screen.
#[must_use]
pub fn compare_files(rows: &[FileChange], context: &Context<'_>) -> Text {
    let mut lines = vec![Line::plain(&format!(
        "{:<40} {:>14} {:>14} {:>14}",
        "File", "Words", "Allocations", "Blocks"
    ))];
    for row in rows {
        let file = sanitize(&row.file);
        lines.push(Line::plain(&format!(
            "{file}{} {:>+14.0} {:>+14.0} {:>+14.0}",
            padding(&file, 40),
            row.words.value,
            row.allocations.value,
            row.blocks.value
        )));
    }
    let mut page = Page::new(context.screen);
    page.lines(lines);
    page.finish()
}
