//! Call trees: from the program's entry down, from allocations up, or both ways from a focus.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::{Figures, Subject};
use crate::estimate::Amount;
use crate::groups::{GroupBy, Groups, Label, View};
use crate::query::Pattern;
use crate::scope::Scope;
use crate::store::{NONE, Profile, ROOT};

/// Which way a tree grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the program's entry to the functions that allocate.
    #[default]
    TopDown,
    /// From where memory is allocated to the callers.
    BottomUp,
}

/// How a tree is made.
#[derive(Clone, Debug)]
pub struct TreeOptions {
    /// What a node is; of [`GroupBy`], only those made of frames. Others are taken for functions.
    pub view: View,
    /// Which way it grows.
    pub direction: Direction,
    /// Functions that call each other in this order: only stacks with them are looked at, and
    /// there are two trees, of their callers and of what they call. At most 64.
    pub focus: Vec<Pattern>,
    /// Nodes with less than this share of the total are put together.
    pub threshold: f64,
    /// How deep the tree is at most.
    pub depth: usize,
    /// Show the place of the allocation below the function that allocates.
    pub sites: bool,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self {
            view: View::default(),
            direction: Direction::default(),
            focus: Vec::new(),
            threshold: 0.005,
            depth: usize::MAX,
            sites: false,
        }
    }
}

/// A tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tree {
    /// What it is about.
    pub subject: Subject,
    /// What a node is.
    pub by: GroupBy,
    /// Which way it grows; with a focus, top-down is what the focus calls.
    pub direction: Direction,
    /// All blocks in scope.
    pub total: Figures,
    /// The functions in focus, as they were asked for.
    pub focus: Vec<String>,
    /// What was allocated inside the focus; null without one.
    pub focus_total: Option<Figures>,
    /// The part of that which the last function in focus allocates itself; null without one.
    pub focus_own: Option<Figures>,
    /// The nodes, each before its children, the largest first.
    pub nodes: Vec<TreeNode>,
    /// With a focus: its callers, likewise.
    pub callers: Vec<TreeNode>,
}

/// A node of a tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TreeNode {
    /// Its caller's place in the list, or what it calls, in a tree that grows from allocations
    /// up; null at the top.
    pub parent: Option<usize>,
    /// How many nodes are above it.
    pub depth: usize,
    /// What it is called.
    pub label: Label,
    /// What it is.
    pub kind: NodeKind,
    /// How many nodes were put together in it, if it is [`NodeKind::Other`].
    pub others: usize,
    /// What was allocated with this and everything above it in the stack.
    pub total: Figures,
    /// The part that is in none of its children.
    pub own: Figures,
}

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// A call.
    Call,
    /// The place of an allocation.
    Site,
    /// Nodes that are too small, or too deep, to be shown.
    Other,
}

/// The tree of the blocks in scope.
#[must_use]
pub fn tree(scope: &Scope<'_>, options: &TreeOptions) -> Tree {
    let profile = scope.profile();
    let view = View {
        by: match options.view.by {
            by if by.is_of_frames() => by,
            _ => GroupBy::Function,
        },
        ..options.view.clone()
    };
    let frames = Frames::new(profile, &view, options);
    let by_stack = scope.by_stack();
    let total: Amount = by_stack.iter().copied().sum();
    let shape = Shape {
        threshold: options.threshold * total.bytes.value,
        depth: options.depth,
    };
    let (nodes, callers, focus_total, focus_own) = if options.focus.is_empty() {
        let nodes = match options.direction {
            Direction::TopDown => frames.top_down(&by_stack, shape),
            Direction::BottomUp => {
                let mut drawn = frames.callers(frames.leaves(&by_stack), shape);
                drawn.name_rest(frames.groups.unknown);
                drawn.finish(&frames, shape)
            }
        };
        (nodes, Vec::new(), None, None)
    } else {
        let focus = Focus::find(profile, &frames.groups, &options.focus);
        let around = frames.around(&focus, &by_stack, shape);
        (
            around.callees,
            frames.callers(around.callers, shape).finish(&frames, shape),
            Some(Figures::new(&around.inside)),
            Some(Figures::new(&around.own)),
        )
    };
    Tree {
        subject: Subject::new(scope),
        by: view.by,
        direction: options.direction,
        total: Figures::of_total(scope, &total),
        focus: options
            .focus
            .iter()
            .map(|pattern| pattern.text().to_owned())
            .collect(),
        focus_total,
        focus_own,
        nodes,
        callers,
    }
}

