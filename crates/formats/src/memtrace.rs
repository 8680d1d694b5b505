//! memtrace's traces, and those that Heapline records.

use heapline_model::{
    Batch, Birth, Capabilities, Collection, CollectionKind, CollectorCounters, Damage, Decoder,
    Error, Flaw, Frame, Header, InputSize, LocationId, Phase, Runtime, Scheme, Space, Step,
};
use heapline_trace as trace;
use serde_json::Value;

use crate::{Format, Options};

pub(crate) const FORMAT: Format = Format {
    name: "memtrace",
    matches: |head| head.starts_with(b"\xc1\x1f\xfc\xc1"),
    decoder: |options| Box::new(Memtrace::new(&options)),
};

/// Translates what [`trace::Decoder`] gives.
pub(crate) struct Memtrace {
    decoder: trace::Decoder,
    header: Option<Header>,
    locations: Defined,
    /// Boundaries of the coarse history that are in a batch.
    boundaries: usize,
    /// Gaps that are in a batch.
    gaps: usize,
}

impl Memtrace {
    pub(crate) fn new(options: &Options) -> Self {
        Self::with(trace_options(options))
    }

    /// A decoder of packets that are handed over one by one.
    pub(crate) fn of_packets(options: &Options) -> Self {
        Self::with(trace_options(options).eager(true))
    }

    fn with(options: trace::Options) -> Self {
        Self {
            decoder: trace::Decoder::new(options),
            header: None,
            locations: Defined::default(),
            boundaries: 0,
            gaps: 0,
        }
    }

    /// Decodes the first packet.
    pub(crate) fn begin(&mut self, packet: &[u8]) -> Result<(), Error> {
        self.decoder.push(packet);
        self.decode(&mut Batch::default())?;
        Ok(())
    }

    /// Decodes another packet, or a part of one.
    pub(crate) fn resume(
        &mut self,
        part: trace::PacketPart<'_>,
        batch: &mut Batch,
    ) -> Result<(), Error> {
        self.fill(batch, |decoder, fill| {
            decoder.resume_packet(part, fill).map_err(Error::format)
        })?;
        Ok(())
    }

    /// Notes that the recording has ended before its program.
    pub(crate) fn end_early(&mut self, end: trace::EarlyEnd) {
        self.decoder.end_early(end);
    }

    /// Adds the events and locations of a packet to a batch.
    fn fill<T>(
        &mut self,
        batch: &mut Batch,
        decode: impl FnOnce(&mut trace::Decoder, &mut Fill<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let word_bytes = self.header.as_ref().map_or(1, |header| header.word_bytes);
        let mut fill = Fill {
            batch,
            word_bytes,
            uses_unknown: false,
        };
        let result = decode(&mut self.decoder, &mut fill)?;
        self.locations.uses_unknown |= fill.uses_unknown;
        if self.header.is_none() {
            self.header = header(&self.decoder);
        }
        self.locations.define_new(self.decoder.locations(), batch);
        let boundaries = self.decoder.coarse().boundaries();
        for &time in &boundaries[self.boundaries..] {
            batch.boundary(time);
        }
        self.boundaries = boundaries.len();
        let gaps = self.decoder.coarse().gaps();
        for &(start, end) in &gaps[self.gaps..] {
            batch.gap(start, end);
        }
        self.gaps = gaps.len();
        Ok(result)
    }
}

fn trace_options(options: &Options) -> trace::Options {
    trace::Options::new()
        .strict(options.strict)
        .stacks(options.stacks)
        .partial_packets(options.partial_packets)
}

impl Decoder for Memtrace {
    fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    fn space(&mut self) -> &mut [u8] {
        self.decoder.space()
    }

    fn filled(&mut self, n: usize) {
        self.decoder.filled(n);
    }

    fn finish(&mut self, broken: Option<String>) -> Result<(), Error> {
        match broken {
            None => self.decoder.finish(),
            Some(reason) => self.decoder.finish_broken(reason).map_err(Error::format)?,
        }
        Ok(())
    }

    fn decode(&mut self, batch: &mut Batch) -> Result<Step, Error> {
        let step = self.fill(batch, |decoder, fill| {
            decoder.visit_packet(fill).map_err(Error::format)
        })?;
        Ok(match step {
            trace::Step::Packet(_) => Step::Progress,
            trace::Step::NeedInput => Step::NeedInput,
            trace::Step::End => Step::End,
        })
    }

    fn damage(&self) -> Damage {
        memtrace_damage(self.decoder.damage())
    }

