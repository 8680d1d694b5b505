//! The note on what counts as own code, and queries for rows.

use heapline_profile::reports::Subject;
use heapline_profile::{GroupBy, Label};

use crate::page::Page;
use crate::sanitize::sanitize;

/// Names of libraries that are shown.
const SHOWN: usize = 8;

/// Adds a note on what counts as own code, if a report is about that.
pub(crate) fn own_code(page: &mut Page, subject: &Subject) {
    let Some(own) = &subject.own_code else {
        return;
    };
    let note = if !own.mine.is_empty() {
        let patterns = own.mine.join(", ");
        format!("Attributed to own code: {patterns}.")
    } else if own.libraries.is_empty() {
        "Attributed to own code: no function is known to be part of a library (see --mine)."
            .to_owned()
    } else {
        let shown: Vec<&str> = own
            .libraries
            .iter()
            .take(SHOWN)
            .map(|name| &**name)
            .collect();
        let more = match own.libraries.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(
            "Attributed to own code: all but the libraries {}{more} (see --mine).",
            shown.join(", ")
        )
    };
    page.note(&sanitize(&note));
}

/// The query that selects the blocks of a row; `None` if a query cannot tell.
pub(crate) fn condition(by: GroupBy, label: &Label, subject: &Subject) -> Option<String> {
    // What own code has allocated in libraries has another site.
    let is_site = subject.own_code.is_none() || label.via.is_some();
    is_site.then(|| by.condition(label)).flatten()
}
