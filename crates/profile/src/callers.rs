//! Groups stacks by the callers of given functions.

use crate::groups::{Groups, Label, NONE, View};
use crate::query::Pattern;
use crate::store::{ContextId, FrameId, NodeId, Profile};

/// The name of stacks that consist of the given functions only, without a caller.
const NOBODY: &str = "(the program itself)";

/// Stacks whose innermost functions are given, by the next caller.
///
/// With the functions f and g these are the stacks in which f allocates and g calls f. The group
/// of a stack is who calls g there. Of the other stacks the group is [`NONE`].
pub(crate) fn by_caller(profile: &Profile, view: &View, functions: &[Pattern]) -> Groups {
    let groups = Groups::new(profile, view);
    let is_meant: Vec<Vec<bool>> = functions
        .iter()
        .map(|pattern| {
            let labels = groups.labels.iter();
            labels.map(|label| matches(pattern, label)).collect()
        })
        .collect();
    let nobody = u32::try_from(groups.len()).unwrap_or(NONE);
    let of_context = profile
        .contexts()
        .ids()
        .map(|context| {
            let mut stack = Stack::new(profile, &groups, context);
            for is_meant in &is_meant {
                match stack.next() {
                    Some(group) if is_meant[group as usize] => {}
                    _ => return NONE,
                }
            }
            stack.next().unwrap_or(nobody)
        })
        .collect();
    groups.regrouped(profile, of_context, Label::named(NOBODY))
}

fn matches(pattern: &Pattern, label: &Label) -> bool {
    pattern.matches(&label.name)
        || label
            .raw_name
            .as_ref()
            .is_some_and(|raw| pattern.matches(raw))
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
