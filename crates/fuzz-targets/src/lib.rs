//! Bodies of the fuzz targets: each takes any bytes, and panics if the code that it tests breaks a promise.
//!
//! `cargo xtask fuzz` runs them with coverage instrumentation; the tests of this crate replay them over the
//! fixtures, intact and damaged, in seconds.

#![allow(
    clippy::missing_panics_doc,
    clippy::default_trait_access,
    clippy::cast_possible_truncation,
    reason = "all targets panic, that is their purpose; inputs are short"
)]

pub mod budget;
pub mod definitions;
pub mod heap;
pub mod index;
pub mod keep;
pub mod locations;
pub mod profile;
pub mod reader;
pub mod round_trip;
mod seeds;
pub mod spacetime;
pub mod sturgeon;
pub mod tail;

pub use seeds::seeds;

/// A target's name and body.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 12] = [
    ("budget", |text| _ = budget::run(text)),
    ("definitions", definitions::run),
    ("heap", |file| _ = heap::run(file)),
    ("index", index::run),
    ("keep", keep::run),
    ("locations", locations::run),
    ("profile", profile::run),
    ("reader", reader::run),
    ("round_trip", round_trip::run),
    ("spacetime", |file| _ = spacetime::run(file)),
    ("sturgeon", sturgeon::run),
    ("tail", tail::run),
];
