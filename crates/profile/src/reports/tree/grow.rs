//! Builds the call tree below some nodes, without nodes that are too small.
//!
//! A profile with every frame of recursive calls has millions of nodes, and a tree that is shown a
//! few hundred. So nodes are expanded from the top: the children of a node that is shown are
//! grouped, and only groups above the threshold are expanded in turn. Everything else is part of an
//! "other" node at its own place.

use hashbrown::HashMap;
use rayon::slice::ParallelSliceMut;

use super::drawing::{Drawing, MOST_SHOWN, Shape};
use super::frames::Frames;
use super::load::{ByStack, Load};
use super::{NodeKind, TreeNode};
use crate::groups::{Label, NONE};
use crate::reports::Figures;
use crate::store::{CallTree, ContextId, Id, IdVec, NodeId, Profile, saturated};

/// The tree below some nodes.
pub(super) struct Grown<T> {
    pub(super) nodes: Vec<TreeNode>,
    /// The part that is in none of them.
    pub(super) own: T,
}

/// A node that is shown, or the rest of its siblings.
struct Shown {
    parent: Option<usize>,
    depth: usize,
    /// The key of its label; [`NONE`] for the rest.
    key: u32,
    /// The number of merged siblings.
    others: usize,
}

/// The members of a node to be shown.
#[derive(Default)]
struct Members {
    bytes: f64,
    /// Nodes of the call tree, with everything below them.
    nodes: Vec<NodeId>,
    /// Stacks that end here or at a place of allocation below.
    contexts: Vec<Leaf>,
    /// The order among siblings of the same size.
    order: u64,
}

/// A stack on its way to the node that it ends in.
#[derive(Clone, Copy)]
struct Leaf {
    context: ContextId,
    /// The keys of nodes that follow: the function that allocates if recursion has hidden it, and
    /// the place of the allocation.
    path: [u32; 2],
}

impl Leaf {
    /// The next key, and the leaf below it.
    fn step(self) -> Option<(u32, Self)> {
        let [first, second] = self.path;
        (first != NONE).then_some((
            first,
            Self {
                path: [second, NONE],
                ..self
            },
        ))
    }
}

/// The call tree with its children, as far as anything was allocated below.
struct Calls<'a> {
    profile: &'a Profile,
    /// Bytes allocated at a node and below.
    bytes: IdVec<NodeId, f64>,
    /// Nodes in the order of their callers.
    children: Vec<NodeId>,
    /// Contexts in the order of their nodes.
    contexts: Vec<ContextId>,
    context_bytes: IdVec<ContextId, f64>,
}

impl<'a> Calls<'a> {
    fn new<T: Load>(profile: &'a Profile, by_stack: &ByStack<'_, T>) -> Self {
        let tree = profile.tree();
        let mut bytes = IdVec::like(&tree.parent, 0.0);
        let mut used = NodeSet::new(tree);
        let mut contexts = Vec::new();
        let mut context_bytes = IdVec::like(profile.contexts(), 0.0);
        for (context, load) in by_stack.iter() {
            let node = profile.contexts()[context].node;
            bytes[node] += load.bytes();
            used.insert(node);
            contexts.push(context);
            context_bytes[context] = load.bytes();
        }
        for node in tree.nodes().rev() {
            if used.has(node) {
                used.insert(tree.parent[node]);
            }
        }
        // Not at the same time as the rest: it takes memory too.
        contexts.par_sort_by_key(|&context| profile.contexts()[context].node);
        let (children, ()) = rayon::join(
            || children(tree, &used),
            || {
                for node in tree.nodes().rev() {
                    let below = bytes[node];
                    bytes[tree.parent[node]] += below;
                }
            },
        );
        Self {
            profile,
            bytes,
            children,
            contexts,
            context_bytes,
        }
    }

    fn children(&self, node: NodeId) -> &[NodeId] {
        let parents = &self.profile.tree().parent;
        of_key(&self.children, node, |child| parents[child])
    }

    fn contexts(&self, node: NodeId) -> &[ContextId] {
        let contexts = self.profile.contexts();
        of_key(&self.contexts, node, |context| contexts[context].node)
    }
}

/// The values with a key, where values are in the order of their keys.
fn of_key<T: Copy>(values: &[T], key: NodeId, key_of: impl Fn(T) -> NodeId) -> &[T] {
    let start = values.partition_point(|&value| key_of(value) < key);
    let rest = values[start..].iter();
    let len = rest.take_while(|&&value| key_of(value) == key).count();
    &values[start..start + len]
}

