//! Writes smaller traces: a time window, fewer samples, no names.
//!
//! A block that is kept is kept with its whole life: its promotion and its collection are kept too,
//! wherever they are. Of the work of the garbage collector that is kept which ended in the window. When threads exchange blocks, they may be in the file before the allocation, so
//! a trace is read twice: [`Cut::scan`] finds such blocks, [`Cut::apply`] writes the result.

use std::hash::Hasher;
use std::io::{self, Read};
use std::ops::Range;

use hashbrown::{HashMap, HashSet};
use heapline_model::BlockIndex;
use heapline_trace::{
    Alloc, Collection, Event, Frame, FrameSink, Locations, Mark, PacketSink, Reader, TraceInfo,
    Visitor, Writer,
};
use rand::SeedableRng;
use rand_distr::{Binomial, Distribution};
use rand_xoshiro::Xoshiro256PlusPlus;
use siphasher::sip::SipHasher13;

/// Selects the part of a trace to keep.
#[derive(Clone, Debug)]
pub struct Cut {
    /// Keep blocks allocated in this time, in microseconds since the start of the trace.
    pub time: Range<u64>,
    /// Keep some of the samples only.
    pub subsample: Option<Subsample>,
    /// The handling of names.
    pub names: Names,
}

impl Default for Cut {
    /// Everything as it is.
    fn default() -> Self {
        Self {
            time: 0..u64::MAX,
            subsample: None,
            names: Names::Keep,
        }
    }
}

/// Each sample is kept with probability 1/`one_in`, and the trace's rate is lowered accordingly:
/// the result is what the sampler would have given at that rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subsample {
    /// At least 1.
    pub one_in: u64,
    /// Seed of the choice: equal seeds keep the same samples.
    pub seed: u64,
}

/// The handling of names in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Names {
    /// Keep them.
    Keep,
    /// Drop them and the stacks, and with them program, host, process and time of day.
    Strip,
    /// Put pseudonyms in place of functions, files, program and host. The same name has the same
    /// pseudonym in all traces that are cut with the same key. Context and process are dropped.
    Hash {
        /// Secret key: without it, nobody can verify a guess at the name behind a pseudonym.
        key: Vec<u8>,
    },
}

/// Counts of the events that were kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Allocations of the original.
    pub allocations_before: u64,
    /// Allocations kept.
    pub allocations: u64,
    /// Samples of the original.
    pub samples_before: u64,
    /// Samples kept.
    pub samples: u64,
    /// Microseconds from the start of the trace to its latest event.
    pub duration: u64,
    /// Stacks that did not fit into the format as this program writes it.
    pub shortened_stacks: u64,
}

/// The error of cutting a trace.
#[derive(Debug, thiserror::Error)]
pub enum CutError {
    /// The original could not be read.
    #[error(transparent)]
    Read(#[from] heapline_trace::Error),
    /// The result could not be written.
    #[error("cannot write the trace")]
    Write(#[source] io::Error),
    /// Sampling one in none makes no sense.
    #[error("cannot keep one sample in 0; the number must be at least 1")]
    NoSubsample,
    /// The trace has sums in place of its older blocks.
    #[error(
        "blocks of this trace were merged when it was recorded (heapline record --keep); only a trace with \
         every block can be cut"
    )]
    Merged,
}

/// The kept blocks that are promoted or collected in the file before they are allocated, as threads
/// that exchange blocks write them.
#[derive(Clone, Debug, Default)]
pub struct EarlyBlocks {
    /// New ids by the ids of the original.
    ids: HashMap<u64, u64>,
}

impl Cut {
    /// First pass: reads the rest of a trace, for which stacks are not needed.
    pub fn scan<R: Read>(&self, reader: &mut Reader<R>) -> Result<EarlyBlocks, CutError> {
        let mut selection = Selection::new(self)?;
        let mut seen = BlockIndex::new();
        let mut waiting = HashSet::new();
        let mut kept = 0;
        let mut early = EarlyBlocks::default();
        let mut has_merged = false;
        reader.for_each(|event, _| match event {
            Event::Alloc(alloc) => {
                has_merged |= alloc.merged > 0;
                seen.push(alloc.id);
                let waited = !waiting.is_empty() && waiting.remove(&alloc.id);
                if selection.samples(&alloc) > 0 {
                    if waited {
                        early.ids.insert(alloc.id, kept);
                    }
                    kept += 1;
                }
            }
            Event::Promote(mark) | Event::Collect(mark) => {
                if seen.find(mark.id).is_none() {
                    waiting.insert(mark.id);
                }
            }
        })?;
        if has_merged {
            return Err(CutError::Merged);
        }
        Ok(early)
    }

