//! Builds the tree, and converts it to a list of nodes.

use hashbrown::HashMap;

use super::frames::Frames;
use super::load::ScopeLoad;
use super::{NodeKind, TreeNode};
use crate::groups::{Label, NONE};
use crate::reports::Figures;

/// The limits for merging nodes: size and depth.
#[derive(Clone, Copy)]
pub(in crate::reports) struct Shape {
    /// Bytes.
    pub(in crate::reports) threshold: f64,
    pub(in crate::reports) depth: usize,
}

/// More nodes than anybody can look at. What is beyond is not drawn further from where it is.
pub(super) const MOST_SHOWN: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// A tree in the making.
pub(super) struct Drawing<T> {
    parent: Vec<u32>,
    key: Vec<u32>,
    pub(super) own: Vec<T>,
    children: HashMap<(u32, u32), u32>,
}

impl<T: ScopeLoad> Default for Drawing<T> {
    fn default() -> Self {
        Self {
            parent: vec![NONE],
            key: vec![NONE],
            own: vec![T::default()],
            children: HashMap::new(),
        }
    }
}

impl<T: ScopeLoad> Drawing<T> {
    /// The root above all nodes that are shown.
    pub(super) const TOP: u32 = 0;
    pub(super) fn len(&self) -> usize {
        self.parent.len()
    }

    pub(super) fn child(&mut self, node: u32, key: u32) -> u32 {
        let len = u32::try_from(self.parent.len()).unwrap_or(NONE);
        let child = *self.children.entry((node, key)).or_insert(len);
        if child == len {
            self.parent.push(node);
            self.key.push(key);
            self.own.push(T::default());
        }
        child
    }

    /// Gives what is in no node, because its stack is not known or all hidden, one of its own.
    pub(super) fn name_rest(&mut self, key: u32) {
        let rest = std::mem::take(&mut self.own[Self::TOP as usize]);
        if !rest.amount().is_empty() {
            let node = self.child(Self::TOP, key);
            self.own[node as usize].add(&rest);
        }
    }

    /// The tree as a list, without what is too small.
    pub(super) fn finish(self, frames: &Frames<'_>, shape: Shape) -> Vec<TreeNode> {
        let mut total = self.own.clone();
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.parent.len()];
        for node in (1..self.parent.len()).rev() {
            let parent = self.parent[node] as usize;
            let amount = total[node];
            total[parent].add(&amount);
            children[parent].push(u32::try_from(node).unwrap_or(NONE));
        }
        let bytes = |node: u32| total[node as usize].bytes();
        let mut nodes = Vec::new();
        // Nodes to be shown, the next one last: what it is, its parent's place, its depth.
        let mut work = vec![(Shown::<T>::Node(Self::TOP), None, 0)];
        while let Some((shown, parent, depth)) = work.pop() {
            let node = match shown {
                Shown::Other(others, amount) => {
                    nodes.push(TreeNode {
                        parent,
                        depth,
                        label: Label::named(format!("other ({others})")),
                        kind: NodeKind::Other,
                        others,
                        total: Figures::new(&amount.amount()),
                        own: Figures::new(&amount.amount()),
                        details: amount.details(),
                    });
                    continue;
                }
                Shown::Node(node) => node,
            };
            let mut below = std::mem::take(&mut children[node as usize]);
            below.sort_by(|&a, &b| bytes(b).total_cmp(&bytes(a)).then(a.cmp(&b)));
            let (place, depth_below) = if node == Self::TOP {
                (None, 0)
            } else {
                let (label, kind) = frames.label(self.key[node as usize]);
                nodes.push(TreeNode {
                    parent,
                    depth,
                    label,
                    kind,
                    others: 0,
                    total: Figures::new(&total[node as usize].amount()),
                    own: Figures::new(&self.own[node as usize].amount()),
                    details: total[node as usize].details(),
                });
                (Some(nodes.len() - 1), depth + 1)
            };
            let shown = if depth_below < shape.depth {
                below.partition_point(|&child| bytes(child) >= shape.threshold)
            } else {
                0
            };
            let rest = &below[shown..];
            if !rest.is_empty() {
                let mut amount = T::default();
                for &child in rest {
                    amount.add(&total[child as usize]);
                }
                work.push((Shown::Other(rest.len(), amount), place, depth_below));
            }
            for &child in below[..shown].iter().rev() {
                work.push((Shown::Node(child), place, depth_below));
            }
        }
        nodes
    }
}

enum Shown<T> {
    Node(u32),
    Other(usize, T),
}
