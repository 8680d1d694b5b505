//! Names for the completion of queries.

use crate::groups::{GroupBy, Groups, View};
use crate::scope::Scope;

/// A function, file, module or crate.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// The name as in source code.
    pub name: String,
    /// Bytes allocated there or by what it calls.
    pub bytes: f64,
}

/// All functions, files, modules or crates in the stacks of the blocks in scope, those that most is
/// allocated in first.
#[must_use]
pub fn names(scope: &Scope<'_>, by: GroupBy) -> Vec<Name> {
    let view = View {
        by,
        ..View::default()
    };
    let groups = Groups::new(scope.profile(), &view);
    let Some(sums) = groups.inclusive_sums(scope) else {
        return Vec::new();
    };
    let mut names: Vec<Name> = groups
        .labels
        .into_iter()
        .zip(sums)
        .filter(|(_, amount)| !amount.is_empty())
        .map(|(label, amount)| Name {
            name: label.name,
            bytes: amount.bytes.value,
        })
        .collect();
    names.sort_by(|a, b| {
        b.bytes
            .total_cmp(&a.bytes)
            .then_with(|| a.name.cmp(&b.name))
    });
    names
}
