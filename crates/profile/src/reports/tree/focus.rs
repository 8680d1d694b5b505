//! Finds the functions in focus in the call tree, in the given order.

use crate::groups::{Groups, NONE};
use crate::query::Pattern;
use crate::store::{FunctionId, Id, IdVec, NodeId, Profile};

/// The matches of a sequence of functions in the call tree.
pub(super) struct Focus {
    /// The node of the last function of the sequence, for all nodes below it; none elsewhere.
    pub(super) end: IdVec<NodeId, NodeId>,
    /// For such a node, the caller of the first function.
    pub(super) start: IdVec<NodeId, NodeId>,
}

impl Focus {
    pub(super) fn find(profile: &Profile, groups: &Groups, patterns: &[Pattern]) -> Self {
        let patterns = &patterns[..patterns.len().min(64)];
        let symbols = profile.symbols();
        // Bit i: the function matches the pattern i.
        let mut matches: IdVec<FunctionId, u64> = IdVec::like(symbols.functions(), 0);
        for (i, pattern) in patterns.iter().enumerate() {
            let is_meant = pattern.functions(symbols.functions());
            for (bits, &is_meant) in matches.iter_mut().zip(&is_meant) {
                *bits |= u64::from(is_meant) << i;
            }
        }
        let done = 1_u64 << (patterns.len() - 1);
        let tree = profile.tree();
        let mut end = IdVec::like(&tree.parent, NodeId::NONE);
        let mut start = IdVec::like(&tree.parent, NodeId::NONE);
        // Bit i: the last i + 1 visible functions match the first i + 1 patterns.
        let mut progress = IdVec::like(&tree.parent, 0_u64);
        for node in tree.nodes() {
            let parent = tree.parent[node];
            let frame = tree.frame[node];
            end[node] = end[parent];
            if groups.of_frame[frame] == NONE {
                progress[node] = progress[parent];
                continue;
            }
            let function = symbols.frames()[frame].function;
            progress[node] = (progress[parent] << 1 | 1) & matches[function];
            if end[node] == NodeId::NONE && progress[node] & done != 0 {
                end[node] = node;
                start[node] = above(profile, groups, node, patterns.len());
            }
        }
        Self { end, start }
    }
}

/// The node that is some visible frames above another one.
fn above(profile: &Profile, groups: &Groups, node: NodeId, frames: usize) -> NodeId {
    let tree = profile.tree();
    let mut node = node;
    let mut left = frames;
    while left > 0 {
        left -= usize::from(groups.of_frame[tree.frame[node]] != NONE);
        node = tree.parent[node];
    }
    node
}
