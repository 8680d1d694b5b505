//! The memory of each line of a file.

use std::collections::{BTreeMap, BTreeSet};

use super::{LineMemory, SourceOptions};
use crate::amount::Amount;
use crate::groups::{Groups, NONE};
use crate::reports::hotspots::{Totals, is_noise};
use crate::scope::Scope;
use crate::store::{FileId, FrameId, IdVec, Moment, NodeId};

/// Amounts allocated, live at the peak and live at the end.
type Amounts = [Amount; 3];

/// The memory of the lines of a file.
pub(super) struct FileLines {
    /// By line; 0 if the line is not known.
    by_line: BTreeMap<u32, LineMemory>,
    pub(super) in_file: LineMemory,
    pub(super) total: Totals,
}

/// The amounts of a row.
#[derive(Clone, Copy, Default)]
struct Row {
    own: Amounts,
    inclusive: Amounts,
}

impl Row {
    fn memory(&self, scope: &Scope<'_>) -> LineMemory {
        let inclusive = Totals::of(scope, self.inclusive);
        LineMemory {
            own: Totals::of(scope, self.own),
            inclusive,
            is_noise: is_noise(scope, inclusive.allocated.bytes),
        }
    }
}

impl FileLines {
    /// Adds up the blocks in scope; `groups` are by site.
    pub(super) fn new(scope: &Scope<'_>, groups: &Groups, file: FileId, peak: Moment) -> Self {
        let profile = scope.profile();
        let (lines, row_of_group) = rows(scope, groups, file);
        let of_class = groups.renumbered(&row_of_group);
        let frames = groups.of_frame.iter();
        let of_frame: IdVec<FrameId, u32> = frames
            .map(|&group| row_of_group.get(group as usize).copied().unwrap_or(NONE))
            .collect();
        let tree = profile.tree();
        // True if the node or a caller of it is in the file.
        let mut is_inside = IdVec::like(&tree.parent, false);
        for node in tree.nodes() {
            let is_caller_inside = is_inside[tree.parent[node]];
            is_inside[node] = is_caller_inside || of_frame[tree.frame[node]] != NONE;
        }

        let counts = scope.counts_of(|stay| [true, stay.is_live_at(peak), !stay.ends()]);
        let mut by_row = vec![Row::default(); lines.len()];
        let mut in_file = Row::default();
        let mut total = Amounts::default();
        // The last class of blocks that each line was met in: it counts once in each.
        let mut last = vec![usize::MAX; lines.len()];
        let classes = profile.classes().enumerate().zip(&counts).enumerate();
        for (number, ((id, class), counts)) in classes {
            if counts[0] == 0 {
                continue;
            }
            let weight = scope.weights()[class.kind];
            let amounts = counts.map(|n| weight.times(n.into()));
            add(&mut total, &amounts);
            let mut node = profile.contexts()[class.context].node;
            let own = of_class.of_class(id).unwrap_or(NONE);
            if own == NONE && !is_inside[node] {
                continue;
            }
            add(&mut in_file.inclusive, &amounts);
            if own != NONE {
                add(&mut in_file.own, &amounts);
                add(&mut by_row[own as usize].own, &amounts);
            }
            let mut meet = |row: u32| {
                if row != NONE && last[row as usize] != number {
                    last[row as usize] = number;
                    add(&mut by_row[row as usize].inclusive, &amounts);
                }
            };
            meet(own);
            while node != NodeId::ROOT && is_inside[node] {
                meet(of_frame[tree.frame[node]]);
                node = tree.parent[node];
            }
        }
        let rows = lines.into_iter().zip(by_row);
        Self {
            by_line: rows
                .filter(|(_, row)| !row.inclusive[0].is_empty())
                .map(|(line, row)| (line, row.memory(scope)))
                .collect(),
            in_file: in_file.memory(scope),
            total: Totals::of(scope, total),
        }
    }

    /// The memory of a line; `None` if it has none.
    pub(super) fn of(&self, line: u32) -> Option<LineMemory> {
        self.by_line.get(&line).copied()
    }

    /// The lines with memory whose number is known, in order.
    pub(super) fn lines(&self) -> impl Iterator<Item = u32> {
        self.by_line.keys().copied().filter(|&line| line > 0)
    }
}

/// The lines of a file that are in stacks, and for each group the place of its line among them.
fn rows(scope: &Scope<'_>, groups: &Groups, file: FileId) -> (Vec<u32>, Vec<u32>) {
    let frames = scope.profile().symbols().frames();
    let in_file = || {
        let frames = frames.iter().zip(&groups.of_frame);
        frames.filter(|(frame, group)| frame.file == file && **group != NONE)
    };
    let lines: BTreeSet<u32> = in_file().map(|(frame, _)| frame.line).collect();
    let lines: Vec<u32> = lines.into_iter().collect();
    let mut row_of_group = vec![NONE; groups.len()];
    for (frame, &group) in in_file() {
        if let Ok(row) = lines.binary_search(&frame.line) {
            row_of_group[group as usize] = super::number(row);
        }
    }
    (lines, row_of_group)
}

fn add(sums: &mut Amounts, amounts: &Amounts) {
    for (sum, amount) in sums.iter_mut().zip(amounts) {
        *sum += *amount;
    }
}

/// The numbers of the lines to show: all, or those near the wanted ones. A file may have fewer lines
/// than the one that was recorded.
pub(super) fn shown_lines(
    wanted: &[u32],
    memory: &FileLines,
    line_count: Option<u32>,
    options: &SourceOptions,
) -> BTreeSet<u32> {
    let context = super::number(options.context);
    match line_count {
        // Without a text, there is nothing to show of other lines.
        None => wanted.iter().copied().collect(),
        Some(count) if options.all => (1..=count).chain(memory.lines()).collect(),
        Some(count) => wanted
            .iter()
            .flat_map(|&line| {
                let first = line.saturating_sub(context).max(1);
                let last = line.saturating_add(context).min(count);
                (first..=last).chain([line])
            })
            .collect(),
    }
}
