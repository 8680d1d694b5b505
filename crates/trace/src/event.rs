//! The events of a trace: blocks that were allocated, promoted and collected.

use crate::LocationId;

/// One event of a trace, borrowed from the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A sampled block was allocated.
    Alloc(Alloc<'a>),
    /// A block moved from the minor to the major heap.
    Promote(Mark),
    /// The garbage collector noticed that a block was dead.
    Collect(Mark),
}

impl Event<'_> {
    /// Microseconds since the start of the trace.
    #[must_use]
    pub fn time(&self) -> u64 {
        match self {
            Self::Alloc(alloc) => alloc.time,
            Self::Promote(mark) | Self::Collect(mark) => mark.time,
        }
    }

    /// The domain that wrote the event.
    #[must_use]
    pub fn domain(&self) -> u16 {
        match self {
            Self::Alloc(alloc) => alloc.domain,
            Self::Promote(mark) | Self::Collect(mark) => mark.domain,
        }
    }

    /// The block that the event is about.
    #[must_use]
    pub fn id(&self) -> u64 {
        match self {
            Self::Alloc(alloc) => alloc.id,
            Self::Promote(mark) | Self::Collect(mark) => mark.id,
        }
    }
}

/// A block that was promoted or collected, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Microseconds since the start of the trace.
    pub time: u64,
    /// The id of the block's allocation. A damaged trace may name a block that it never allocated.
    pub id: u64,
    /// The domain that wrote the event, not always the one that allocated the block.
    pub domain: u16,
}

/// An allocation that the sampler hit at least once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alloc<'a> {
    /// Microseconds since the start of the trace.
    pub time: u64,
    /// Unique in the trace; later promotions and collections refer to it.
    pub id: u64,
    /// The domain that allocated.
    pub domain: u16,
    /// Words of the block, without its header.
    pub length: u64,
    /// The number of its words, header included, that the sampler hit.
    pub samples: u64,
    /// Blocks that were merged into this one, see [`CoarseHistory`](crate::CoarseHistory); nearly always
    /// 0.
    pub merged: u64,
    /// The heap on which the block was allocated.
    pub source: Source,
    /// The stack that allocated it.
    pub stack: Stack<'a>,
}

/// The heap on which a block was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// On the minor heap; it may be promoted later.
    Minor,
    /// Directly on the major heap.
    Major,
    /// Outside the OCaml heap.
    External,
}

impl Source {
    /// `minor`, `major` or `external`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Minor => "minor",
            Self::Major => "major",
            Self::External => "external",
        }
    }
}

/// A call stack, from the outermost caller to the allocation point, given as a change to the
/// previous stack of the same domain.
///
/// The whole stack is there for the asking, and so is the part that is new: consumers that build
/// trees or texts only have to deal with [`new_frames`](Self::new_frames), which on real traces is
/// some 30 times less than [`frames`](Self::frames).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stack<'a> {
    pub(crate) frames: &'a [LocationId],
    pub(crate) common_prefix: u64,
    pub(crate) cut: bool,
    pub(crate) uncertain: bool,
}

impl<'a> Stack<'a> {
    /// The whole stack, outermost caller first. Empty if the reader was told to skip stacks.
    #[must_use]
    pub fn frames(&self) -> &'a [LocationId] {
        self.frames
    }

    /// The number of leading frames that are the same as in the previous stack of the domain.
    #[must_use]
    pub fn shared(&self) -> usize {
        if self.cut {
            self.frames.len()
        } else {
            usize::try_from(self.common_prefix)
                .map_or(self.frames.len(), |n| n.min(self.frames.len()))
        }
    }

    /// The frames after the shared ones.
    #[must_use]
    pub fn new_frames(&self) -> &'a [LocationId] {
        &self.frames[self.shared()..]
    }

    /// The allocation point: the innermost frame.
    #[must_use]
    pub fn site(&self) -> Option<LocationId> {
        self.frames.last().copied()
    }

    /// The length of the common prefix as the trace gives it, which is more than
    /// [`shared`](Self::shared) if the writer had cut the last stack.
    #[must_use]
    pub fn common_prefix(&self) -> u64 {
        self.common_prefix
    }

    /// Returns true if the writer is known to have truncated the stack: the innermost frames are
    /// missing.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Returns true if a part of the trace that this stack depends on was lost, so that some of its
    /// frames may be wrong.
    #[must_use]
    pub fn is_uncertain(&self) -> bool {
        self.uncertain
    }
}