    /// Second pass: reads the rest of the same trace and writes what is to be kept of it. The trace
    /// must have been opened with stacks, unless names are stripped.
    pub fn apply<R: Read>(
        &self,
        early: &EarlyBlocks,
        reader: &mut Reader<R>,
        sink: impl PacketSink,
    ) -> Result<Kept, CutError> {
        let mut cutter = Cutter {
            cut: self,
            early,
            selection: Selection::new(self)?,
            writer: Writer::new(sink, &self.info(reader.info())).map_err(CutError::Write)?,
            index: BlockIndex::new(),
            kept: Kept::default(),
            error: None,
        };
        while reader.visit_packet(&mut cutter)?.is_some() {
            if let Some(error) = cutter.error {
                return Err(CutError::Write(error));
            }
        }
        let Cutter {
            mut kept,
            writer,
            error,
            ..
        } = cutter;
        if let Some(error) = error {
            return Err(CutError::Write(error));
        }
        kept.shortened_stacks = writer.shortened_stacks();
        writer.finish().map_err(CutError::Write)?;
        Ok(kept)
    }

    fn info(&self, info: &TraceInfo) -> TraceInfo {
        let mut info = info.clone();
        if let Some(subsample) = self.subsample {
            info.sample_rate /= subsample.one_in as f64;
        }
        if self.names != Names::Keep {
            info.ocaml_runtime_params = settings(&info.ocaml_runtime_params);
        }
        match &self.names {
            Names::Keep => {}
            Names::Strip => {
                info.executable_name = "<anonymous>".into();
                info.host_name = "<anonymous>".into();
                info.context = None;
                info.pid = 0;
                info.start_time = 0;
            }
            Names::Hash { key } => {
                info.executable_name = pseudonym(key, "program-", info.executable_name.as_bytes());
                info.host_name = pseudonym(key, "host-", info.host_name.as_bytes());
                info.context = None;
                info.pid = 0;
            }
        }
        info
    }
}

/// The settings of OCaml's runtime among its parameters: a letter and a number each, such as `s=262144`. Other recorders may
/// write any text there.
fn settings(parameters: &str) -> String {
    let is_setting = |parameter: &&str| {
        let Some((key, value)) = parameter.split_once('=') else {
            return false;
        };
        let is_number = |value: &str| {
            !value.is_empty()
                && value.len() <= 20
                && value.bytes().all(|byte| byte.is_ascii_digit())
        };
        key.len() == 1 && key.bytes().all(|byte| byte.is_ascii_alphabetic()) && is_number(value)
    };
    let kept: Vec<&str> = parameters.split(',').filter(is_setting).collect();
    kept.join(",")
}

struct Cutter<'a, S> {
    cut: &'a Cut,
    early: &'a EarlyBlocks,
    selection: Selection<'a>,
    writer: Writer<S>,
    /// The blocks that are kept. New ids are their numbers.
    index: BlockIndex,
    kept: Kept,
    error: Option<io::Error>,
}

impl<S: PacketSink> Visitor for Cutter<'_, S> {
    fn alloc(&mut self, alloc: &Alloc<'_>, locations: &Locations) {
        self.event(&Event::Alloc(*alloc), locations);
    }

    fn promote(&mut self, mark: Mark, locations: &Locations) {
        self.event(&Event::Promote(mark), locations);
    }

    fn collect(&mut self, mark: Mark, locations: &Locations) {
        self.event(&Event::Collect(mark), locations);
    }

    fn collection(&mut self, work: &Collection) {
        let end = work.start.saturating_add(work.length) / 1000;
        if self.error.is_none() && self.cut.time.contains(&end) {
            self.error = self.writer.collection(work).err();
        }
    }
}

