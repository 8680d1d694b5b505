//! Writing traces, in version 3 of the format.

mod cache;
mod current;
mod encoder;
mod names;
mod packet;
mod pending;
mod stack;

use std::io;

use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};

use crate::collection::{Collection, CollectionEncoder};
use crate::event::{Alloc, Event, Source};
use crate::format::{CacheCheck, PacketHeader, VERSION, code, event_head};
use crate::info::TraceInfo;
use crate::location::{LocationId, Locations};
pub use encoder::{DEEPER_CALLS, Encoder, OMITTED_FRAMES};
pub use names::FrameSink;
pub(crate) use packet::PacketBuffer;
pub use packet::{PacketMemory, PacketSink, whole_packet};
pub use pending::{Detached, Pending};
use stack::Stack;
pub use stack::{Frames, TaggedCode};

/// A sampled block that is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Words, without the header.
    pub length: u64,
    /// The number of times that the sampler hit it.
    pub samples: u64,
    /// The heap on which it was allocated.
    pub source: Source,
}

/// Writes a trace, its domains one after the other.
///
/// The events come out in the order in which they were put in: when the domain changes, the
/// packet is closed. A recorder in a program with several domains uses an [`Encoder`] for each.
///
/// ```
/// use heapline_trace::{Block, Frame, Reader, Source, TraceInfo, Writer};
///
/// let info = TraceInfo {
///     sample_rate: 1e-4,
///     word_size: 64,
///     executable_name: "/usr/bin/example".into(),
///     host_name: "host".into(),
///     ocaml_runtime_params: "v=0".into(),
///     seed: None,
///     pid: 42,
///     start_time: 1_700_000_000_000_000,
///     initial_domain: 0,
///     context: None,
/// };
/// let mut writer = Writer::new(Vec::new(), &info)?;
/// let block = Block { length: 3, samples: 1, source: Source::Minor };
/// // A block of three words, 500 microseconds after the start, allocated at 0x4711, whose caller
/// // is at 0x4242. A real program would look up what is at these addresses.
/// writer.alloc(0, 500, 0, block, &[0x4242, 0x4711], |code, frames| {
///     frames.push(Frame {
///         file: b"example.ml",
///         name: if code == 0x4711 { b"Example.make" } else { b"Example.main" },
///         line: 12,
///         start_char: 2,
///         end_char: 17,
///     });
/// })?;
/// writer.collect(0, 1500, 0)?;
/// let bytes = writer.finish()?;
///
/// let mut reader = Reader::new(&bytes[..], Default::default())?;
/// let mut lines = Vec::new();
/// reader.for_each(|event, locations| {
///     if let heapline_trace::Event::Alloc(alloc) = event {
///         for &location in alloc.stack.frames() {
///             let frame = locations.frames(location).next().unwrap();
///             lines.push(format!("{} at line {}", frame.name_lossy(), frame.line));
///         }
///     }
/// })?;
/// assert_eq!(lines, ["Example.main at line 12", "Example.make at line 12"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Writer<S> {
    sink: S,
    pid: u64,
    start_time: u64,
    encoders: HashMap<u16, Encoder>,
    collections: HashMap<u16, CollectionEncoder>,
    current: u16,
    /// The stack at hand.
    stack: Stack,
    /// The stacks of a trace that is being read, by domain.
    followed: HashMap<u16, Followed>,
    /// Codes that a domain had no frames for. No other domain may have any: definitions of one
    /// code must agree.
    nameless: HashSet<u64>,
}

/// Domains that a trace can be written with. Each takes a MiB of address space and a few of the mappings of which Linux gives
/// a process 65,530 in all.
const MAX_DOMAINS: usize = 1 << 14;

/// The stack of a domain of the trace that is being read.
#[derive(Debug, Default)]
struct Followed {
    stack: Stack,
    /// Outermost frames that are the same as in the stack that was written last.
    unchanged: usize,
}

impl<S: PacketSink> Writer<S> {
    /// Starts a trace: writes its first packet.
    pub fn new(mut sink: S, info: &TraceInfo) -> io::Result<Self> {
        write_info(info, &mut sink)?;
        Ok(Self {
            sink,
            pid: info.pid,
            start_time: info.start_time,
            encoders: HashMap::new(),
            collections: HashMap::new(),
            current: info.initial_domain,
            stack: Stack::default(),
            followed: HashMap::new(),
            nameless: HashSet::new(),
        })
    }

