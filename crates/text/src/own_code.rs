//! The note on what counts as own code, and queries for rows.

use heapline_profile::query::Pattern;
use heapline_profile::reports::Subject;
use heapline_profile::{GroupBy, Label, Look};

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
        // Everything is own code, so there is nothing to say.
        return;
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
            "Attributed to own code: all but the libraries {}{more} (see --mine, --all-code).",
            shown.join(", ")
        )
    };
    page.note(&sanitize(&note));
}

/// The query that selects the blocks of a row; `None` if a query cannot tell.
pub(crate) fn condition(by: GroupBy, label: &Label, subject: &Subject) -> Option<String> {
    match &subject.own_code {
        Some(own) if label.via.is_none() && !own.libraries.is_empty() => {
            // The site of memory that own code has allocated in libraries is in a library. The names
            // of groups without own code are in parentheses.
            let is_named = matches!(by, GroupBy::Site | GroupBy::Function);
            (is_named && !label.name.starts_with('('))
                .then(|| format!("own function = {}", Pattern::literal(&label.name).text()))
        }
        Some(own) if !own.mine.is_empty() && label.via.is_none() => None,
        // A name is easier to read and to change than the exact place.
        _ => {
            let label = Label {
                name: label.name.clone(),
                via: label.via.clone(),
                ..Label::default()
            };
            by.condition(&label, &Look::default())
        }
    }
}