impl<S: PacketSink> Cutter<'_, S> {
    fn event(&mut self, event: &Event<'_>, locations: &Locations) {
        if self.error.is_some() {
            return;
        }
        self.kept.duration = self.kept.duration.max(event.time());
        let result = match event {
            Event::Alloc(alloc) => self.write_alloc(alloc, locations),
            Event::Promote(mark) => match self.new_id(mark.id) {
                Some(id) => self.writer.promote(mark.domain, mark.time, id),
                None => Ok(()),
            },
            Event::Collect(mark) => match self.new_id(mark.id) {
                Some(id) => self.writer.collect(mark.domain, mark.time, id),
                None => Ok(()),
            },
        };
        self.error = result.err();
    }

    /// The new id of a block, if it is kept.
    fn new_id(&mut self, id: u64) -> Option<u64> {
        match self.index.find(id) {
            Some(number) => Some(number as u64),
            None => self.early.ids.get(&id).copied(),
        }
    }

    fn write_alloc(&mut self, alloc: &Alloc<'_>, locations: &Locations) -> io::Result<()> {
        self.kept.allocations_before += 1;
        self.kept.samples_before = self.kept.samples_before.saturating_add(alloc.samples);
        let samples = self.selection.samples(alloc);
        if !matches!(self.cut.names, Names::Strip) {
            // Return addresses tell functions apart in a program that somebody has.
            let keep_codes = matches!(self.cut.names, Names::Keep);
            self.writer.follow(alloc, |location| {
                if keep_codes {
                    locations.code(location)
                } else {
                    location.index() as u64
                }
            });
        }
        if samples == 0 {
            return Ok(());
        }
        self.kept.allocations += 1;
        self.kept.samples = self.kept.samples.saturating_add(samples);
        let id = self.index.push(alloc.id) as u64;
        match &self.cut.names {
            // Nothing was followed: the stack is empty.
            Names::Strip => self.writer.alloc_followed(alloc, id, samples, |_, _| ()),
            Names::Keep => self
                .writer
                .alloc_followed(alloc, id, samples, |code, frames| {
                    let location = locations.find(code);
                    for frame in location.into_iter().flat_map(|id| locations.frames(id)) {
                        frames.push(frame);
                    }
                }),
            Names::Hash { key } => {
                self.writer
                    .alloc_followed(alloc, id, samples, |code, frames| {
                        let location = usize::try_from(code)
                            .ok()
                            .and_then(|index| locations.get(index));
                        for frame in location.into_iter().flat_map(|id| locations.frames(id)) {
                            push_hashed(key, frame, frames);
                        }
                    })
            }
        }
    }
}

/// Decides which blocks are kept; the same ones in each pass.
struct Selection<'a> {
    time: &'a Range<u64>,
    thinner: Option<Thinner>,
}

impl<'a> Selection<'a> {
    fn new(cut: &'a Cut) -> Result<Self, CutError> {
        Ok(Self {
            time: &cut.time,
            thinner: cut.subsample.map(Thinner::new).transpose()?,
        })
    }

    /// The samples to keep of the next allocation; the block is dropped if there are none.
    fn samples(&mut self, alloc: &Alloc<'_>) -> u64 {
        match &mut self.thinner {
            _ if !self.time.contains(&alloc.time) => 0,
            Some(thinner) => thinner.thin(alloc.samples),
            None => alloc.samples,
        }
    }
}

/// Keeps each of a block's samples with the same probability.
struct Thinner {
    probability: f64,
    random: Xoshiro256PlusPlus,
}

impl Thinner {
    fn new(subsample: Subsample) -> Result<Self, CutError> {
        if subsample.one_in == 0 {
            return Err(CutError::NoSubsample);
        }
        Ok(Self {
            probability: 1.0 / subsample.one_in as f64,
            random: Xoshiro256PlusPlus::seed_from_u64(subsample.seed),
        })
    }

    fn thin(&mut self, samples: u64) -> u64 {
        Binomial::new(samples, self.probability).map_or(0, |kept| kept.sample(&mut self.random))
    }
}

fn push_hashed(key: &[u8], frame: Frame<'_>, frames: &mut FrameSink<'_>) {
    let mut name = String::new();
    // Part by part, so that functions of one module are still seen to belong together.
    for (i, part) in frame.name.split(|&byte| byte == b'.').enumerate() {
        if i > 0 {
            name.push('.');
        }
        match part {
            b"(fun)" | b"??" => name.push_str(&String::from_utf8_lossy(part)),
            _ => name.push_str(&pseudonym(key, if i == 0 { "M" } else { "f" }, part)),
        }
    }
    let file = pseudonym(key, "file-", frame.file) + ".ml";
    frames.push(Frame {
        name: name.as_bytes(),
        file: file.as_bytes(),
        ..frame
    });
}

fn pseudonym(key: &[u8], prefix: &str, name: &[u8]) -> String {
    let keyed = |seed: u64| {
        let mut hasher = SipHasher13::new_with_keys(seed, 0);
        hasher.write(key);
        hasher.finish()
    };
    let mut hasher = SipHasher13::new_with_keys(keyed(1), keyed(2));
    hasher.write(prefix.as_bytes());
    hasher.write(name);
    format!("{prefix}{:010x}", hasher.finish() >> 24)
}
