//! The work of a garbage collector.

use serde::{Deserialize, Serialize};

/// One piece of work of the garbage collector, for which its domain stood still, or a reading of its counters.
///
/// Those of one lane come in the order of their ends. Finalisers are OCaml code, so other collections may happen inside of
/// them; no others overlap within a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collection {
    /// The lane (OCaml's domain) that did the work.
    pub lane: u16,
    /// What was done.
    pub kind: CollectionKind,
    /// When it began, in nanoseconds since the start.
    pub start: u64,
    /// How long it took, in nanoseconds.
    pub length: u64,
    /// The phase of the major collector when the work began; `None` if it is not known.
    pub phase: Option<Phase>,
    /// The counters when the work had ended; `None` if the source does not know them.
    pub counters: Option<CollectorCounters>,
}

impl Collection {
    /// When it had ended, in nanoseconds since the start.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }
}

/// A kind of work of the garbage collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum CollectionKind {
    /// The minor heap was emptied.
    Minor,
    /// A slice of a major collection. It may include a compaction, which its counters tell.
    Slice,
    /// A whole major collection that the program asked for (`Gc.full_major`, `Gc.major`, `Gc.compact`), where the
    /// runtime has no slices for that.
    Forced,
    /// Finalisers ran (`Gc.finalise`), which are functions of the program.
    Finalisers,
    /// No work: the counters were read, at the beginning or the end of a recording or of a domain.
    Reading,
}

impl CollectionKind {
    /// The name of one piece of such work.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Minor => "minor collection",
            Self::Slice => "major slice",
            Self::Forced => "forced major collection",
            Self::Finalisers => "finalisers",
            Self::Reading => "reading",
        }
    }
}

/// A phase of OCaml's major collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Reachable blocks are marked. From OCaml 5 on, others are swept meanwhile.
    Mark,
    /// What dies with what was not marked is cleaned: OCaml 4's weak pointers, OCaml 5's finalisers.
    Clean,
    /// Blocks that were not marked are freed. OCaml 5: ephemerons are.
    Sweep,
    /// Between collections.
    Idle,
}

impl Phase {
    /// Its name. A slice that begins between collections begins one.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mark => "mark",
            Self::Clean => "clean",
            Self::Sweep => "sweep",
            Self::Idle => "begin",
        }
    }
}

/// The counters of the garbage collector of one lane: in OCaml 5 those of a domain, else those of the program. All are totals
/// since the program, or the domain, began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct CollectorCounters {
    /// Words allocated on the minor heap, headers included.
    pub minor_words: u64,
    /// Words moved from the minor to the major heap.
    pub promoted_words: u64,
    /// Words allocated on the major heap, those promoted included.
    pub major_words: u64,
    /// Words of the major heap, in use or free; OCaml 5: those of the domain.
    pub heap_words: u64,
    /// The part of them that is free.
    pub free_words: u64,
    /// Minor collections of the program.
    pub minor_collections: u64,
    /// Major collections that the program has completed.
    pub major_collections: u64,
    /// Compactions of the program.
    pub compactions: u64,
    /// Whole major collections that were done at once: for the program, or in OCaml 4 to find out whether to compact the heap.
    pub forced_major_collections: u64,
    /// The part of `minor_words` that the sampler allocated for itself: some words for each sample.
    pub sampler_minor_words: u64,
    /// The part of `major_words` that the sampler allocated for itself.
    pub sampler_major_words: u64,
}
