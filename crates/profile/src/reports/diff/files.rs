//! The comparison of `prof_spacetime compare`.

use hashbrown::HashMap;
use serde::Serialize;

use crate::amount::Amount;
use crate::estimate::{Estimate, Sum};
use crate::groups::{GroupBy, Groups, View};
use crate::scope::Scope;

/// A row of what `prof_spacetime compare` prints: after minus before.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileChange {
    /// The file of the allocations.
    pub file: String,
    /// Words alive at the end.
    pub words: Estimate,
    /// Words allocated since the start.
    pub allocations: Estimate,
    /// Blocks alive at the end.
    pub blocks: Estimate,
}

/// Compares two profiles file by file, as `prof_spacetime compare` does: ascending by words, and
/// without files of which the words or allocations are the same.
#[must_use]
pub fn compare_files(before: &Scope<'_>, after: &Scope<'_>) -> Vec<FileChange> {
    let view = View {
        by: GroupBy::File,
        ..View::default()
    };
    let mut files: HashMap<String, [Amount; 4]> = HashMap::new();
    for (side, scope) in [before, after].into_iter().enumerate() {
        let groups = Groups::new(scope.profile(), &view);
        let live = groups.sums(&scope.at_end());
        let allocated = groups.sums(scope);
        for (label, (live, allocated)) in groups.labels.iter().zip(live.iter().zip(allocated)) {
            if !allocated.is_empty() {
                let sums = files.entry_ref(&label.name).or_default();
                sums[side] += *live;
                sums[2 + side] += allocated;
            }
        }
    }
    let word_bytes = after.profile().sampling().word_bytes();
    let none = Sum::default();
    let mut rows: Vec<FileChange> = files
        .into_iter()
        .map(
            |(file, [live_before, live_after, before, after])| FileChange {
                file,
                words: live_after
                    .bytes
                    .change(live_before.bytes, none)
                    .estimate_of_change()
                    .per(word_bytes),
                allocations: after
                    .bytes
                    .change(before.bytes, none)
                    .estimate_of_change()
                    .per(word_bytes),
                blocks: live_after.change_of_blocks(&live_before, none),
            },
        )
        .filter(|row| row.words.value != 0.0 && row.allocations.value != 0.0)
        .collect();
    rows.sort_by(|a, b| {
        let order = a.words.value.total_cmp(&b.words.value);
        order.then_with(|| a.file.cmp(&b.file))
    });
    rows
}
