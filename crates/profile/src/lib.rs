//! Computes reports from heap profiles.
//!
//! The reports of Heapline are computed here, as plain data
//! that can be serialised, and only drawn elsewhere: the terminal, the JSON and the viewer cannot
//! disagree. No input or output, no printing.
//!
//! - [`Store`]: takes batches of events, from any input format.
//! - [`Profile`]: what a store held at some moment, as columns of sampled blocks and a tree of stacks.
//! - [`Scope`] and [`reports`]: some of the blocks, and what there is to say of them.
//! - [`Sampling`] and [`Estimate`]: from samples to amounts, with their errors.
//! - [`GcParams`]: the settings of OCaml's garbage collector in words.

mod callers;
mod estimate;
mod gc_params;
mod groups;
mod histogram;
mod options;
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
pub use groups::{GroupBy, Label};
pub use options::{Look, OptionError, Share, one_of, value_name};
pub use query::{Query, QueryError};
pub use scope::{SampledBlock, Scope};
pub use selection::Selection;
pub use shape::GrowthShape;
pub use store::{FrameInfo, Function, Kind, Moment, Peak, Profile, Store, StoreOptions, Symbols};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
