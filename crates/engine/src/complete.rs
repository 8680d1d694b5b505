//! Completion of names in queries.

use clap::Args;
use heapline_profile::reports::Name;
use heapline_profile::{GroupBy, one_of};
use serde::Serialize;

/// Options of name completion.
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CompleteOptions {
    /// Complete names of functions, files, modules or crates
    #[arg(long, default_value = GroupBy::Function.name(), value_parser = one_of(&KINDS))]
    pub kind: GroupBy,

    /// Match names that contain this text, ignoring case
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub q: String,

    /// Limit the number of names
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub rows: u16,
}

/// Kinds of names that can be completed.
pub(crate) const KINDS: [GroupBy; 4] = [
    GroupBy::Function,
    GroupBy::File,
    GroupBy::Module,
    GroupBy::Crate,
];

/// Names that complete what is being typed, those with the most allocation first.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Completion {
    /// The kind of the names.
    pub kind: GroupBy,
    /// The names.
    pub names: Vec<Name>,
}

impl CompleteOptions {
    /// Selects from all names of the kind.
    pub(crate) fn complete(&self, all: &[Name]) -> Completion {
        let part = self.q.to_lowercase();
        Completion {
            kind: self.kind,
            names: all
                .iter()
                .filter(|name| name.name.to_lowercase().contains(&part))
                .take(usize::from(self.rows))
                .cloned()
                .collect(),
        }
    }
}
