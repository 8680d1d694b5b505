//! Reports on heap snapshots.

mod diff;
mod dominators;
mod findings;
mod info;
mod retained;
mod why;

pub use diff::diff;
pub use dominators::dominators;
pub use findings::findings;
pub use info::info;
pub use retained::retained;
pub use why::why;

use heapline_heap::Amount;
use heapline_heap::reports::{Step, Subject};

use crate::page::Page;
use crate::units::{bytes, count, plural, program_name};

fn amount(amount: Amount) -> String {
    let blocks = plural(amount.blocks, "block");
    format!("{}, {blocks}", bytes(amount.bytes as f64))
}

/// `server (pid 4711)`.
fn program(subject: &Subject) -> String {
    let name = program_name(subject.program.as_deref().unwrap_or_default());
    match subject.pid {
        Some(pid) => format!("{name} (pid {pid})"),
        None => name.to_owned(),
    }
}

/// A name and its place: `Cache.table (cache.ml:12)`.
fn named(name: &str, place: Option<&str>) -> String {
    match place {
        Some(place) => format!("{name} ({place})"),
        None => name.to_owned(),
    }
}

/// The names from a root.
fn path(steps: &[Step]) -> String {
    let names = steps
        .iter()
        .map(|step| named(&step.name, step.place.as_deref()));
    names.collect::<Vec<_>>().join(" > ")
}

/// Says what is not in a snapshot by itself, or missing.
fn limits(page: &mut Page, subject: &Subject) {
    if subject.folded > 0 {
        page.note(&format!(
            "{} list cells and small blocks are counted with the blocks that hold them (heapline snapshot --fold).",
            count(subject.folded)
        ));
    }
    let lost = subject.damage.total();
    if lost > 0 {
        page.note(&format!(
            "The snapshot is damaged: {} of {} to blocks that it does not have.",
            count(lost),
            if lost == 1 { "reference" } else { "references" }
        ));
    }
}