/// What is too small or too deep.
#[derive(Clone, Copy)]
struct Shape {
    /// Bytes.
    threshold: f64,
    depth: usize,
}

/// Frames as nodes of a tree to be shown.
struct Frames<'a> {
    profile: &'a Profile,
    groups: Groups,
    /// Places of allocations, if they are to be shown.
    sites: Option<Groups>,
    /// Whether calls within a group are one node.
    merge: bool,
}

/// A part of the total on its way from an allocation up to the root.
#[derive(Clone, Copy)]
struct Climber {
    node: u32,
    /// The group that it comes from.
    from: u32,
    amount: Amount,
}

/// What is around a focus.
struct Around {
    callees: Vec<TreeNode>,
    /// Where its callers start.
    callers: Vec<(Option<u32>, Climber)>,
    /// What was allocated inside it.
    inside: Amount,
    /// What it allocates itself.
    own: Amount,
}

impl<'a> Frames<'a> {
    fn new(profile: &'a Profile, view: &View, options: &TreeOptions) -> Self {
        let sites = (options.sites && view.by != GroupBy::Site).then(|| {
            Groups::new(
                profile,
                &View {
                    by: GroupBy::Site,
                    ..view.clone()
                },
            )
        });
        Self {
            profile,
            groups: Groups::new(profile, view),
            sites,
            merge: matches!(view.by, GroupBy::File | GroupBy::Module),
        }
    }

    fn group(&self, node: u32) -> u32 {
        self.groups.of_frame[self.profile.tree.frame[node as usize] as usize]
    }

    /// The group of the function that allocates.
    fn site_group(&self, context: u32) -> u32 {
        match self.profile.site_frame(context) {
            NONE => NONE,
            frame => self.groups.of_frame[frame as usize],
        }
    }

    /// The key of a context's place of allocation.
    fn site_key(&self, context: u32) -> Option<u32> {
        let sites = self.sites.as_ref()?;
        let frame = self.profile.site_frame(context);
        if frame == NONE || sites.of_frame[frame as usize] == NONE {
            return None;
        }
        // Sites are numbered after the groups.
        let offset = u32::try_from(self.groups.len()).unwrap_or(NONE);
        Some(offset.saturating_add(sites.of_frame[frame as usize]))
    }

    fn label(&self, key: u32) -> (Label, NodeKind) {
        match (key as usize).checked_sub(self.groups.len()) {
            None => (self.groups.labels[key as usize].clone(), NodeKind::Call),
            Some(site) => {
                let label = self.sites.as_ref().map(|sites| sites.labels[site].clone());
                (label.unwrap_or_default(), NodeKind::Site)
            }
        }
    }

    fn top_down(&self, by_stack: &[Amount], shape: Shape) -> Vec<TreeNode> {
        let mut drawn = Drawing::default();
        let place = self.draw(&mut drawn, by_stack, |_, caller| Some(caller));
        self.draw_contexts(&mut drawn, by_stack, &place);
        drawn.name_rest(self.groups.unknown);
        drawn.finish(self, shape)
    }

