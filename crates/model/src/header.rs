//! The header of a source: program, sampling scheme, capabilities.

use serde::{Deserialize, Serialize};

/// The program that was profiled, how it was sampled, and what the source can tell.
///
/// Strings are whatever the profiled program put there; they may hold any character.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The input format, such as `memtrace`.
    pub format: &'static str,
    /// The version of the format.
    pub format_version: u32,
    /// The language runtime of the program.
    pub runtime: Runtime,
    /// The executable.
    pub program: String,
    /// The machine that it ran on.
    pub host: String,
    /// The process.
    pub pid: u64,
    /// When the recording started, in microseconds since the Unix epoch.
    pub start_time: u64,
    /// The seed of the samples, if it is known.
    pub seed: Option<u64>,
    /// The lane that started the recording.
    pub first_lane: u16,
    /// A note by the program's author.
    pub context: Option<String>,
    /// Bytes of a word: the unit in which sizes of OCaml blocks are given; 1 where sizes are given
    /// in bytes.
    pub word_bytes: u64,
    /// How blocks were sampled.
    pub scheme: Scheme,
    /// The properties that the source can tell.
    pub tells: Capabilities,
}

/// The context of a recording that began when Heapline attached to a running process.
#[must_use]
pub fn attached_context(pid: u64, context: Option<&str>) -> String {
    let attached = format!("{ATTACHED_TO}{pid}: {BLOCKS_BEFORE}");
    match context {
        Some(context) => format!("{context} ({attached})"),
        None => attached,
    }
}

const ATTACHED_TO: &str = "attached to process ";
const BLOCKS_BEFORE: &str = "blocks allocated before are unknown";

impl Header {
    /// The process that was attached to, if the recording began with that: blocks that had been allocated before are not in it.
    #[must_use]
    pub fn attached_to(&self) -> Option<u64> {
        let context = self.context.as_deref()?.trim_end_matches(')');
        let context = context.strip_suffix(BLOCKS_BEFORE)?.strip_suffix(": ")?;
        let (_, pid) = context.rsplit_once(ATTACHED_TO)?;
        pid.parse().ok()
    }
}

/// The language runtime of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Runtime {
    /// OCaml, with the parameters of its runtime as `OCAMLRUNPARAM` has them.
    OCaml {
        /// The parameters; empty if they are not known.
        parameters: String,
    },
    /// A Rust program, or another one whose allocator was sampled.
    Native,
}

impl Runtime {
    /// A short name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::OCaml { .. } => "OCaml",
            Self::Native => "native",
        }
    }

    /// The parameters of OCaml's runtime, if it is OCaml.
    #[must_use]
    pub fn ocaml_parameters(&self) -> Option<&str> {
        match self {
            Self::OCaml { parameters } => Some(parameters),
            Self::Native => None,
        }
    }
}

/// How blocks were sampled, and so what a sampled block stands for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Scheme {
    /// Every block is there.
    Exact,
    /// Each unit of memory (a word of OCaml, a byte elsewhere) was hit with probability `rate`,
    /// independently of all others; blocks that were hit are there.
    PerUnit {
        /// The probability.
        rate: f64,
        /// Bytes of a unit.
        unit_bytes: u64,
    },
    /// Each row is a number of blocks, the [samples](crate::Birth::samples), which together take the
    /// [size](crate::Birth::size), headers included. The amounts are exact.
    Given,
}

/// The properties that a source can tell. Reports say that a source does not tell something rather than show zeros.
// By default, nothing is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other"
)]
pub struct Capabilities {
    /// When blocks died.
    pub lifetimes: bool,
    /// Which blocks moved from the minor to the major heap.
    pub promotions: bool,
    /// The parameters of the garbage collector.
    pub gc_parameters: bool,
    /// Which lane (domain or thread) allocated.
    pub lanes: bool,
    /// The size of each block, and so how many blocks were allocated. Sources without it have
    /// sums: of what was alive at some moments, and of what was allocated.
    pub sizes: bool,
}
