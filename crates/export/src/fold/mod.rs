//! A tree of stacks of function names.
//!
//! A profile tells stacks apart by the lines of their calls. Flame graphs do not, and a tree of
//! names is what they and folded stacks are made from, without ever having all stacks in memory.

mod names;

use std::ops::ControlFlow;

use hashbrown::HashMap;
use heapline_profile::{Amount, ContextId, IdVec, Scope};

use self::names::{NO_NAME, Name, Names};

/// The innermost element of exported stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leaf {
    /// The function that allocates.
    #[default]
    Function,
    /// The place in it as a frame of its own: `list.ml:92`.
    Site,
}

/// Stacks of names with `N` numbers of bytes each.
pub(crate) struct Tree<const N: usize> {
    pub(crate) names: Vec<Name>,
    /// The root first; callers come before what they call.
    nodes: Vec<Node<N>>,
    /// The nodes below each node one after another, in the order of their names.
    children: Vec<u32>,
    /// The offset in `children` of the children of each node; one more for the end.
    starts: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Node<const N: usize> {
    parent: u32,
    name: u32,
    /// The memory allocated by this function itself.
    bytes: [f64; N],
}

const ROOT: u32 = 0;

impl<const N: usize> Tree<N> {
    /// The tree of those stacks that amount to something, with what they amount to by number.
    pub(crate) fn new(
        scope: &Scope<'_>,
        leaf: Leaf,
        amounts: &[IdVec<ContextId, Amount>; N],
    ) -> Self {
        let profile = scope.profile();
        let mut names = Names::new(scope, leaf);
        let mut nodes = vec![Node {
            parent: ROOT,
            name: NO_NAME,
            bytes: [0.0; N],
        }];
        let mut numbers: HashMap<(u32, u32), u32> = HashMap::new();
        let mut path = Vec::new();
        for stack in profile.stacks() {
            let amounts = amounts.each_ref().map(|of| of[stack]);
            if amounts.iter().all(Amount::is_empty) {
                continue;
            }
            names.path(&scope.stack(stack), &mut path);
            let mut node = ROOT;
            for &name in &path {
                node = *numbers.entry((node, name)).or_insert_with(|| {
                    nodes.push(Node {
                        parent: node,
                        name,
                        bytes: [0.0; N],
                    });
                    // The profile's tree is numbered by `u32`, and this one is not larger.
                    u32::try_from(nodes.len() - 1).unwrap_or(ROOT)
                });
            }
            let node = &mut nodes[node as usize];
            for (sum, amount) in node.bytes.iter_mut().zip(amounts) {
                *sum += amount.bytes.value;
            }
        }
        let mut tree = Self {
            names: names.list,
            nodes,
            children: Vec::new(),
            starts: Vec::new(),
        };
        tree.order(|_| true);
        tree
    }

    /// The memory allocated by each function and its callees.
    fn totals(&self) -> Vec<[f64; N]> {
        let mut totals: Vec<[f64; N]> = self.nodes.iter().map(|node| node.bytes).collect();
        for i in (1..totals.len()).rev() {
            let below = totals[i];
            let above = &mut totals[self.nodes[i].parent as usize];
            for (sum, bytes) in above.iter_mut().zip(below) {
                *sum += bytes;
            }
        }
        totals
    }

    /// Adds what amounts to less than a share of everything to its callers, and what is deeper
    /// than so many frames.
    pub(crate) fn prune(&mut self, share: f64, depth: usize) {
        let totals = self.totals();
        let least = totals[ROOT as usize].map(|total| total * share);
        let mut depths = vec![0_usize; totals.len()];
        let mut kept = vec![true; totals.len()];
        for i in 1..totals.len() {
            let parent = self.nodes[i].parent as usize;
            depths[i] = depths[parent].saturating_add(1);
            let small = totals[i]
                .iter()
                .zip(least)
                .all(|(total, least)| *total < least);
            kept[i] = kept[parent] && !small && depths[i] <= depth;
            if !kept[i] && kept[parent] {
                for (sum, bytes) in self.nodes[parent].bytes.iter_mut().zip(totals[i]) {
                    *sum += bytes;
                }
            }
            if !kept[i] {
                self.nodes[i].bytes = [0.0; N];
            }
        }
        self.order(|node| kept[node]);
    }