    /// Draws the nodes of the tree that anything was allocated below. `start` says where a node
    /// is drawn below, given where its caller is.
    fn draw(
        &self,
        drawn: &mut Drawing,
        by_stack: &[Amount],
        below: impl Fn(usize, u32) -> Option<u32>,
    ) -> Vec<u32> {
        let tree = &self.profile.tree;
        let mut used = vec![false; tree.len()];
        for (context, amount) in self.profile.contexts.iter().zip(by_stack) {
            used[context.node as usize] |= !amount.is_empty();
        }
        for node in tree.nodes().rev() {
            let is_used = used[node];
            used[tree.parent[node] as usize] |= is_used;
        }
        let mut place = vec![NONE; tree.len()];
        place[ROOT as usize] = Drawing::TOP;
        for node in tree.nodes().filter(|&node| used[node]) {
            let caller = place[tree.parent[node] as usize];
            let Some(caller) = below(node, caller) else {
                continue;
            };
            let group = self.groups.of_frame[tree.frame[node] as usize];
            place[node] =
                if caller == NONE || group == NONE || (self.merge && drawn.key(caller) == group) {
                    caller
                } else {
                    drawn.child(caller, group)
                };
        }
        place
    }

    fn draw_contexts(&self, drawn: &mut Drawing, by_stack: &[Amount], place: &[u32]) {
        for (number, (context, amount)) in (0..).zip(self.profile.contexts.iter().zip(by_stack)) {
            let mut node = place[context.node as usize];
            if amount.is_empty() || node == NONE {
                continue;
            }
            // Recursion may have hidden that the allocation is in a function further up.
            let own = self.site_group(number);
            let is_drawn = self.merge && drawn.key(node) == own;
            if own != NONE && context.node != ROOT && own != self.group(context.node) && !is_drawn {
                node = drawn.child(node, own);
            }
            if let Some(site) = self.site_key(number) {
                node = drawn.child(node, site);
            }
            drawn.own[node as usize] += *amount;
        }
    }

    /// All allocations, ready to climb.
    fn leaves(&self, by_stack: &[Amount]) -> Vec<(Option<u32>, Climber)> {
        let profile = self.profile;
        (0..)
            .zip(profile.contexts.iter().zip(by_stack))
            .filter(|(_, (_, amount))| !amount.is_empty())
            .map(|(number, (context, &amount))| {
                let climber = Climber {
                    node: context.node,
                    from: NONE,
                    amount,
                };
                let group = self.site_group(number);
                if group == NONE {
                    return (None, climber);
                }
                // The first node stands for the function that allocates.
                let node = match context.node {
                    ROOT => ROOT,
                    node if self.group(node) == group => profile.tree.parent[node as usize],
                    node => node,
                };
                let climber = Climber {
                    node,
                    from: group,
                    amount,
                };
                (Some(self.site_key(number).unwrap_or(group)), climber)
            })
            .collect()
    }

    /// The tree of callers. Each climber may start below a node of its own.
    fn callers(&self, starts: Vec<(Option<u32>, Climber)>, shape: Shape) -> Drawing {
        let mut drawn = Drawing::default();
        let mut waiting: HashMap<u32, Vec<Climber>> = HashMap::new();
        for (site, climber) in starts {
            let node = match site {
                Some(key) => drawn.child(Drawing::TOP, key),
                None => Drawing::TOP,
            };
            waiting.entry(node).or_default().push(climber);
        }
        let mut work: Vec<(u32, Vec<Climber>)> = waiting.into_iter().collect();
        work.sort_by_key(|(node, _)| *node);
        while let Some((node, climbers)) = work.pop() {
            let mut next: HashMap<u32, (f64, Vec<Climber>)> = HashMap::new();
            let mut order = Vec::new();
            for climber in climbers {
                match self.climb(climber) {
                    None => drawn.own[node as usize] += climber.amount,
                    Some((group, climber)) => {
                        let entry = next.entry(group).or_insert_with(|| {
                            order.push(group);
                            (0.0, Vec::new())
                        });
                        entry.0 += climber.amount.bytes.value;
                        entry.1.push(climber);
                    }
                }
            }
            for group in order {
                let Some((bytes, climbers)) = next.remove(&group) else {
                    continue;
                };
                let child = drawn.child(node, group);
                if bytes < shape.threshold {
                    // It will not be shown, let alone what is above it.
                    drawn.own[child as usize] += climbers.iter().map(|c| c.amount).sum();
                } else {
                    work.push((child, climbers));
                }
            }
        }
        drawn
    }

