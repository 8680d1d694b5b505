//! Builds the call tree below some nodes, without nodes that are too small: of one profile, or of several together.
//!
//! A profile with every frame of recursive calls has millions of nodes, and a tree that is shown a
//! few hundred. So nodes are expanded from the top: the children of a node that is shown are
//! grouped, and only groups above the threshold are expanded in turn. Everything else is part of an
//! "other" node at its own place.

use hashbrown::HashMap;
use rayon::slice::ParallelSliceMut;

use super::drawing::{MOST_SHOWN, Shape};
use super::frames::Frames;
use super::load::{ByStack, Load, ScopeLoad};
use super::{NodeKind, TreeNode};
use crate::groups::{Label, NONE};
use crate::reports::Figures;
use crate::store::{CallTree, ContextId, Id, IdVec, NodeId, Profile, saturated};

/// A profile whose stacks are in a tree.
pub(in crate::reports) struct Source<'a, T: Load> {
    pub(in crate::reports) frames: &'a Frames<'a>,
    pub(in crate::reports) by_stack: &'a ByStack<'a, T>,
    /// The nodes of the call tree that the tree is below.
    pub(in crate::reports) starts: Vec<NodeId>,
    /// The tree's keys for those of the frames; if none, they are the same.
    pub(in crate::reports) keys: Option<&'a [u32]>,
}

/// The tree below some nodes.
pub(in crate::reports) struct Grown<T> {
    /// The nodes, each before its children, the largest first.
    pub(in crate::reports) shown: Vec<Shown>,
    /// The meaning of each node.
    pub(in crate::reports) totals: Vec<T>,
    /// The part of that which is in none of its children.
    owns: Vec<T>,
    /// The part that is in none of the nodes.
    pub(super) own: T,
}

/// A node that is shown, or the rest of its siblings.
pub(in crate::reports) struct Shown {
    pub(in crate::reports) parent: Option<usize>,
    pub(in crate::reports) depth: usize,
    /// The key of its label; [`NONE`] for the rest.
    pub(in crate::reports) key: u32,
    /// The number of merged siblings.
    pub(in crate::reports) others: usize,
}

impl<T: ScopeLoad> Grown<T> {
    /// The nodes with their labels.
    pub(super) fn nodes(&self, frames: &Frames<'_>) -> Vec<TreeNode> {
        let amounts = self.totals.iter().zip(&self.owns);
        let nodes = self.shown.iter().zip(amounts).map(|(shown, (total, own))| {
            let (label, kind) = if shown.key == NONE {
                let label = Label::named(format!("other ({})", shown.others));
                (label, NodeKind::Other)
            } else {
                frames.label(shown.key)
            };
            TreeNode {
                parent: shown.parent,
                depth: shown.depth,
                label,
                kind,
                others: shown.others,
                total: Figures::new(&total.amount()),
                own: Figures::new(&own.amount()),
                details: total.details(),
            }
        });
        nodes.collect()
    }
}

/// The members of a node to be shown.
#[derive(Default)]
struct Members {
    bytes: f64,
    /// Nodes of the call trees, with everything below them, and the numbers of their sources.
    nodes: Vec<(u32, NodeId)>,
    /// Stacks that end here or at a place of allocation below.
    contexts: Vec<Leaf>,
    /// The order among siblings of the same size.
    order: u64,
}

/// A stack on its way to the node that it ends in.
#[derive(Clone, Copy)]
struct Leaf {
    source: u32,
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

/// The tree below the starts of all sources, which are not part of it. What ends in none of its nodes
/// has the key `rest`, or is the starts' own.
pub(in crate::reports) fn grow<T: Load>(
    sources: &[Source<'_, T>],
    shape: Shape,
    rest: Option<u32>,
) -> Grown<T> {
    let numbers = 0_u32..;
    let starts = numbers.zip(sources).flat_map(|(number, source)| {
        let starts = source.starts.iter();
        starts.map(move |&node| (number, node))
    });
    let top = Members {
        nodes: starts.collect(),
        ..Members::default()
    };
    let mut grower = Grower {
        shape,
        rest,
        shown: Vec::new(),
        profiles: sources.iter().map(Placed::new).collect(),
    };
    grower.expand(top);
    grower.finish(sources)
}

/// A profile, and where its nodes and contexts are in the tree.
struct Placed<'a> {
    frames: &'a Frames<'a>,
    keys: Option<&'a [u32]>,
    calls: Calls<'a>,
    /// The shown node that nodes and contexts belong to, plus one; 0 is the top. [`NONE`] for those
    /// that belong to where their caller does.
    place: IdVec<NodeId, u32>,
    context_place: IdVec<ContextId, u32>,
}

impl<'a> Placed<'a> {
    fn new<T: Load>(source: &Source<'a, T>) -> Self {
        let calls = Calls::new(source.frames.profile(), source.by_stack);
        Self {
            frames: source.frames,
            keys: source.keys,
            place: IdVec::like(&calls.profile.tree().parent, NONE),
            context_place: IdVec::like(calls.profile.contexts(), NONE),
            calls,
        }
    }