    /// Writes an allocation: see [`Encoder::alloc`]. Unlike there, `time` is in microseconds since
    /// the start of the trace and `stack` has the outermost caller first, as in events.
    pub fn alloc(
        &mut self,
        domain: u16,
        time: u64,
        id: u64,
        block: Block,
        stack: &[u64],
        resolve: impl FnMut(u64, &mut FrameSink<'_>),
    ) -> io::Result<()> {
        let mut tagged = std::mem::take(&mut self.stack);
        tagged.truncate(0);
        for &code in stack {
            tagged.push(TaggedCode::new(code));
        }
        let frames = tagged.frames().into();
        let result = self.alloc_frames(domain, time, id, block, frames, resolve);
        self.stack = tagged;
        result
    }

    fn alloc_frames(
        &mut self,
        domain: u16,
        time: u64,
        id: u64,
        block: Block,
        stack: Frames<'_>,
        mut resolve: impl FnMut(u64, &mut FrameSink<'_>),
    ) -> io::Result<()> {
        let time = self.start_time.saturating_add(time);
        let mut nameless = std::mem::take(&mut self.nameless);
        let (encoder, sink) = self.encoder(domain)?;
        let resolve_alike = |code: u64, frames: &mut FrameSink<'_>| {
            if !nameless.contains(&code) {
                resolve(code, frames);
                if frames.is_empty() {
                    nameless.insert(code);
                }
            }
        };
        let result = encoder.alloc(time, id, block, stack, resolve_alike, sink);
        self.nameless = nameless;
        result
    }

    /// Writes a promotion.
    pub fn promote(&mut self, domain: u16, time: u64, id: u64) -> io::Result<()> {
        let time = self.start_time.saturating_add(time);
        let (encoder, sink) = self.encoder(domain)?;
        encoder.promote(time, id, sink)
    }

    /// Writes a collection.
    pub fn collect(&mut self, domain: u16, time: u64, id: u64) -> io::Result<()> {
        let time = self.start_time.saturating_add(time);
        let (encoder, sink) = self.encoder(domain)?;
        encoder.collect(time, id, sink)
    }

    /// Writes a piece of work of the garbage collector. Within a domain they come in the order of their ends.
    pub fn collection(&mut self, work: &Collection) -> io::Result<()> {
        let domains = self.collections.len();
        let encoder = match self.collections.entry(work.domain) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if domains >= MAX_DOMAINS => return Err(too_many_domains()),
            Entry::Vacant(new) => new.insert(CollectionEncoder::new(work.domain, self.start_time)),
        };
        encoder.push(work, &mut self.sink)
    }

    /// Writes an event that was read, under its own id.
    ///
    /// Allocations that are not written must be [followed](Self::follow) instead.
    pub fn event(&mut self, event: &Event<'_>, locations: &Locations) -> io::Result<()> {
        match event {
            Event::Promote(mark) => self.promote(mark.domain, mark.time, mark.id),
            Event::Collect(mark) => self.collect(mark.domain, mark.time, mark.id),
            Event::Alloc(alloc) => {
                self.follow(alloc, |location| locations.code(location));
                self.alloc_followed(alloc, alloc.id, alloc.samples, |code, frames| {
                    let location = locations.find(code);
                    for frame in location.into_iter().flat_map(|id| locations.frames(id)) {
                        frames.push(frame);
                    }
                })
            }
        }
    }

    /// Takes note of the stack of an allocation that was read, whether it is going to be written
    /// or not: stacks are changes to the ones before. `code` gives the code of a location.
    pub fn follow(&mut self, alloc: &Alloc<'_>, code: impl Fn(LocationId) -> u64) {
        let followed = self.followed.entry(alloc.domain).or_default();
        // What was followed is less than what is shared if the first events were not.
        let shared = alloc.stack.shared().min(followed.stack.len());
        followed.stack.truncate(shared);
        for &location in &alloc.stack.frames()[shared..] {
            followed.stack.push(TaggedCode::new(code(location)));
        }
        followed.unchanged = followed.unchanged.min(shared);
    }

