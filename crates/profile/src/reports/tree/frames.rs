//! Frames as nodes of a tree.

use hashbrown::HashMap;

use super::drawing::{Drawing, MOST_SHOWN, Shape};
use super::focus::Focus;
use super::grow::{Grown, Source, grow};
use super::load::{ByStack, ScopeLoad};
use super::{NodeKind, TreeNode, TreeOptions};
use crate::groups::{GroupBy, Groups, Label, NONE, View};
use crate::store::{ContextId, Id, NodeId, Profile};

/// Frames as nodes of a tree to be shown.
pub(in crate::reports) struct Frames<'a> {
    profile: &'a Profile,
    pub(in crate::reports) groups: Groups,
    /// Places of allocations, if they are to be shown.
    sites: Option<Groups>,
    /// True if calls within a group are merged into one node.
    merge: bool,
}

/// A part of the total on its way from an allocation up to the root.
#[derive(Clone, Copy)]
pub(super) struct Climber<T> {
    node: NodeId,
    /// The group that it comes from.
    from: u32,
    amount: T,
}

/// The tree around a focus.
pub(super) struct Around<T> {
    pub(super) callees: Vec<TreeNode>,
    /// The nodes at which its callers start.
    pub(super) callers: Vec<(Option<u32>, Climber<T>)>,
    /// Memory allocated inside it.
    pub(super) inside: T,
    /// Memory allocated by itself.
    pub(super) own: T,
}

impl<'a> Frames<'a> {
    pub(in crate::reports) fn new(
        profile: &'a Profile,
        view: &View,
        options: &TreeOptions,
    ) -> Self {
        let groups = |view: &View| {
            let mut groups = Groups::new(profile, view);
            if options.details {
                groups.locate(profile);
            }
            groups
        };
        let sites = (options.sites && view.by != GroupBy::Site).then(|| {
            groups(&View {
                by: GroupBy::Site,
                ..view.clone()
            })
        });
        Self {
            profile,
            groups: groups(view),
            sites,
            merge: matches!(view.by, GroupBy::File | GroupBy::Module | GroupBy::Crate),
        }
    }

