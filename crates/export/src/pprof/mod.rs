//! The format of pprof.
//!
//! A message of protocol buffers may be written in pieces: the fields that are lists are put
//! together by whoever reads it. So samples are written one by one, and their stacks are never
//! in memory all at once.

mod paths;
mod pieces;
pub mod proto;

use std::io::{self, BufWriter, Write};

use hashbrown::HashMap;
use heapline_model::Space;
use heapline_profile::{ContextId, FrameId, IdVec, Moment, Profile, SampledBlock, Scope};

pub use self::paths::paths;
use self::pieces::Sink;
pub use self::pieces::Strings;
use crate::names::{or_unknown, saturated, signed};
use crate::provenance;

/// The columns: objects and bytes allocated, objects and bytes alive.
const COLUMNS: [(&str, &str); 4] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
];

/// The id of the program.
const PROGRAM: u64 = 1;

/// The key by which samples are merged. Sizes are rounded to powers of two; otherwise there would
/// be nearly as many samples as blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    stack: ContextId,
    heap: u8,
    domain: u16,
    class: u32,
}

/// Writes a profile for pprof: memory allocated, and memory live at a given time.
///
/// Samples have the labels `heap` (the name of the space), `domain`, and `bytes`: the
/// size of the blocks with their headers, rounded up to a power of two. Amounts are rounded
/// estimates, as a comment in the profile says. Sources that do not know single blocks have no
/// labels, and no number of blocks allocated. The output is compressed with gzip.
pub fn pprof(scope: &Scope<'_>, live: Moment, out: &mut impl Write) -> io::Result<()> {
    let mut sink = Sink::new(BufWriter::new(out));
    let mut strings = Strings::default();
    sink.put(&header(scope, &mut strings))?;
    let used = samples(scope, live, &mut strings, &mut sink)?;
    places(scope, &used, &mut strings, &mut sink)?;
    sink.finish(strings)
}

fn header(scope: &Scope<'_>, strings: &mut Strings) -> proto::Profile {
    let profile = scope.profile();
    let header = profile.header();
    let mut value_type = |(name, unit)| proto::ValueType {
        r#type: strings.number(name),
        unit: strings.number(unit),
    };
    proto::Profile {
        sample_type: COLUMNS[first_column(profile)..]
            .iter()
            .map(|&column| value_type(column))
            .collect(),
        period_type: Some(value_type(("space", "bytes"))),
        period: signed(profile.sampling().bytes_per_sample()).max(1),
        default_sample_type: strings.number("inuse_space"),
        comment: vec![strings.number(&provenance::sentence(scope))],
        time_nanos: saturated(header.start_time.saturating_mul(1000)),
        duration_nanos: saturated(profile.micros(profile.end()).saturating_mul(1000)),
        mapping: vec![proto::Mapping {
            id: PROGRAM,
            filename: strings.number(&header.program),
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            has_inline_frames: true,
        }],
        ..Default::default()
    }
}

/// The first column: sources without single blocks do not tell how many were allocated.
fn first_column(profile: &Profile) -> usize {
    usize::from(!profile.tells().sizes)
}