    fn size(&self) -> InputSize {
        InputSize {
            bytes: self.decoder.offset(),
            packets: self.decoder.packets(),
        }
    }
}

/// Fills a batch with the events of a packet.
struct Fill<'a> {
    batch: &'a mut Batch,
    word_bytes: u64,
    /// True if a stack has [`Defined::UNKNOWN`].
    uses_unknown: bool,
}

impl trace::Visitor for Fill<'_> {
    #[inline]
    fn alloc(&mut self, alloc: &trace::Alloc<'_>, _: &trace::Locations) {
        let birth = Birth {
            size: alloc.length.saturating_mul(self.word_bytes),
            samples: alloc.samples,
            merged: alloc.merged,
            space: match alloc.source {
                trace::Source::Minor => Space::Minor,
                trace::Source::Major => Space::Major,
                trace::Source::External if self.word_bytes == 1 => Space::Native,
                trace::Source::External => Space::External,
            },
            truncated: alloc.stack.is_cut(),
            shared: u32::try_from(alloc.stack.shared()).unwrap_or(u32::MAX),
            ..Birth::default()
        };
        let uses_unknown = &mut self.uses_unknown;
        let frames = alloc.stack.new_frames().iter().map(|&location| {
            *uses_unknown |= location.index() == Defined::UNKNOWN;
            id(location)
        });
        self.batch
            .birth(alloc.time, alloc.domain, alloc.id, birth, frames);
    }

    #[inline]
    fn promote(&mut self, mark: trace::Mark, _: &trace::Locations) {
        self.batch.promotion(mark.time, mark.domain, mark.id);
    }

    #[inline]
    fn collect(&mut self, mark: trace::Mark, _: &trace::Locations) {
        self.batch.death(mark.time, mark.domain, mark.id);
    }

    fn collection(&mut self, work: &trace::Collection) {
        self.batch.collection(collection(work));
    }
}

fn collection(work: &trace::Collection) -> Collection {
    Collection {
        lane: work.domain,
        kind: match work.kind {
            trace::CollectionKind::Minor => CollectionKind::Minor,
            trace::CollectionKind::Slice => CollectionKind::Slice,
            trace::CollectionKind::Forced => CollectionKind::Forced,
            trace::CollectionKind::Finalisers => CollectionKind::Finalisers,
            trace::CollectionKind::Reading => CollectionKind::Reading,
        },
        start: work.start,
        length: work.length,
        phase: work.phase.map(|phase| match phase {
            trace::Phase::Mark => Phase::Mark,
            trace::Phase::Clean => Phase::Clean,
            trace::Phase::Sweep => Phase::Sweep,
            trace::Phase::Idle => Phase::Idle,
        }),
        counters: work.counters.map(|counters| CollectorCounters {
            minor_words: counters.minor_words,
            promoted_words: counters.promoted_words,
            major_words: counters.major_words,
            heap_words: counters.heap_words,
            free_words: counters.free_words,
            minor_collections: counters.minor_collections,
            major_collections: counters.major_collections,
            compactions: counters.compactions,
            forced_major_collections: counters.forced_major_collections,
            sampler_minor_words: counters.sampler_minor_words,
            sampler_major_words: counters.sampler_major_words,
        }),
    }
}

fn id(location: trace::LocationId) -> LocationId {
    // There are fewer than 2^32: the trace numbers them so.
    LocationId(u32::try_from(location.index()).unwrap_or(u32::MAX))
}

fn header(decoder: &trace::Decoder) -> Option<Header> {
    let info = decoder.info()?;
    // Heapline's sampler for Rust programs counts in bytes, which it calls words of 8 bits.
    let is_native = info.word_bytes() == 1;
    let parameters = &info.ocaml_runtime_params;
    Some(Header {
        format: FORMAT.name,
        format_version: decoder.version().unwrap_or_default().into(),
        runtime: if is_native {
            Runtime::Native
        } else {
            Runtime::OCaml {
                parameters: parameters.clone(),
            }
        },
        program: info.executable_name.clone(),
        host: info.host_name.clone(),
        pid: info.pid,
        start_time: info.start_time,
        seed: info.seed,
        first_lane: info.initial_domain,
        context: info.context.clone(),
        word_bytes: info.word_bytes(),
        scheme: if info.sample_rate >= 1.0 {
            Scheme::Exact
        } else {
            Scheme::PerUnit {
                rate: info.sample_rate,
                unit_bytes: info.word_bytes(),
            }
        },
        tells: Capabilities {
            lifetimes: true,
            promotions: !is_native,
            gc_parameters: !is_native && !parameters.is_empty(),
            lanes: true,
            sizes: true,
        },
    })
}

