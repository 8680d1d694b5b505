//! The dominator tree of a graph.
//!
//! This is the algorithm of Lengauer and Tarjan with path compression: O(m log n) for every graph. (Semi-NCA is a little
//! faster on most, and quadratic on some.) Everything after the depth-first search works on preorder numbers, which
//! keeps the accesses to memory near each other; nothing is recursive, since lists may have millions of cells.

/// No node.
const NONE: u32 = u32::MAX;

/// The dominators of all nodes that can be reached from a root. Nodes are numbered in preorder of a depth-first search;
/// the root is 0, and the number of a dominator is less than that of what it dominates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dominators {
    order: Vec<u32>,
    numbers: Vec<u32>,
    immediate: Vec<u32>,
}

impl Dominators {
    /// Computes the dominators. The targets of node `n` are `targets[first[n]..first[n + 1]]`.
    ///
    /// It takes 40 bytes per node, and 4 per edge that is not in the tree of the search.
    #[must_use]
    pub fn new(root: u32, first: &[u32], targets: &[u32]) -> Self {
        let Search {
            order,
            numbers,
            parents,
            is_tree_edge,
        } = search(root, first, targets);
        let predecessors = Predecessors::new(&order, &numbers, first, targets, &is_tree_edge);
        drop(is_tree_edge);
        let n = u32::try_from(order.len()).unwrap_or(NONE);
        let mut forest = Forest::new(&parents);
        let mut semi = parents;
        let mut immediate = vec![0; order.len()];
        // Lists of the nodes that have the same semidominator.
        let mut buckets = vec![NONE; order.len()];
        let mut next = vec![NONE; order.len()];
        for node in (1..n).rev() {
            let parent = semi[node as usize];
            let mut least = parent;
            for &from in predecessors.of(node) {
                let candidate = if from <= node {
                    from
                } else {
                    forest.eval(from, node + 1).1
                };
                least = least.min(candidate);
            }
            semi[node as usize] = least;
            forest.links[node as usize].least = least;
            if least == parent {
                immediate[node as usize] = parent;
            } else {
                next[node as usize] = buckets[least as usize];
                buckets[least as usize] = node;
            }
            // From here on, the node is linked to its parent.
            let mut waiting = std::mem::replace(&mut buckets[parent as usize], NONE);
            while waiting != NONE {
                // Its semidominator is the parent.
                let (label, least) = forest.eval(waiting, node);
                immediate[waiting as usize] = if least < parent { label } else { parent };
                waiting = next[waiting as usize];
            }
        }
        for node in 1..order.len() {
            if immediate[node] != semi[node] {
                immediate[node] = immediate[immediate[node] as usize];
            }
        }
        Self {
            order,
            numbers,
            immediate,
        }
    }

    /// The number of nodes that can be reached.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns true if there is not even a root.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The nodes, in preorder.
    #[must_use]
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The preorder number of a node; `None` if it cannot be reached.
    #[must_use]
    pub fn number(&self, node: u32) -> Option<u32> {
        let number = *self.numbers.get(node as usize)?;
        (number != NONE).then_some(number)
    }

    /// The numbers of the immediate dominators, by number. That of the root is 0.
    #[must_use]
    pub fn numbers_of_dominators(&self) -> &[u32] {
        &self.immediate
    }

    /// The immediate dominator of a node; `None` for the root and for what cannot be reached.
    #[must_use]
    pub fn dominator(&self, node: u32) -> Option<u32> {
        let number = self.number(node).filter(|number| *number > 0)?;
        Some(self.order[self.immediate[number as usize] as usize])
    }
}

struct Search {
    /// The nodes, in preorder.
    order: Vec<u32>,
    /// By node: its preorder number.
    numbers: Vec<u32>,
    /// By number: the number of the parent in the search tree.
    parents: Vec<u32>,
    /// By edge: true if the search followed it.
    is_tree_edge: Vec<u64>,
}