/// A set of nodes. There may be millions, so it has a bit for each.
struct NodeSet(Vec<u64>);

impl NodeSet {
    fn new(tree: &CallTree) -> Self {
        Self(vec![0; tree.len().div_ceil(64)])
    }

    #[inline]
    fn insert(&mut self, node: NodeId) {
        self.0[node.index() / 64] |= 1 << (node.index() % 64);
    }

    #[inline]
    fn has(&self, node: NodeId) -> bool {
        self.0[node.index() / 64] >> (node.index() % 64) & 1 != 0
    }
}

/// The nodes that are used, in the order of their callers; those of the same caller in order.
fn children(tree: &CallTree, used: &NodeSet) -> Vec<NodeId> {
    let used = || tree.nodes().filter(|&node| used.has(node));
    let mut ends = IdVec::like(&tree.parent, 0_u32);
    for node in used() {
        ends[tree.parent[node]] += 1;
    }
    let mut end = 0;
    for place in ends.iter_mut() {
        end += *place;
        *place = end;
    }
    let mut children = vec![NodeId::NONE; end as usize];
    for node in used().rev() {
        let place = &mut ends[tree.parent[node]];
        *place -= 1;
        children[*place as usize] = node;
    }
    children
}

/// The tree below some nodes of the call tree, which are not part of it. What ends in none of its
/// nodes has the key `rest`, or is the nodes' own.
pub(super) fn grow<T: Load>(
    frames: &Frames<'_>,
    starts: Vec<NodeId>,
    by_stack: &ByStack<'_, T>,
    shape: Shape,
    rest: Option<u32>,
) -> Grown<T> {
    let calls = Calls::new(frames.profile(), by_stack);
    let top = Members {
        nodes: starts,
        ..Members::default()
    };
    let mut grower = Grower {
        frames,
        shape,
        rest,
        place: IdVec::like(&calls.profile.tree().parent, NONE),
        context_place: IdVec::like(calls.profile.contexts(), NONE),
        shown: Vec::new(),
        calls,
    };
    grower.expand(top);
    grower.finish(by_stack)
}

struct Grower<'a> {
    frames: &'a Frames<'a>,
    calls: Calls<'a>,
    shape: Shape,
    rest: Option<u32>,
    shown: Vec<Shown>,
    /// The shown node that nodes and contexts belong to, plus one; 0 is the top. [`NONE`] for those
    /// that belong to where their caller does.
    place: IdVec<NodeId, u32>,
    context_place: IdVec<ContextId, u32>,
}

/// Work to be done.
enum Work {
    /// Show a node, and what is below it.
    Node {
        parent: Option<usize>,
        depth: usize,
        key: u32,
        members: Members,
    },
    /// Show the siblings that are too small.
    Others {
        parent: Option<usize>,
        depth: usize,
        members: Vec<Members>,
    },
}

