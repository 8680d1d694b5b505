//! Groups stacks by the callers of given functions.

use crate::groups::{GroupBy, Groups, Label, NONE, View};
use crate::query::Pattern;
use crate::store::{ContextId, FrameId, IdVec, NodeId, Profile};

/// The name of stacks that consist of the given functions only, without a caller.
const NOBODY: &str = "(the program itself)";

/// Stacks whose innermost functions are given, by the next caller.
///
/// With the functions f and g these are the stacks in which f allocates and g calls f. The group
/// of a stack is who calls g there. Of the other stacks the group is [`NONE`].
pub(crate) fn by_caller(profile: &Profile, view: &View, functions: &[Pattern]) -> Groups {
    let groups = Groups::new(profile, view);
    let chain = Chain::new(&groups, functions);
    let nobody = u32::try_from(groups.len()).unwrap_or(NONE);
    let of_context = profile
        .contexts()
        .ids()
        .map(|context| match chain.callers(profile, context) {
            Some(mut callers) => callers.next().unwrap_or(nobody),
            None => NONE,
        })
        .collect();
    groups.regrouped(profile, of_context, Label::named(NOBODY))
}

/// For each stack, true if its innermost functions are the given ones: those that [`by_caller`] groups.
pub(crate) fn calls(
    profile: &Profile,
    view: &View,
    functions: &[Pattern],
) -> IdVec<ContextId, bool> {
    let groups = Groups::shared(profile, view);
    let chain = Chain::new(&groups, functions);
    let contexts = profile.contexts().ids();
    contexts
        .map(|context| chain.callers(profile, context).is_some())
        .collect()
}

/// The innermost functions of stacks.
struct Chain<'a> {
    groups: &'a Groups,
    /// By the place in the chain and the group.
    is_meant: Vec<Vec<bool>>,
}

impl<'a> Chain<'a> {
    fn new(groups: &'a Groups, functions: &[Pattern]) -> Self {
        let labels = || groups.labels.iter();
        let is_meant = functions
            .iter()
            .map(|pattern| {
                let is_meant = labels().map(|label| matches(pattern, label, groups.by));
                let is_meant: Vec<bool> = is_meant.collect();
                let has_ends = matches!(groups.by, GroupBy::Function | GroupBy::Module);
                if has_ends && !is_meant.contains(&true) {
                    return labels()
                        .map(|label| pattern.matches_end(&label.name))
                        .collect();
                }
                is_meant
            })
            .collect();
        Self { groups, is_meant }
    }

    /// The callers of the last function, if the stack begins with all of them.
    fn callers(&self, profile: &'a Profile, context: ContextId) -> Option<Stack<'a>> {
        let mut stack = Stack::new(profile, self.groups, context);
        for (place, is_meant) in self.is_meant.iter().enumerate() {
            let group = match stack.next() {
                // Nothing is known of the stack, or all of it is left out.
                None if place == 0 => self.groups.unknown,
                next => next?,
            };
            if !is_meant[group as usize] {
                return None;
            }
        }
        Some(stack)
    }
}

fn matches(pattern: &Pattern, label: &Label, by: GroupBy) -> bool {
    let raw_name = label.raw_name.as_ref();
    match by {
        GroupBy::File => pattern.matches_file(&label.name),
        // The name of the place; only stacks without one have none.
        GroupBy::Site => pattern.matches(label.place.as_ref().unwrap_or(&label.name)),
        _ => pattern.matches(&label.name) || raw_name.is_some_and(|raw| pattern.matches(raw)),
    }
}

/// The groups of a stack that are not hidden, innermost first; those of the same group that follow
/// each other are one.
struct Stack<'a> {
    profile: &'a Profile,
    groups: &'a Groups,
    site: Option<FrameId>,
    node: NodeId,
    last: u32,
}

impl<'a> Stack<'a> {
    fn new(profile: &'a Profile, groups: &'a Groups, context: ContextId) -> Self {
        let site = profile.site_frame(context);
        Self {
            profile,
            groups,
            site,
            // What is left of a stack that was cut are callers; of whom is not known.
            node: match site {
                None => NodeId::ROOT,
                Some(_) => profile.contexts()[context].node,
            },
            last: NONE,
        }
    }
}

impl Iterator for Stack<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        loop {
            let frame = if let Some(site) = self.site.take() {
                site
            } else if self.node != NodeId::ROOT {
                let frame = self.profile.tree().frame[self.node];
                self.node = self.profile.tree().parent[self.node];
                frame
            } else {
                return None;
            };
            let group = self.groups.of_frame[frame];
            if group != NONE && group != self.last {
                self.last = group;
                return Some(group);
            }
        }
    }
}
