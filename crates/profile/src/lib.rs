//! What heap traces mean.
//!
//! The reports of Heapline are computed here, as plain data
//! that can be serialised, and only drawn elsewhere: the terminal, the JSON and the viewer cannot
//! disagree. No input or output, no printing.
//!
//! - [`Overview`]: what is in a trace, from one pass without stacks (`heapline info`).
//! - [`Profile`]: a trace in memory, as columns of sampled blocks and a tree of stacks.
//! - [`Sampling`] and [`Estimate`]: from samples to amounts, with their errors.
//! - [`GcParams`]: the settings of OCaml's garbage collector in words.
//! - [`cut`]: smaller traces out of larger ones (`heapline cut`).

mod callers;
pub mod cut;
mod estimate;
mod gc_params;
mod groups;
mod histogram;
mod overview;
mod phases;
pub mod query;
pub mod reports;
mod scope;
mod selection;
mod shape;
mod store;
mod timeline;
mod walk;

pub use estimate::{Amount, Estimate, Estimator, Sampling, Sum};
pub use gc_params::{GcParam, GcParams};
pub use groups::{GroupBy, Label, View};
pub use overview::{Activity, EventCounts, Overview, Samples, SizeClass};
pub use query::{Query, QueryError};
pub use scope::{SampledBlock, Scope};
pub use selection::Selection;
pub use shape::GrowthShape;
pub use store::{
    FrameInfo, Function, Kind, LoadError, LoadOptions, Loader, Moment, Peak, Profile, Symbols,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
