//! Traces of a simulated server that runs for hours, of any size.
//!
//! The generator streams: its memory does not depend on the length of the trace, so that loaders can
//! be tested with traces that are larger than memory. About 90 % of the blocks die at the next minor
//! collection, 9 % are promoted and live for up to two minutes, 1 % live longer: in a cache that
//! evicts, in sessions of minutes to hours, or in a leak. The load changes every two
//! minutes.

mod phase;
mod run;
mod stacks;

use std::io::{self, Write};

use heapline_trace::TraceInfo;

use crate::generate;
use run::Run;

/// Each sample stands for this many words.
const WORDS_PER_SAMPLE: u64 = 10_000;

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// When the trace has this many bytes. The packets that are open then are added.
    Bytes(u64),
    /// After this many allocations.
    Allocations(u64),
}

/// Options of a run.
#[derive(Clone, Copy, Debug)]
pub struct LongRun {
    /// Decides everything else.
    pub seed: u64,
    /// The end of the run.
    pub length: Length,
    /// Domains. Each fills packets of its own, so that with more than one of them events are not in
    /// the order of time. The last one is mostly idle: its events come up to 30 seconds late.
    pub domains: u16,
}

impl Default for LongRun {
    fn default() -> Self {
        Self {
            seed: 1,
            length: Length::Allocations(1_000_000),
            domains: 1,
        }
    }
}

/// Numbers of a trace that was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LongRunTotals {
    /// Sampled blocks.
    pub allocations: u64,
    /// Blocks that were promoted.
    pub promotions: u64,
    /// Blocks that died.
    pub collections: u64,
    /// Size of the trace.
    pub bytes: u64,
    /// Simulated time in microseconds.
    pub duration: u64,
}

impl LongRunTotals {
    /// Events in all.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.allocations + self.promotions + self.collections
    }
}

impl LongRun {
    /// Writes the trace. Each packet is written at once, so that a buffer is of little use.
    pub fn write(&self, sink: impl Write) -> io::Result<LongRunTotals> {
        let info = TraceInfo {
            sample_rate: 1.0 / WORDS_PER_SAMPLE as f64,
            executable_name: "/srv/long-run".into(),
            // The minor heap of a server that allocates 1 GB/s and collects four times a second.
            ocaml_runtime_params: "e=16,o=120,s=33554432".into(),
            seed: None,
            ..generate::info()
        };
        let mut run = Run::new(sink, &info, self.seed, self.domains.max(1))?;
        while match self.length {
            Length::Bytes(bytes) => run.bytes() < bytes,
            Length::Allocations(count) => run.allocations() < count,
        } {
            run.step()?;
        }
        run.finish()
    }
}