impl Grower<'_> {
    fn expand(&mut self, top: Members) {
        let mut work = Vec::new();
        self.open(top, None, 0, NONE, &mut work);
        while let Some(next) = work.pop() {
            let number = self.shown.len();
            match next {
                Work::Node {
                    parent,
                    depth,
                    key,
                    members,
                } => {
                    self.shown.push(Shown {
                        parent,
                        depth,
                        key,
                        others: 0,
                    });
                    self.open(members, Some(number), depth + 1, key, &mut work);
                }
                Work::Others {
                    parent,
                    depth,
                    members,
                } => {
                    self.shown.push(Shown {
                        parent,
                        depth,
                        key: NONE,
                        others: members.len(),
                    });
                    for members in members {
                        self.settle(&members, number);
                    }
                }
            }
        }
    }

    /// Everything that a node is made of stays there.
    fn settle(&mut self, members: &Members, number: usize) {
        let place = saturated(number + 1);
        for &node in &members.nodes {
            self.place[node] = place;
        }
        for leaf in &members.contexts {
            self.context_place[leaf.context] = place;
        }
    }

    /// Finds the children of a node that is shown (none: the top), and what is to be done with
    /// them.
    fn open(
        &mut self,
        members: Members,
        shown: Option<usize>,
        depth: usize,
        key: u32,
        work: &mut Vec<Work>,
    ) {
        let place = saturated(shown.map_or(0, |number| number + 1));
        let mut below: HashMap<u32, Members> = HashMap::new();
        let mut leaves = members.contexts;
        let mut nodes = members.nodes;
        while let Some(node) = nodes.pop() {
            self.place[node] = place;
            for &child in self.calls.children(node) {
                let group = self.frames.group(child);
                // Hidden frames, and calls within a file or module, are not nodes of their own.
                if group == NONE || (self.frames.merges() && group == key) {
                    nodes.push(child);
                    continue;
                }
                let child_members = below.entry(group).or_insert_with(|| Members {
                    order: child.index() as u64,
                    ..Members::default()
                });
                child_members.order = child_members.order.min(child.index() as u64);
                child_members.bytes += self.calls.bytes[child];
                child_members.nodes.push(child);
            }
            let contexts = self.calls.contexts(node).iter();
            leaves.extend(contexts.map(|&context| self.leaf(context, node, key)));
        }
        for leaf in leaves {
            let next = leaf.step().or(match (shown, self.rest) {
                (None, Some(rest)) => Some((rest, leaf)),
                _ => None,
            });
            let Some((next, leaf)) = next else {
                self.context_place[leaf.context] = place;
                continue;
            };
            // Places of allocations come after calls.
            let order = 1 << 32 | leaf.context.index() as u64;
            let child = below.entry(next).or_insert_with(|| Members {
                order,
                ..Members::default()
            });
            child.bytes += self.calls.context_bytes[leaf.context];
            child.contexts.push(leaf);
        }
        let mut below: Vec<(u32, Members)> = below.into_iter().collect();
        below.sort_by(|(_, a), (_, b)| b.bytes.total_cmp(&a.bytes).then(a.order.cmp(&b.order)));
        let is_full = self.shown.len() + work.len() >= MOST_SHOWN;
        let large = if depth < self.shape.depth && !is_full {
            below.partition_point(|(_, members)| members.bytes >= self.shape.threshold)
        } else {
            0
        };
        let small: Vec<Members> = below.drain(large..).map(|(_, members)| members).collect();
        if !small.is_empty() {
            work.push(Work::Others {
                parent: shown,
                depth,
                members: small,
            });
        }
        for (key, members) in below.into_iter().rev() {
            work.push(Work::Node {
                parent: shown,
                depth,
                key,
                members,
            });
        }
    }

    /// A stack that ends in a node of the call tree.
    fn leaf(&self, context: ContextId, node: NodeId, key: u32) -> Leaf {
        // Recursion may have hidden that the allocation is in a function further up.
        let own = self.frames.site_group(context);
        let is_here = own == NONE
            || node == NodeId::ROOT
            || own == self.frames.group(node)
            || (self.frames.merges() && own == key);
        let site = self.frames.site_key(context).unwrap_or(NONE);
        Leaf {
            context,
            path: if is_here { [site, NONE] } else { [own, site] },
        }
    }

    fn finish<T: Load>(mut self, by_stack: &ByStack<'_, T>) -> Grown<T> {
        let profile = self.calls.profile;
        let tree = profile.tree();
        // What was not looked at belongs to where its caller does.
        for node in tree.nodes() {
            if self.place[node] == NONE {
                self.place[node] = self.place[tree.parent[node]];
            }
        }
        let mut own = vec![T::default(); self.shown.len() + 1];
        for (context, amount) in by_stack.iter() {
            let place = match self.context_place[context] {
                NONE => self.place[profile.contexts()[context].node],
                place => place,
            };
            if let Some(own) = own.get_mut(place as usize) {
                own.add(&amount);
            }
        }
        let mut total = own.clone();
        for (number, shown) in self.shown.iter().enumerate().rev() {
            if let Some(parent) = shown.parent {
                let amount = total[number + 1];
                total[parent + 1].add(&amount);
            }
        }
        let nodes = self.shown.iter().enumerate().map(|(number, shown)| {
            let (label, kind) = if shown.key == NONE {
                let label = Label::named(format!("other ({})", shown.others));
                (label, NodeKind::Other)
            } else {
                self.frames.label(shown.key)
            };
            TreeNode {
                parent: shown.parent,
                depth: shown.depth,
                label,
                kind,
                others: shown.others,
                total: Figures::new(&total[number + 1].amount()),
                own: Figures::new(&own[number + 1].amount()),
                details: total[number + 1].details(),
            }
        });
        Grown {
            nodes: nodes.collect(),
            own: own[Drawing::<T>::TOP as usize],
        }
    }
}
