//! Opens heap profiles of any input format.
//!
//! [`Reader`] recognises the format by its first bytes, decompresses, and yields batches of events in
//! the vocabulary of [`heapline_model`]. A new format is one file here that implements
//! [`Decoder`], and one line in `FORMATS`. [`Follower`] reads a recording that still runs.
//!
//! ```
//! use heapline_formats::{Options, Reader};
//! use heapline_model::{Batch, EventKind, Source};
//!
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/mix-ocaml53/trace.ctf");
//! let mut reader = Reader::open(path, Options::default())?;
//! assert_eq!(reader.header().format, "memtrace");
//! let (mut batch, mut births) = (Batch::default(), 0);
//! while reader.next_batch(&mut batch)? {
//!     births += batch.births().len();
//!     batch.clear();
//! }
//! assert_eq!(births, 2787);
//! # Ok::<(), heapline_model::Error>(())
//! ```

mod executable;
mod follow;
pub mod marshal;
mod memtrace;
mod reader;
pub mod spacetime;

pub use executable::Executable;
pub use follow::{Follower, is_unlocked};
pub use memtrace::memtrace_damage;
pub use reader::Reader;

use heapline_model::Decoder;

/// All input formats. A new one is a line here.
static FORMATS: [Format; 2] = [memtrace::FORMAT, spacetime::FORMAT];

/// How an input is decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Make any damage an error.
    pub strict: bool,
    /// Decode call stacks. Without them decoding is about twice as fast.
    pub stacks: bool,
    /// Use what is intact of a packet that is cut off by the end of the input.
    pub partial_packets: bool,
    /// The program, for names that the input does not have. Only Spacetime's profiles need it.
    pub executable: Option<Executable>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            strict: false,
            stacks: true,
            partial_packets: true,
            executable: None,
        }
    }
}

/// An input format.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Its name, such as `memtrace`.
    pub name: &'static str,
    /// Returns true if an input begins like this format. There may be fewer bytes than asked for, but not
    /// fewer than [`HEAD`] unless the input is shorter.
    pub matches: fn(head: &[u8]) -> bool,
    /// Makes a decoder.
    pub decoder: fn(Options) -> Box<dyn Decoder>,
}

/// Bytes by which formats are told apart.
pub const HEAD: usize = 64;

/// Recognises a format by the first bytes of a decompressed input.
///
/// ```
/// assert_eq!(heapline_formats::sniff(b"\xc1\x1f\xfc\xc1").unwrap().name, "memtrace");
/// assert!(heapline_formats::sniff(b"#!/bin/sh").is_none());
/// ```
#[must_use]
pub fn sniff(head: &[u8]) -> Option<&'static Format> {
    FORMATS.iter().find(|format| (format.matches)(head))
}
