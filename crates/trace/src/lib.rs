//! Reads and writes the heap traces of OCaml's [memtrace] (`.ctf` files), versions 1 to 3.
//!
//! A trace describes a sample of the blocks that a program allocated: their sizes and call stacks, and
//! when they were allocated, promoted to the major heap, and found dead. This crate decodes and encodes
//! such events. Their interpretation is left to other crates.
//!
//! - [`open`] opens a trace file, complete up to now: events that a running or killed program has not
//!   written yet are read from the file's [`tail`]. A [`Snapshot`] can be read more than once.
//!   A [`GrowingTrace`] is read on as its recording goes on.
//! - [`Reader`] reads files, pipes, compressed traces, and files that are still growing.
//!   [`Decoder`] is its sans-IO core: bytes in, events out.
//! - [`Writer`] writes a trace; [`Encoder`]s, one per domain, are for concurrent recorders.
//!
//! # An example
//!
//! Find the function that allocates most. Each sample represents `1 / sample_rate` words.
//!
//! ```
//! use std::collections::HashMap;
//! use heapline_trace::{Event, Options, Reader};
//!
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/mix-ocaml53/trace.ctf");
//! let mut reader = Reader::open(path, Options::new())?;
//! let mut samples: HashMap<String, u64> = HashMap::new();
//! reader.for_each(|event, locations| {
//!     if let Event::Alloc(alloc) = event
//!         && let Some(site) = alloc.stack.site()
//!         // With inlined functions there are several frames; the innermost is the last.
//!         && let Some(frame) = locations.frames(site).next_back()
//!     {
//!         *samples.entry(frame.name_lossy().into_owned()).or_default() += alloc.samples;
//!     }
//! })?;
//! let (name, count) = samples.iter().max_by_key(|(_, count)| **count).unwrap();
//! let words = *count as f64 / reader.info().sample_rate;
//! println!("{name} allocated about {words} words");
//! # assert_eq!(name, "Mix.big");
//! assert!(reader.damage().is_empty());
//! # Ok::<(), heapline_trace::Error>(())
//! ```
//!
//! # Performance
//!
//! Events borrow from the decoder, which allocates nothing per event. Each stack is also available as
//! the difference to the last stack of the same domain ([`Stack::new_frames`]), so that consumers need
//! not process whole stacks. Without stacks ([`Options::stacks`]) reading is about twice as fast.
//!
//! # Damage
//!
//! Traces are truncated when programs are killed, are mixed with those of forked children, and
//! get damaged in transfer. By default a reader returns everything that is intact and
//! [reports](Damage) the rest: where, what was lost, and what is uncertain. With [`Options::strict`] any
//! flaw is an error. In both cases no number in a file is trusted: memory and time are proportional
//! to the actual data.
//!
//! If a packet is lost, later stacks may have wrong frames, because stacks are encoded as
//! differences; they are [marked](Stack::is_uncertain). Times never decrease within a domain. Between
//! domains they may, because packets are in the order in which they were written.
//!
//! # The format
//!
//! All little-endian. A trace is a sequence of packets of at most 32 KiB, each written at once:
//!
//! | field | type | |
//! | --- | --- | --- |
//! | magic | u32 | `0xc1fc1fc1` |
//! | size | u32 | in bits, header included |
//! | begin, end | 2 × u64 | microseconds since 1970 |
//! | flush duration | u32 | 0 |
//! | version | u16 | 1 to 3 |
//! | pid | u64 | skip packets of a forked child |
//! | domain | u16 | from version 3 on |
//! | cache check | u16, u16, u64 | a bucket of the cache, its prediction and its code; bucket `0xffff`: none |
//! | first id, end id | 2 × u64 | ids of the allocations in the packet |
//!
//! Events have a head of 32 bits: the low 25 bits of the time, and a code. `vint` is a byte up to
//! 252, or 253, 254, 255 and a u16, i32 or i64.
//!
//! | code | event | fields |
//! | --- | --- | --- |
//! | 0 | info, alone in the first packet | sample rate f64, word size u8 (64 or 32 bits; 8 for programs whose lengths and samples are in bytes), three strings ending in NUL (executable, host, runtime parameters), pid u64, context string (from version 2 on) |
//! | 1 | location | code u64, number of frames u8; each frame 48 bits: line 20, start column 8, end column 10, file 5, function 5; the last two are positions in move-to-front tables, where 31 is a new string that follows |
//! | 2 | allocation | length vint, samples vint, source u8, common prefix vint, number of code words u16, code words |
//! | 101 to 116 | short allocation of 1 to 16 words, minor, one sample | common prefix vint, number of code words u8, code words |
//! | 3, 4 | promotion, collection | vint: distance of the id to the last one allocated |
//!
//! A stack is a common prefix with the last stack of its domain, and code words for the rest. A
//! code word names a bucket in a cache of 2^14 location codes (14 bits) and says (2 bits) whether
//! the code is there (0), is there and one more follows as predicted (1), as many more as the next
//! byte says (2), or is not there and follows as a u64 (3). Each bucket predicts the bucket that
//! came after it last time. Each domain has its own cache, tables and last stack.
//!
//! Packets whose process is the ASCII text `Heapline` are not memtrace's, whose reader skips them as it skips those of a forked
//! child. The byte behind their header says what they have: 1 to 3 a part of a [`CoarseHistory`], 4 the work of the garbage
//! collector in a domain ([`Collection`]), which `collection.rs` describes.
//!
//! [memtrace]: https://github.com/janestreet/memtrace

mod coarse;
mod collection;
mod damage;
mod decoder;
mod ending;
mod error;
mod event;
mod format;
mod growing;
mod info;
pub mod keep;
mod location;
mod mtf;
mod reader;
mod snapshot;
pub mod tail;
mod varint;
mod visitor;
mod writer;

pub use coarse::CoarseHistory;
pub use collection::{Collection, CollectionEncoder, CollectionKind, CollectorCounters, Phase};
pub use damage::{Damage, Flaw, FlawKind};
pub use decoder::{Decoder, Options, PacketPart, PacketSummary, Step};
pub use ending::{EarlyEnd, Ending};
pub use error::Error;
pub use event::{Alloc, Event, Mark, Source, Stack};
pub use format::{MAX_WRITTEN_PACKET, VERSION};
pub use growing::GrowingTrace;
pub use info::TraceInfo;
pub use location::{Frame, LocationId, Locations};
pub use reader::{ByteSource, Reader, decompressed, open_decompressed};
pub use snapshot::{Snapshot, SnapshotReader, TailProblem, open};
pub use visitor::Visitor;
pub use writer::{
    Block, DEEPER_CALLS, Detached, Encoder, FrameSink, Frames, OMITTED_FRAMES, PacketMemory,
    PacketSink, Pending, TaggedCode, Writer, whole_packet, write_info,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