/// Searches depth first. The parents are the stack.
fn search(root: u32, first: &[u32], targets: &[u32]) -> Search {
    let nodes = first.len().saturating_sub(1);
    let mut numbers = vec![NONE; nodes];
    numbers[root as usize] = 0;
    let mut order = vec![root];
    let mut parents = vec![0];
    let mut is_tree_edge = vec![0_u64; targets.len().div_ceil(64)];
    // By number: the next edge to follow.
    let mut cursors = vec![first[root as usize]];
    let mut current = 0;
    loop {
        let node = order[current as usize] as usize;
        let edge = &mut cursors[current as usize];
        if *edge < first[node + 1] {
            let target = targets[*edge as usize] as usize;
            *edge += 1;
            if numbers[target] == NONE {
                let number = u32::try_from(order.len()).unwrap_or(NONE);
                numbers[target] = number;
                let followed = *edge as usize - 1;
                is_tree_edge[followed / 64] |= 1 << (followed % 64);
                order.push(targets[followed]);
                parents.push(current);
                cursors.push(first[target]);
                current = number;
            }
        } else if current == 0 {
            break;
        } else {
            current = parents[current as usize];
        }
    }
    Search {
        order,
        numbers,
        parents,
        is_tree_edge,
    }
}

/// The edges in the other direction, between preorder numbers, without those of the tree: most nodes have no other.
struct Predecessors {
    first: Vec<u32>,
    sources: Vec<u32>,
}

impl Predecessors {
    fn new(
        order: &[u32],
        numbers: &[u32],
        first: &[u32],
        targets: &[u32],
        is_tree_edge: &[u64],
    ) -> Self {
        let edges = |node: u32| {
            (first[node as usize]..first[node as usize + 1])
                .map(|edge| edge as usize)
                .filter(|edge| is_tree_edge[edge / 64] >> (edge % 64) & 1 == 0)
                .map(|edge| numbers[targets[edge] as usize] as usize)
        };
        let mut ends = vec![0_u32; order.len() + 1];
        for &node in order {
            for to in edges(node) {
                ends[to] += 1;
            }
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        let mut sources = vec![0; sum as usize];
        for (number, &node) in (0..).zip(order) {
            for to in edges(node) {
                // Filled from its end, it is the first one afterwards.
                ends[to] -= 1;
                sources[ends[to] as usize] = number;
            }
        }
        Self {
            first: ends,
            sources,
        }
    }

    #[inline]
    fn of(&self, node: u32) -> &[u32] {
        let range = self.first[node as usize] as usize..self.first[node as usize + 1] as usize;
        &self.sources[range]
    }
}

/// The forest of nodes that were linked to their parents.
struct Forest {
    links: Vec<Link>,
    path: Vec<u32>,
}

/// A node of the forest. All that [`Forest::eval`] needs of it is in one cache line.
#[derive(Clone, Copy)]
struct Link {
    /// The parent, and then a shortcut to an ancestor.
    ancestor: u32,
    /// The node with the least semidominator on the way there.
    label: u32,
    /// That semidominator.
    least: u32,
}

impl Forest {
    fn new(parents: &[u32]) -> Self {
        let link = |(node, &ancestor): (u32, &u32)| Link {
            ancestor,
            label: node,
            least: node,
        };
        Self {
            links: (0..).zip(parents).map(link).collect(),
            path: Vec::new(),
        }
    }

    /// The node with the least semidominator on the way from a node to the root of its tree, without that root, and the
    /// semidominator. Nodes from `linked` on are linked.
    #[inline]
    fn eval(&mut self, node: u32, linked: u32) -> (u32, u32) {
        let mut top = self.links[node as usize];
        if top.ancestor < linked {
            return (top.label, top.least);
        }
        self.path.push(node);
        loop {
            let above = top.ancestor;
            top = self.links[above as usize];
            if top.ancestor < linked {
                break;
            }
            self.path.push(above);
        }
        while let Some(below) = self.path.pop() {
            let link = &mut self.links[below as usize];
            link.ancestor = top.ancestor;
            if top.least < link.least {
                (link.label, link.least) = (top.label, top.least);
            }
            top = *link;
        }
        (top.label, top.least)
    }
}