    /// The tree's key for one of the frames.
    fn key(&self, key: u32) -> u32 {
        match self.keys {
            Some(keys) => keys.get(key as usize).copied().unwrap_or(NONE),
            None => key,
        }
    }

    /// The key of a node of the call tree; [`NONE`] if it is hidden, or the root.
    fn group(&self, node: NodeId) -> u32 {
        self.key(self.frames.group(node))
    }

    /// A stack that ends in a node of the call tree.
    fn leaf(&self, source: u32, context: ContextId, node: NodeId, key: u32) -> Leaf {
        // Recursion may have hidden that the allocation is in a function further up.
        let own = self.key(self.frames.site_group(context));
        let is_here =
            own == NONE || own == self.group(node) || (self.frames.merges() && own == key);
        let site = self.key(self.frames.site_key(context).unwrap_or(NONE));
        Leaf {
            source,
            context,
            path: if is_here { [site, NONE] } else { [own, site] },
        }
    }
}

struct Grower<'a> {
    profiles: Vec<Placed<'a>>,
    shape: Shape,
    rest: Option<u32>,
    shown: Vec<Shown>,
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
        for &(source, node) in &members.nodes {
            self.profiles[source as usize].place[node] = place;
        }
        for leaf in &members.contexts {
            self.profiles[leaf.source as usize].context_place[leaf.context] = place;
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
        while let Some((source, node)) = nodes.pop() {
            let of = &mut self.profiles[source as usize];
            of.place[node] = place;
            for &child in of.calls.children(node) {
                let group = of.group(child);
                // Hidden frames, and calls within a file or module, are not nodes of their own.
                if group == NONE || (of.frames.merges() && group == key) {
                    nodes.push((source, child));
                    continue;
                }
                let order = order(source, child.index());
                let child_members = below.entry(group).or_insert_with(|| Members {
                    order,
                    ..Members::default()
                });
                child_members.order = child_members.order.min(order);
                child_members.bytes += of.calls.bytes[child];
                child_members.nodes.push((source, child));
            }
            let contexts = of.calls.contexts(node).iter();
            leaves.extend(contexts.map(|&context| of.leaf(source, context, node, key)));
        }
        for leaf in leaves {
            let next = leaf.step().or(match (shown, self.rest) {
                (None, Some(rest)) => Some((rest, leaf)),
                _ => None,
            });
            let Some((next, leaf)) = next else {
                self.profiles[leaf.source as usize].context_place[leaf.context] = place;
                continue;
            };
            // Places of allocations come after calls.
            let order = SITES | order(leaf.source, leaf.context.index());
            let child = below.entry(next).or_insert_with(|| Members {
                order,
                ..Members::default()
            });
            let of = &self.profiles[leaf.source as usize];
            child.bytes += of.calls.context_bytes[leaf.context];
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

    fn finish<T: Load>(mut self, sources: &[Source<'_, T>]) -> Grown<T> {
        let mut owns = vec![T::default(); self.shown.len() + 1];
        for (of, source) in self.profiles.iter_mut().zip(sources) {
            let profile = of.calls.profile;
            let tree = profile.tree();
            // What was not looked at belongs to where its caller does.
            for node in tree.nodes() {
                if of.place[node] == NONE {
                    of.place[node] = of.place[tree.parent[node]];
                }
            }
            for (context, amount) in source.by_stack.iter() {
                let place = match of.context_place[context] {
                    NONE => of.place[profile.contexts()[context].node],
                    place => place,
                };
                if let Some(own) = owns.get_mut(place as usize) {
                    own.add(&amount);
                }
            }
        }
        let owns_of_nodes = owns.split_off(1);
        let mut totals = owns_of_nodes.clone();
        for (number, shown) in self.shown.iter().enumerate().rev() {
            if let Some(parent) = shown.parent {
                let amount = totals[number];
                totals[parent].add(&amount);
            }
        }
        Grown {
            shown: self.shown,
            totals,
            owns: owns_of_nodes,
            own: owns[0],
        }
    }
}

/// Marks the order of places of allocations.
const SITES: u64 = 1 << 63;

/// The order among siblings of the same size: those of the first source first.
fn order(source: u32, number: usize) -> u64 {
    u64::from(source) << 32 | number as u64
}
