//! The function that the blocks of a stack are attributed to.

use crate::crates::Crates;
use crate::store::{NONE, Profile, ROOT};

/// Finds the function of each stack.
pub(crate) struct Attribution<'a> {
    profile: &'a Profile,
    /// By frame: [`NONE`] if it is hidden.
    of_frame: &'a [u32],
    /// By frame: true if it belongs to the standard library, whose callers are meant. Empty if they are
    /// not.
    library: Vec<bool>,
}

/// The frame that blocks are attributed to.
pub(crate) struct Attributed {
    pub(crate) frame: u32,
    /// The frame of the standard library that allocates, if it was called by `frame`.
    pub(crate) via: Option<u32>,
}

impl<'a> Attribution<'a> {
    /// Attributes blocks to the innermost frame that is not hidden. With `name_callers`, those that the
    /// standard library allocates are attributed to the function that calls it.
    pub(crate) fn new(profile: &'a Profile, of_frame: &'a [u32], name_callers: bool) -> Self {
        let library = if name_callers {
            Crates::new(profile.symbols()).in_standard_library()
        } else {
            Vec::new()
        };
        Self {
            profile,
            of_frame,
            library,
        }
    }

    /// The frame for a stack; `None` if nothing is known of it.
    pub(crate) fn of(&self, context: u32) -> Option<Attributed> {
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

    fn is_library(&self, frame: u32) -> bool {
        self.library.get(frame as usize).copied().unwrap_or(false)
    }

    /// The frames of a stack that are not hidden, the allocation itself first.
    fn frames(&self, context: u32) -> impl Iterator<Item = u32> {
        let tree = self.profile.tree();
        let site = self.profile.site_frame(context);
        // A stack that was cut does not have the allocation itself; what is left is its callers.
        let mut node = match site {
            NONE => ROOT,
            _ => self.profile.contexts()[context as usize].node,
        };
        let callers = std::iter::from_fn(move || {
            let frame = (node != ROOT).then(|| tree.frame[node as usize])?;
            node = tree.parent[node as usize];
            Some(frame)
        });
        let frames = (site != NONE).then_some(site).into_iter().chain(callers);
        frames.filter(|&frame| self.of_frame[frame as usize] != NONE)
    }
}