    /// To the next visible caller; `None` at the root.
    fn climb(&self, mut climber: Climber) -> Option<(u32, Climber)> {
        while climber.node != ROOT {
            let group = self.group(climber.node);
            climber.node = self.profile.tree.parent[climber.node as usize];
            if group != NONE && !(self.merge && group == climber.from) {
                climber.from = group;
                return Some((group, climber));
            }
        }
        None
    }

    /// What is around a focus.
    fn around(&self, focus: &Focus, by_stack: &[Amount], shape: Shape) -> Around {
        let mut drawn = Drawing::default();
        let mut place = self.draw(&mut drawn, by_stack, |node, caller| {
            // The focus itself is where its tree starts.
            match focus.end[node] {
                NONE => None,
                end if end as usize == node => Some(NONE),
                end if self.profile.tree.parent[node] == end => Some(Drawing::TOP),
                _ => Some(caller),
            }
        });
        for (node, place) in place.iter_mut().enumerate() {
            if focus.end[node] == NONE {
                *place = NONE;
            } else if focus.end[node] as usize == node {
                *place = Drawing::TOP;
            }
        }
        self.draw_contexts(&mut drawn, by_stack, &place);
        let mut inside = Amount::default();
        let mut starts: HashMap<u32, Amount> = HashMap::new();
        for (context, amount) in self.profile.contexts.iter().zip(by_stack) {
            let end = focus.end[context.node as usize];
            if end != NONE && !amount.is_empty() {
                inside += *amount;
                *starts.entry(focus.start[end as usize]).or_default() += *amount;
            }
        }
        let mut starts: Vec<(u32, Amount)> = starts.into_iter().collect();
        starts.sort_by_key(|(node, _)| *node);
        let callers = starts
            .into_iter()
            .map(|(node, amount)| {
                let climber = Climber {
                    node,
                    from: NONE,
                    amount,
                };
                (None, climber)
            })
            .collect();
        Around {
            own: drawn.own[Drawing::TOP as usize],
            callees: drawn.finish(self, shape),
            callers,
            inside,
        }
    }
}

/// Where a sequence of functions is in the call tree.
struct Focus {
    /// The node of the last function of the sequence, for all nodes below it; [`NONE`] elsewhere.
    end: Vec<u32>,
    /// For such a node: the caller of the first function.
    start: Vec<u32>,
}

impl Focus {
    fn find(profile: &Profile, groups: &Groups, patterns: &[Pattern]) -> Self {
        let patterns = &patterns[..patterns.len().min(64)];
        let symbols = &profile.symbols;
        // Bit i: the function matches the pattern i.
        let matches: Vec<u64> = symbols
            .functions()
            .iter()
            .map(|function| {
                (0..)
                    .zip(patterns)
                    .map(|(i, pattern)| u64::from(pattern.matches_function(function)) << i)
                    .fold(0, |all, bit| all | bit)
            })
            .collect();
        let done = 1_u64 << (patterns.len() - 1);
        let tree = &profile.tree;
        let mut end = vec![NONE; tree.len()];
        let mut start = vec![NONE; tree.len()];
        // Bit i: the last i + 1 visible functions match the first i + 1 patterns.
        let mut progress = vec![0_u64; tree.len()];
        for node in tree.nodes() {
            let parent = tree.parent[node] as usize;
            let frame = tree.frame[node] as usize;
            end[node] = end[parent];
            if groups.of_frame[frame] == NONE {
                progress[node] = progress[parent];
                continue;
            }
            let function = symbols.frames()[frame].function as usize;
            progress[node] = (progress[parent] << 1 | 1) & matches[function];
            if end[node] == NONE && progress[node] & done != 0 {
                end[node] = u32::try_from(node).unwrap_or(NONE);
                start[node] = above(profile, groups, node, patterns.len());
            }
        }
        Self { end, start }
    }
}