/// Writes the samples. Returns which frames they use, and whether one has none.
fn samples(
    scope: &Scope<'_>,
    live: Moment,
    strings: &mut Strings,
    sink: &mut Sink<impl Write>,
) -> io::Result<Used> {
    let profile = scope.profile();
    let mut sums: HashMap<Key, [f64; 4]> = HashMap::new();
    let word = profile.header().word_bytes;
    let has_blocks = profile.tells().sizes;
    let mut add = |block: &SampledBlock, column: usize| {
        let key = if has_blocks {
            key(block, word)
        } else {
            Key {
                stack: block.stack,
                heap: 0,
                domain: 0,
                class: 0,
            }
        };
        let sums = sums.entry(key).or_default();
        sums[column] += block.amount.blocks.value;
        sums[column + 1] += block.amount.bytes.value;
    };
    scope.for_each_block(|block| add(block, 0));
    scope.live_at(live).for_each_block(|block| add(block, 2));
    let mut sums: Vec<(Key, [f64; 4])> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|(key, _)| *key);

    let bytes = strings.number("bytes");
    let heap = strings.number("heap");
    let domain = strings.number("domain");
    let heaps = Space::ALL.map(|space| strings.number(space.name()));
    let mut used = Used {
        frames: IdVec::like(profile.symbols().frames(), false),
        unknown: false,
    };
    let unknown = used.frames.len() as u64 + 1;
    let mut stack = None;
    let mut ids = Vec::new();
    for (key, values) in sums {
        if stack != Some(key.stack) {
            stack = Some(key.stack);
            ids.clear();
            for frame in scope.stack(key.stack) {
                used.frames[frame] = true;
                ids.push(frame.index() as u64 + 1);
            }
            if ids.is_empty() {
                used.unknown = true;
                ids.push(unknown);
            }
        }
        let string = |key, str| proto::Label {
            key,
            str,
            ..Default::default()
        };
        let size = proto::Label {
            key: bytes,
            num: saturated(1_u64.checked_shl(key.class).unwrap_or(u64::MAX)),
            num_unit: bytes,
            ..Default::default()
        };
        let mut sample = proto::Sample {
            location_id: std::mem::take(&mut ids),
            value: values[first_column(profile)..]
                .iter()
                .map(|&value| signed(value))
                .collect(),
            label: if has_blocks {
                vec![
                    string(heap, heaps[usize::from(key.heap)]),
                    // Text, though it is a number: numbers are measured, and put in ranges.
                    string(domain, strings.number(&key.domain.to_string())),
                    size,
                ]
            } else {
                Vec::new()
            },
        };
        sink.sample(&mut sample)?;
        ids = sample.location_id;
    }
    Ok(used)
}

struct Used {
    frames: IdVec<FrameId, bool>,
    unknown: bool,
}

fn key(block: &SampledBlock, word: u64) -> Key {
    let header = block.space.header_words() * word;
    let bytes = block.size.saturating_add(header).max(1);
    Key {
        stack: block.stack,
        heap: match block.space {
            Space::Minor => 0,
            Space::Major => 1,
            Space::External => 2,
            Space::Native => 3,
        },
        domain: block.lane,
        class: u64::BITS - (bytes - 1).leading_zeros(),
    }
}

/// Writes the locations and functions that are used.
fn places(
    scope: &Scope<'_>,
    used: &Used,
    strings: &mut Strings,
    sink: &mut Sink<impl Write>,
) -> io::Result<()> {
    let symbols = scope.profile().symbols();
    let mut functions = IdVec::like(symbols.functions(), false);
    for (id, frame) in symbols.frames().enumerate() {
        if !used.frames[id] {
            continue;
        }
        functions[frame.function] = true;
        let known = i64::from(frame.line > 0);
        sink.location(
            id.index(),
            proto::Line {
                function_id: frame.function.index() as u64 + 1,
                line: i64::from(frame.line),
                column: known * (i64::from(frame.start_char) + 1),
            },
        )?;
    }
    for (id, function) in symbols.functions().enumerate() {
        if functions[id] {
            sink.function(proto::Function {
                id: id.index() as u64 + 1,
                name: strings.number(or_unknown(&function.name)),
                system_name: strings.number(&function.raw),
                filename: strings.number(&symbols.files()[function.file]),
            })?;
        }
    }
    if used.unknown {
        let id = functions.len() as u64 + 1;
        let line = proto::Line {
            function_id: id,
            ..Default::default()
        };
        sink.location(used.frames.len(), line)?;
        sink.function(proto::Function {
            id,
            name: strings.number(scope.unknown_name()),
            ..Default::default()
        })?;
    }
    Ok(())
}
