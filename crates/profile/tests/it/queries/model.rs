//! Traces as lists of blocks, each with all that happened to it.

use std::collections::HashMap;
use std::sync::LazyLock;

use heapline_formats::{Options, Reader};
use heapline_profile::{Estimator, Profile, Query, Selection, StoreOptions};
use heapline_testkit::generate::Program;
use heapline_testkit::{OwnedEvent, OwnedFrame, OwnedTrace, fixtures};
use heapline_trace::Source;

/// Sums of whole samples are exact, and so are moments of the peak.
pub(crate) const COUNT: Estimator = Estimator::Count;

/// The life of a block, as numbers of events in the order of their times.
pub(crate) struct Block {
    pub(crate) birth: usize,
    pub(crate) promotion: Option<usize>,
    pub(crate) death: Option<usize>,
    pub(crate) length: u64,
    pub(crate) samples: u64,
    pub(crate) source: Source,
    pub(crate) domain: u16,
    /// Innermost last.
    pub(crate) stack: Vec<Frame>,
}

#[derive(Clone)]
pub(crate) struct Frame {
    pub(crate) function: String,
    pub(crate) file: String,
    pub(crate) line: u64,
}

pub(crate) struct Model {
    pub(crate) profile: Profile,
    pub(crate) blocks: Vec<Block>,
    pub(crate) times: Vec<u64>,
    pub(crate) peak: usize,
    /// Samples allocated before each event.
    pub(crate) allocated: Vec<u64>,
    pub(crate) bytes_per_sample: f64,
}

impl Model {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let source = std::io::Cursor::new(bytes.to_vec());
        let mut reader = Reader::new(source, Options::default()).unwrap();
        let profile = Profile::load(&mut reader, StoreOptions::default()).unwrap();
        let trace = OwnedTrace::read(bytes, heapline_trace::Options::new()).unwrap();
        let (blocks, times) = blocks(&trace);
        let mut samples = vec![0_i64; times.len()];
        let mut born = vec![0; times.len()];
        for block in &blocks {
            samples[block.birth] = block.samples.cast_signed();
            born[block.birth] = block.samples;
            if let Some(death) = block.death {
                samples[death] = -block.samples.cast_signed();
            }
        }
        let sums = |numbers: &[i64]| -> Vec<i64> {
            let sum = |sum: &mut i64, n: &i64| {
                *sum += n;
                Some(*sum)
            };
            numbers.iter().scan(0, sum).collect()
        };
        let live = sums(&samples);
        let most = live.iter().copied().max().unwrap_or(0);
        Self {
            peak: 1 + live.iter().position(|&n| n == most).unwrap(),
            allocated: (0..times.len()).map(|n| born[..n].iter().sum()).collect(),
            bytes_per_sample: profile.sampling().bytes_per_sample(),
            profile,
            blocks,
            times,
        }
    }

    pub(crate) fn select(&self, query: &str) -> Selection {
        Query::parse(query)
            .unwrap_or_else(|error| panic!("{error}"))
            .select(&self.profile, COUNT)
    }
}

pub(crate) fn blocks(trace: &OwnedTrace) -> (Vec<Block>, Vec<u64>) {
    let mut blocks = Vec::new();
    let mut numbers = HashMap::new();
    let mut times = Vec::new();
    for (event, happened) in trace.events.iter().enumerate() {
        let (OwnedEvent::Alloc { time, .. }
        | OwnedEvent::Promote { time, .. }
        | OwnedEvent::Collect { time, .. }) = happened;
        times.push(*time);
        if let OwnedEvent::Alloc {
            id,
            domain,
            length,
            samples,
            source,
            stack,
            ..
        } = happened
        {
            numbers.insert(*id, blocks.len());
            // A frame of the runtime, of which the program itself knows nothing, counts only where
            // it allocates.
            let innermost = stack.len().saturating_sub(1);
            let stack = stack.iter().enumerate().flat_map(|(depth, code)| {
                let is_nameless = trace.locations.get(code).is_some_and(Vec::is_empty);
                if is_nameless && depth < innermost {
                    Vec::new()
                } else {
                    frames(trace, *code)
                }
            });
            blocks.push(Block {
                birth: event,
                promotion: None,
                death: None,
                length: *length,
                samples: *samples,
                source: *source,
                domain: *domain,
                stack: stack.collect(),
            });
        }
    }
    for (event, happened) in trace.events.iter().enumerate() {
        match happened {
            OwnedEvent::Promote { id, .. } => blocks[numbers[id]].promotion = Some(event),
            OwnedEvent::Collect { id, .. } => blocks[numbers[id]].death = Some(event),
            OwnedEvent::Alloc { .. } => {}
        }
    }
    // Nothing happens to a block before its birth.
    for block in &blocks {
        let mut earliest = times[block.birth];
        for event in [block.promotion, block.death].into_iter().flatten() {
            earliest = earliest.max(times[event]);
            times[event] = earliest;
        }
    }
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|&event| times[event]);
    let mut rank = vec![0; order.len()];
    for (new, &old) in order.iter().enumerate() {
        rank[old] = new;
    }
    for block in &mut blocks {
        let events = [Some(block.birth), block.promotion, block.death];
        let mut ranks: Vec<usize> = events.iter().flatten().map(|&event| rank[event]).collect();
        ranks.sort_unstable();
        let mut next = ranks.into_iter();
        block.birth = next.next().unwrap();
        block.promotion = block.promotion.and_then(|_| next.next());
        block.death = block.death.and_then(|_| next.next());
    }
    let times = order.iter().map(|&event| times[event]).collect();
    (blocks, times)
}

pub(crate) fn frames(trace: &OwnedTrace, code: u64) -> Vec<Frame> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let frame = |frame: &OwnedFrame| Frame {
        function: text(&frame.name),
        file: text(&frame.file),
        line: frame.line.into(),
    };
    let nameless = Frame {
        function: format!("{code:#x}"),
        file: "(unknown file)".into(),
        line: 0,
    };
    match trace.locations.get(&code) {
        Some(frames) if !frames.is_empty() => frames.iter().map(frame).collect(),
        _ => vec![nameless],
    }
}

pub(crate) static MODELS: LazyLock<Vec<Model>> = LazyLock::new(|| {
    let program = |domains, seed| Program {
        allocations: 150,
        domains,
        locations: 60,
        depth: 4,
        seed,
    };
    let mut traces = vec![
        program(1, 1).trace(),
        program(3, 2).trace(),
        program(1, 3).trace(),
    ];
    for name in ["odd/domains.ctf", "generated/domains.ctf"] {
        traces.push(std::fs::read(fixtures::folder().join(name)).unwrap());
    }
    traces.iter().map(|trace| Model::new(trace)).collect()
});
