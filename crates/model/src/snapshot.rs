//! Sources that count live memory at some moments, in place of single blocks.

use serde::Serialize;

/// A moment at which the source counted what was alive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Snapshot {
    /// Microseconds since the start. It never goes back.
    #[serde(rename = "time_us")]
    pub time: u64,
    /// Seconds, as the source has it.
    pub given_time: f64,
    /// Live blocks, those without a known stack excluded.
    pub live_blocks: u64,
    /// Live bytes, headers included.
    pub live_bytes: u64,
    /// The part of that of which it is not known where it was allocated.
    pub unattributed_bytes: u64,
    /// The counters of the garbage collector; null if the source has none.
    pub gc: Option<GcCounters>,
}

/// The counters of OCaml's garbage collector, as `Gc.quick_stat` has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct GcCounters {
    /// Words allocated on the minor heap.
    pub minor_words: u64,
    /// Words moved from the minor to the major heap.
    pub promoted_words: u64,
    /// Words allocated on the major heap, those promoted included.
    pub major_words: u64,
    /// Minor collections.
    pub minor_collections: u64,
    /// Major collections.
    pub major_collections: u64,
    /// Words of the major heap.
    pub heap_words: u64,
    /// Pieces of memory that the major heap consists of.
    pub heap_chunks: u64,
    /// Compactions of the major heap.
    pub compactions: u64,
    /// The most words that the major heap had.
    pub top_heap_words: u64,
}

/// An event that the program noted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Mark {
    /// Microseconds since the start.
    #[serde(rename = "time_us")]
    pub time: u64,
    /// How many snapshots came before it.
    pub snapshots: usize,
    /// Its name.
    pub name: String,
}