    /// Puts the children of each node in order.
    fn order(&mut self, keep: impl Fn(usize) -> bool) {
        let mut by_name: Vec<u32> = (0..).take(self.names.len()).collect();
        by_name.sort_by(|&a, &b| {
            let text = |name: u32| &self.names[name as usize].text;
            text(a).cmp(text(b))
        });
        let mut rank = vec![0_u32; by_name.len()];
        for (place, &name) in (0..).zip(&by_name) {
            rank[name as usize] = place;
        }
        let mut children: Vec<u32> = (1..)
            .take(self.nodes.len().saturating_sub(1))
            .filter(|&node| keep(node as usize))
            .collect();
        children.sort_unstable_by_key(|&node| {
            let Node { parent, name, .. } = self.nodes[node as usize];
            (parent, rank[name as usize])
        });
        self.starts = vec![0; self.nodes.len() + 1];
        for &node in &children {
            self.starts[self.nodes[node as usize].parent as usize + 1] += 1;
        }
        for i in 1..self.starts.len() {
            self.starts[i] += self.starts[i - 1];
        }
        self.children = children;
    }

    /// Visits the stacks that amount to something, as numbers of names, outermost first. Callers
    /// come before what they call, and all that is below one function comes in one piece.
    pub(crate) fn visit<B>(
        &self,
        mut f: impl FnMut(&[u32], &[f64; N]) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let mut path: Vec<u32> = Vec::new();
        // Not recursive: stacks can be deeper than ours.
        let mut waiting = vec![(ROOT, 0)];
        while let Some((node, depth)) = waiting.pop() {
            let Node { name, bytes, .. } = &self.nodes[node as usize];
            path.truncate(depth);
            if node != ROOT {
                path.push(*name);
            }
            if bytes.iter().any(|bytes| *bytes > 0.0) {
                f(&path, bytes)?;
            }
            let range =
                self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize;
            let below = path.len();
            waiting.extend(self.children[range].iter().rev().map(|&node| (node, below)));
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of nodes given as (parent, name, bytes).
    fn tree(nodes: &[(u32, &str, f64)]) -> Tree<1> {
        let name = |text: &str| Name {
            text: text.to_owned(),
            file: None,
            line: 0,
        };
        let mut tree = Tree {
            names: nodes.iter().map(|(_, text, _)| name(text)).collect(),
            nodes: vec![Node {
                parent: ROOT,
                name: NO_NAME,
                bytes: [0.0],
            }],
            children: Vec::new(),
            starts: Vec::new(),
        };
        for (name, &(parent, _, bytes)) in (0..).zip(nodes) {
            tree.nodes.push(Node {
                parent,
                name,
                bytes: [bytes],
            });
        }
        tree.order(|_| true);
        tree
    }

    fn stacks(tree: &Tree<1>) -> Vec<(String, f64)> {
        let mut stacks = Vec::new();
        let ControlFlow::Continue(()) = tree.visit(|path, [bytes]| {
            let names = path.iter().map(|&name| &*tree.names[name as usize].text);
            stacks.push((names.collect::<Vec<_>>().join(";"), *bytes));
            ControlFlow::<std::convert::Infallible>::Continue(())
        });
        stacks
    }

    #[test]
    fn stacks_come_in_the_order_of_their_names() {
        let tree = tree(&[(0, "z", 1.0), (0, "a", 2.0), (1, "c", 3.0), (1, "b", 4.0)]);
        let expected = [("a", 2.0), ("z", 1.0), ("z;b", 4.0), ("z;c", 3.0)];
        assert_eq!(stacks(&tree), expected.map(|(s, n)| (s.to_owned(), n)));
    }

    #[test]
    fn what_is_left_out_is_counted_with_its_callers_once() {
        let mut tree = tree(&[
            (0, "main", 80.0),
            (1, "small", 2.0),
            (2, "tiny", 1.0),
            (1, "deep", 7.0),
            (4, "deeper", 10.0),
        ]);
        let stack = |text: &str, bytes| (text.to_owned(), bytes);
        tree.prune(0.05, 9);
        let expected = [
            stack("main", 83.0),
            stack("main;deep", 7.0),
            stack("main;deep;deeper", 10.0),
        ];
        assert_eq!(stacks(&tree), expected);
        tree.prune(0.05, 2);
        let expected = [stack("main", 83.0), stack("main;deep", 17.0)];
        assert_eq!(stacks(&tree), expected);
        tree.prune(2.0, 2);
        assert_eq!(stacks(&tree), [stack("", 100.0)]);
    }
}