    /// Writes an allocation with the stack that was [followed](Self::follow) last, under another id
    /// and with other samples.
    pub fn alloc_followed(
        &mut self,
        alloc: &Alloc<'_>,
        id: u64,
        samples: u64,
        resolve: impl FnMut(u64, &mut FrameSink<'_>),
    ) -> io::Result<()> {
        let block = Block {
            length: alloc.length,
            samples,
            source: alloc.source,
        };
        let mut followed = self.followed.remove(&alloc.domain).unwrap_or_default();
        let frames = Frames {
            codes: followed.stack.frames(),
            shared: followed.unchanged,
        };
        let result = self.alloc_frames(alloc.domain, alloc.time, id, block, frames, resolve);
        followed.unchanged = followed.stack.len();
        self.followed.insert(alloc.domain, followed);
        result
    }

    /// Stacks that no packet could hold: see [`Encoder::shortened_stacks`].
    #[must_use]
    pub fn shortened_stacks(&self) -> u64 {
        self.encoders.values().map(Encoder::shortened_stacks).sum()
    }

    /// Writes all that is still waiting.
    pub fn flush(&mut self) -> io::Result<()> {
        if let Some(encoder) = self.encoders.get_mut(&self.current) {
            encoder.flush(&mut self.sink)?;
        }
        Ok(())
    }

    /// Ends the trace, and returns what it was written to.
    pub fn finish(mut self) -> io::Result<S> {
        self.flush()?;
        let mut collections: Vec<_> = self.collections.into_iter().collect();
        collections.sort_unstable_by_key(|(domain, _)| *domain);
        for (_, mut encoder) in collections {
            encoder.flush(&mut self.sink)?;
        }
        Ok(self.sink)
    }

    fn encoder(&mut self, domain: u16) -> io::Result<(&mut Encoder, &mut S)> {
        if domain != self.current {
            self.flush()?;
            self.current = domain;
        }
        let domains = self.encoders.len();
        let encoder = match self.encoders.entry(domain) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if domains >= MAX_DOMAINS => return Err(too_many_domains()),
            Entry::Vacant(new) => new.insert(Encoder::new(self.pid, domain, self.start_time)),
        };
        Ok((encoder, &mut self.sink))
    }
}

fn too_many_domains() -> io::Error {
    io::Error::other(format!("the trace has more than {MAX_DOMAINS} domains"))
}

/// Writes the packet with which a trace begins.
///
/// For recorders that use [`Encoder`]s; a [`Writer`] does it by itself.
pub fn write_info(info: &TraceInfo, sink: &mut impl PacketSink) -> io::Result<()> {
    let mut event = event_head(code::INFO, info.start_time).to_vec();
    // Together the strings must fit into the packet.
    let string = |out: &mut Vec<u8>, text: &str| {
        let text = text.as_bytes();
        let end = memchr::memchr(0, text).unwrap_or(text.len()).min(8000);
        out.extend_from_slice(&text[..end]);
        out.push(0);
    };
    event.extend_from_slice(&info.sample_rate.to_bits().to_le_bytes());
    event.push(info.word_size);
    string(&mut event, &info.executable_name);
    string(&mut event, &info.host_name);
    string(&mut event, &info.params_with_seed());
    event.extend_from_slice(&info.pid.to_le_bytes());
    string(&mut event, info.context.as_deref().unwrap_or_default());
    let mut packet = PacketBuffer::new();
    packet.open(PacketHeader {
        size: 0,
        time_begin: info.start_time,
        time_end: info.start_time,
        flush_duration: 0,
        version: VERSION,
        pid: info.pid,
        domain: info.initial_domain,
        check: CacheCheck::NONE,
        first_id: 0,
        end_id: 0,
    });
    let end = packet.put([&event]);
    packet.seal(end);
    packet.write(sink)
}

/// An array that takes memory only where it is written to.
#[expect(
    clippy::unnecessary_box_returns,
    reason = "it is too large for a stack"
)]
fn zeros<T: Copy + Default, const N: usize>() -> Box<[T; N]> {
    match vec![T::default(); N].into_boxed_slice().try_into() {
        Ok(array) => array,
        Err(_) => unreachable!("it has N elements"),
    }
}