    pub(super) fn profile(&self) -> &'a Profile {
        self.profile
    }

    /// Returns true if calls within a group are merged into one node.
    pub(super) fn merges(&self) -> bool {
        self.merge
    }

    /// The group of a node of the call tree; [`NONE`] if it is hidden, or the root.
    pub(super) fn group(&self, node: NodeId) -> u32 {
        let frame = self.profile.tree().frame[node];
        self.groups.of_frame.get(frame).copied().unwrap_or(NONE)
    }

    /// The group of the function that allocates.
    pub(super) fn site_group(&self, context: ContextId) -> u32 {
        match self.profile.site_frame(context) {
            None => NONE,
            Some(frame) => self.groups.of_frame[frame],
        }
    }

    /// The key of a context's place of allocation.
    pub(super) fn site_key(&self, context: ContextId) -> Option<u32> {
        let sites = self.sites.as_ref()?;
        let site = sites.of_frame[self.profile.site_frame(context)?];
        if site == NONE {
            return None;
        }
        // Sites are numbered after the groups.
        let offset = u32::try_from(self.groups.len()).unwrap_or(NONE);
        Some(offset.saturating_add(site))
    }

    pub(in crate::reports) fn label(&self, key: u32) -> (Label, NodeKind) {
        match (key as usize).checked_sub(self.groups.len()) {
            None => (self.groups.labels[key as usize].clone(), NodeKind::Call),
            Some(site) => {
                let label = self.sites.as_ref().map(|sites| sites.labels[site].clone());
                (label.unwrap_or_default(), NodeKind::Site)
            }
        }
    }

    pub(super) fn top_down<T: ScopeLoad>(
        &self,
        by_stack: &ByStack<'_, T>,
        shape: Shape,
    ) -> Vec<TreeNode> {
        let rest = Some(self.groups.unknown);
        let starts = vec![NodeId::ROOT];
        self.below(starts, by_stack, shape, rest).nodes(self)
    }

    /// The tree below some nodes of the call tree: see [`grow`].
    fn below<T: ScopeLoad>(
        &self,
        starts: Vec<NodeId>,
        by_stack: &ByStack<'_, T>,
        shape: Shape,
        rest: Option<u32>,
    ) -> Grown<T> {
        let source = Source {
            frames: self,
            by_stack,
            starts,
            keys: None,
        };
        grow(&[source], shape, rest)
    }

    /// All allocations, ready to climb.
    pub(super) fn leaves<T: ScopeLoad>(
        &self,
        by_stack: &ByStack<'_, T>,
    ) -> Vec<(Option<u32>, Climber<T>)> {
        let profile = self.profile;
        by_stack
            .iter()
            .map(|(number, amount)| {
                let context = profile.contexts()[number];
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
                    NodeId::ROOT => NodeId::ROOT,
                    node if self.group(node) == group => profile.tree().parent[node],
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
    pub(super) fn callers<T: ScopeLoad>(
        &self,
        starts: Vec<(Option<u32>, Climber<T>)>,
        shape: Shape,
    ) -> Drawing<T> {
        let mut drawn = Drawing::<T>::default();
        let mut waiting: HashMap<u32, Vec<Climber<T>>> = HashMap::new();
        for (site, climber) in starts {
            let node = match site {
                Some(key) => drawn.child(Drawing::<T>::TOP, key),
                None => Drawing::<T>::TOP,
            };
            waiting.entry(node).or_default().push(climber);
        }
        let mut work: Vec<(u32, Vec<Climber<T>>)> = waiting.into_iter().collect();
        work.sort_by_key(|(node, _)| *node);
        while let Some((node, climbers)) = work.pop() {
            if drawn.len() >= MOST_SHOWN {
                // Callers further up are left out; what is here stays here.
                for climber in &climbers {
                    drawn.own[node as usize].add(&climber.amount);
                }
                continue;
            }
            let mut next: HashMap<u32, (f64, Vec<Climber<T>>)> = HashMap::new();
            let mut order = Vec::new();
            for climber in climbers {
                match self.climb(climber) {
                    None => drawn.own[node as usize].add(&climber.amount),
                    Some((group, climber)) => {
                        let entry = next.entry(group).or_insert_with(|| {
                            order.push(group);
                            (0.0, Vec::new())
                        });
                        entry.0 += climber.amount.bytes();
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
                    for climber in &climbers {
                        drawn.own[child as usize].add(&climber.amount);
                    }
                } else {
                    work.push((child, climbers));
                }
            }
        }
        drawn
    }

    /// To the next visible caller; `None` at the root.
    fn climb<T: ScopeLoad>(&self, mut climber: Climber<T>) -> Option<(u32, Climber<T>)> {
        while climber.node != NodeId::ROOT {
            let group = self.group(climber.node);
            climber.node = self.profile.tree().parent[climber.node];
            if group != NONE && !(self.merge && group == climber.from) {
                climber.from = group;
                return Some((group, climber));
            }
        }
        None
    }

    /// The callers and callees of a focus.
    pub(super) fn around<T: ScopeLoad>(
        &self,
        focus: &Focus,
        by_stack: &ByStack<'_, T>,
        shape: Shape,
    ) -> Around<T> {
        // The focus itself is where its tree starts.
        let ends = focus.end.enumerate();
        let starts = ends.filter(|(node, end)| node == *end);
        let starts = starts.map(|(node, _)| node).collect();
        let grown = self.below(starts, by_stack, shape, None);
        let mut inside = T::default();
        let mut starts: HashMap<NodeId, T> = HashMap::new();
        for (number, amount) in by_stack.iter() {
            let context = self.profile.contexts()[number];
            let end = focus.end[context.node];
            if end != NodeId::NONE {
                inside.add(&amount);
                starts.entry(focus.start[end]).or_default().add(&amount);
            }
        }
        let mut starts: Vec<(NodeId, T)> = starts.into_iter().collect();
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
            own: grown.own,
            callees: grown.nodes(self),
            callers,
            inside,
        }
    }
}