/// The node that is some visible frames above another one.
fn above(profile: &Profile, groups: &Groups, node: usize, frames: usize) -> u32 {
    let tree = &profile.tree;
    let mut node = node;
    let mut left = frames;
    while left > 0 {
        left -= usize::from(groups.of_frame[tree.frame[node] as usize] != NONE);
        node = tree.parent[node] as usize;
    }
    u32::try_from(node).unwrap_or(ROOT)
}

/// A tree in the making.
struct Drawing {
    parent: Vec<u32>,
    key: Vec<u32>,
    own: Vec<Amount>,
    children: HashMap<(u32, u32), u32>,
}

impl Default for Drawing {
    fn default() -> Self {
        Self {
            parent: vec![NONE],
            key: vec![NONE],
            own: vec![Amount::default()],
            children: HashMap::new(),
        }
    }
}

impl Drawing {
    /// What is above all nodes that are shown.
    const TOP: u32 = 0;
    /// More than anybody can look at. What is beyond is its caller's own; only a trace that was
    /// made for it comes that far.
    const MOST: usize = 1 << 22;

    fn key(&self, node: u32) -> u32 {
        self.key[node as usize]
    }

    fn child(&mut self, node: u32, key: u32) -> u32 {
        if self.parent.len() >= Self::MOST && !self.children.contains_key(&(node, key)) {
            return node;
        }
        let len = u32::try_from(self.parent.len()).unwrap_or(NONE);
        let child = *self.children.entry((node, key)).or_insert(len);
        if child == len {
            self.parent.push(node);
            self.key.push(key);
            self.own.push(Amount::default());
        }
        child
    }

    /// Gives what is in no node, because its stack is not known or all hidden, one of its own.
    fn name_rest(&mut self, key: u32) {
        let rest = std::mem::take(&mut self.own[Self::TOP as usize]);
        if !rest.is_empty() {
            let node = self.child(Self::TOP, key);
            self.own[node as usize] += rest;
        }
    }

    /// The tree as a list, without what is too small.
    fn finish(self, frames: &Frames<'_>, shape: Shape) -> Vec<TreeNode> {
        let mut total = self.own.clone();
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.parent.len()];
        for node in (1..self.parent.len()).rev() {
            let parent = self.parent[node] as usize;
            let amount = total[node];
            total[parent] += amount;
            children[parent].push(u32::try_from(node).unwrap_or(NONE));
        }
        let bytes = |node: u32| total[node as usize].bytes.value;
        let mut nodes = Vec::new();
        // Nodes to be shown, the next one last: what it is, its parent's place, its depth.
        let mut work = vec![(Shown::Node(Self::TOP), None, 0)];
        while let Some((shown, parent, depth)) = work.pop() {
            let node = match shown {
                Shown::Other(others, amount) => {
                    nodes.push(TreeNode {
                        parent,
                        depth,
                        label: Label::named(format!("other ({others})")),
                        kind: NodeKind::Other,
                        others,
                        total: Figures::new(&amount),
                        own: Figures::new(&amount),
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
                let (label, kind) = frames.label(self.key(node));
                nodes.push(TreeNode {
                    parent,
                    depth,
                    label,
                    kind,
                    others: 0,
                    total: Figures::new(&total[node as usize]),
                    own: Figures::new(&self.own[node as usize]),
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
                let amount = rest.iter().map(|&child| total[child as usize]).sum();
                work.push((Shown::Other(rest.len(), amount), place, depth_below));
            }
            for &child in below[..shown].iter().rev() {
                work.push((Shown::Node(child), place, depth_below));
            }
        }
        nodes
    }
}

enum Shown {
    Node(u32),
    Other(usize, Amount),
}
