//! The function that the blocks of a stack are attributed to.

use crate::groups::NONE;
use crate::store::{ContextId, FrameId, IdVec, NodeId, Profile};

/// Finds the function of each stack.
pub(crate) struct Attribution<'a> {
    profile: &'a Profile,
    /// By frame: [`NONE`] if it is hidden.
    of_frame: &'a IdVec<FrameId, u32>,
    /// By frame: true if it belongs to a library, whose callers are meant. Empty if they are not.
    library: IdVec<FrameId, bool>,
}

/// The frame that blocks are attributed to.
pub(crate) struct Attributed {
    pub(crate) frame: FrameId,
    /// The frame of a library that allocates, if it was called by `frame`.
    pub(crate) via: Option<FrameId>,
}

impl<'a> Attribution<'a> {
    /// Attributes blocks to the innermost frame that is not hidden; those that a library allocates, to the
    /// function that calls it.
    pub(crate) fn new(
        profile: &'a Profile,
        of_frame: &'a IdVec<FrameId, u32>,
        library: IdVec<FrameId, bool>,
    ) -> Self {
        Self {
            profile,
            of_frame,
            library,
        }
    }

    /// The frame for a stack; `None` if nothing is known of it.
    pub(crate) fn of(&self, context: ContextId) -> Option<Attributed> {
        let mut frames = self.frames(context);
        let site = frames.next()?;
        let caller = if self.is_library(site) {
            frames.find(|&frame| !self.is_library(frame))
        } else {
            None
        };
        Some(Attributed {
            frame: caller.unwrap_or(site),
            via: caller.map(|_| site),
        })
    }

    fn is_library(&self, frame: FrameId) -> bool {
        self.library.get(frame).copied().unwrap_or(false)
    }

    /// The frames of a stack that are not hidden, the allocation itself first.
    fn frames(&self, context: ContextId) -> impl Iterator<Item = FrameId> {
        let tree = self.profile.tree();
        let site = self.profile.site_frame(context);
        // A stack that was cut does not have the allocation itself; what is left is its callers.
        let mut node = match site {
            None => NodeId::ROOT,
            Some(_) => self.profile.contexts()[context].node,
        };
        let callers = std::iter::from_fn(move || {
            let frame = (node != NodeId::ROOT).then(|| tree.frame[node])?;
            node = tree.parent[node];
            Some(frame)
        });
        let frames = site.into_iter().chain(callers);
        frames.filter(|&frame| self.of_frame[frame] != NONE)
    }
}