/// Translates the damage of a trace, for commands that read traces event by event.
#[must_use]
pub fn memtrace_damage(damage: &trace::Damage) -> Damage {
    Damage {
        flaws: damage.flaws().iter().map(flaw).collect(),
        count: damage.count,
        lost_bytes: damage.lost_bytes,
        lost_allocations: damage.lost_allocations,
        uncertain_stacks: damage.uncertain_stacks,
        uncertain_names: damage.uncertain_names,
    }
}

fn flaw(flaw: &trace::Flaw) -> Flaw {
    let mut details = match serde_json::to_value(flaw) {
        Ok(Value::Object(fields)) => fields.into_iter().collect(),
        _ => std::collections::BTreeMap::new(),
    };
    details.remove("offset");
    let kind = match details.remove("kind") {
        Some(Value::String(kind)) => kind,
        _ => String::new(),
    };
    Flaw {
        offset: flaw.offset,
        kind,
        message: flaw.kind.to_string(),
        details,
    }
}

/// The locations that have been defined in a batch.
#[derive(Default)]
struct Defined {
    /// How many of the trace's there are: it numbers them as they come.
    count: usize,
    /// True if a stack has the location that damaged stacks refer to. It is always there, but few
    /// traces use it.
    uses_unknown: bool,
    has_unknown: bool,
    /// Those that the trace used before it named them.
    unnamed: Vec<trace::LocationId>,
}

impl Defined {
    const UNKNOWN: usize = 0;

    /// Defines those that came with the last packet, and those that it named.
    fn define_new(&mut self, names: &trace::Locations, batch: &mut Batch) {
        self.unnamed.retain(|&location| {
            let is_named = names.is_defined(location);
            if is_named {
                name(location, names, batch);
            }
            !is_named
        });
        if std::mem::take(&mut self.uses_unknown) && !self.has_unknown {
            self.has_unknown = true;
            self.define(Self::UNKNOWN, names, batch);
        }
        for index in self.count.max(Self::UNKNOWN + 1)..names.len() {
            self.define(index, names, batch);
        }
        self.count = names.len();
    }

    fn define(&mut self, index: usize, names: &trace::Locations, batch: &mut Batch) {
        let Some(location) = names.get(index) else {
            return;
        };
        if names.is_defined(location) {
            name(location, names, batch);
        } else {
            self.unnamed.push(location);
            batch.define_unnamed(id(location), names.code(location));
        }
    }
}

fn name(location: trace::LocationId, names: &trace::Locations, batch: &mut Batch) {
    let frames = names.frames(location).map(|frame| Frame {
        file: frame.file,
        name: frame.name,
        line: frame.line,
        start_char: frame.start_char,
        end_char: frame.end_char,
    });
    batch.define(id(location), names.code(location), frames);
}

#[cfg(test)]
mod tests {
    use heapline_model::Source as _;
    use heapline_testkit as testkit;

    use super::*;
    use crate::Reader;

    /// Everything that the trace's own reader gives is in the batches, in the same order.
    #[test]
    fn batches_have_what_the_trace_has() {
        let path = testkit::fixtures::folder().join("mix-ocaml53/trace.ctf");
        let mut expected = Vec::new();
        let mut reader = trace::Reader::open(&path, trace::Options::new()).unwrap();
        reader
            .for_each(|event, _| {
                let frames = match event {
                    trace::Event::Alloc(alloc) => alloc.stack.frames().len(),
                    _ => 0,
                };
                expected.push((event.time(), event.id(), frames));
            })
            .unwrap();
        let mut found = Vec::new();
        let mut reader = Reader::open(&path, Options::default()).unwrap();
        let mut batch = Batch::default();
        while reader.next_batch(&mut batch).unwrap() {
            let mut births = batch.births().iter();
            for event in batch.events() {
                let frames = match event.kind {
                    heapline_model::EventKind::Birth => {
                        let birth = births.next().unwrap();
                        (birth.shared + birth.new) as usize
                    }
                    _ => 0,
                };
                found.push((event.time, event.block, frames));
            }
            batch.clear();
        }
        assert_eq!(found, expected);
        assert!(found.len() > 2787);
    }

    #[test]
    fn what_is_not_a_trace_is_refused_with_what_it_is() {
        let error = Reader::new(&b"#!/bin/sh\necho hello\n"[..], Options::default()).unwrap_err();
        assert!(error.to_string().contains("a script"), "{error}");
        let error = Reader::new(&b""[..], Options::default()).unwrap_err();
        assert!(error.to_string().contains("empty"), "{error}");
    }
}
