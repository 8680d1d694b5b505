//! Computes reports from heap profiles.
//!
//! Reports are plain data that can be serialised, and are rendered elsewhere, so the terminal, the JSON
//! and the viewer show the same numbers. No IO.
//!
//! - [`Store`]: takes batches of events, from any input format.
//! - [`Profile`]: a snapshot of a store, as columns of sampled blocks and a tree of stacks.
//! - [`Scope`] and [`reports`]: selected blocks, and the reports on them.
//! - [`Sampling`] and [`Estimate`]: estimates from samples, with their errors.
//! - [`GcParams`]: the settings of OCaml's garbage collector, explained.

mod allocated;
mod amount;
mod at_snapshots;
mod attribution;
mod branches;
mod by_event;
mod callers;
mod crates;
mod estimate;
mod gc_params;
mod groups;
mod histogram;
mod holders;
mod options;
mod overshoot;
mod own_code;
mod parallel;
mod peaks;
mod phases;
pub mod query;
mod ranges;
pub mod reports;
mod sampling;
mod scope;
mod selection;
mod short_lives;
mod store;
#[cfg(test)]
mod testing;
mod timeline;
mod trend;
mod walk;

pub use amount::Amount;
pub use at_snapshots::AtSnapshot;
pub use estimate::{Estimate, Sum};
pub use gc_params::{GcParam, GcParams};
pub use groups::{GroupBy, Label};
pub use holders::Holders;
pub use options::{Look, OptionError, Share, one_of, value_name};
pub use own_code::OwnCode;
pub use query::{Query, QueryError};
pub use sampling::{Estimator, Sampling};
pub use scope::{SampledBlock, Scope};
pub use selection::Selection;
pub use store::{
    Collections, ContextId, CreateStorage, FileId, FrameId, FrameInfo, Function, FunctionId, IdVec,
    Index, IndexedAnswer, Kind, LiveProfile, MemoryLimit, ModuleId, Moment, Peak, Profile,
    Recursion, Storage, Store, StoreOptions, Symbols,
};
pub use trend::{Change as TrendChange, Trend, TrendPiece, TrendState};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
