//! Profiles in memory: a [`Store`] takes batches of events; a [`Profile`] is what it held at some
//! moment, as columns of sampled blocks, the tree of their stacks, and the clock.

mod classes;
mod clock;
mod collections;
mod growing;
mod ids;
mod index;
mod kinds;
mod lanes;
mod live;
mod live_profile;
mod load;
mod memo;
mod names;
mod order;
mod pair_table;
mod profile;
mod read_ahead;
mod sealed;
mod segment;
mod shared;
mod stack_log;
mod stacks;
mod stored;
mod symbols;
mod tallies;
mod tree_builder;

use serde::Serialize;

pub(crate) use classes::Class;
pub use collections::Collections;
pub(crate) use collections::merged;
pub use growing::{Recursion, Store, StoreOptions};
pub(crate) use ids::{ClassId, CrateId, Id, KindId, NodeId, SortId, saturated};
pub use ids::{ContextId, FileId, FrameId, FunctionId, IdVec, ModuleId};
pub use index::{Index, IndexedAnswer};
pub use kinds::Kind;
pub use live_profile::LiveProfile;
pub(crate) use names::{DUNE_EXECUTABLE, is_anonymous, is_of_dune_executable};
pub use profile::Profile;
pub(crate) use profile::Segment;
pub use sealed::MemoryLimit;
pub(crate) use segment::{NEVER, SEGMENT};
pub(crate) use stacks::CallTree;
#[cfg(test)]
pub(crate) use stored::memory::create as memory_storage;
pub use stored::{CreateStorage, Storage};
pub(crate) use stored::{StoredNumbers, Zone};
pub use symbols::{FrameInfo, Function, Symbols};

/// A moment of the run: how many events have happened by then.
///
/// Events of all lanes are put in the order of their times; those of the same microsecond stay
/// as the source has them. What is alive at a moment is therefore beyond doubt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub(crate) u64);

/// When most was alive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Peak {
    /// The moment.
    #[serde(skip)]
    pub moment: Moment,
    /// Seconds since the start of the trace.
    pub time: f64,
}
