//! The contents of a profile: program, sampling, totals, sizes, damage.

use std::collections::BTreeMap;

use heapline_model::{Capabilities, Damage, Header, Mark, Scheme, Snapshot, Space};
use serde::Serialize;

use super::gc::{CountedMemory, GcFacts};
use super::{Coarse, Gaps};
use crate::amount::Amount;
use crate::estimate::Estimate;
use crate::gc_params::GcParams;
use crate::query::Query;
use crate::sampling::Estimator;
use crate::scope::Scope;
use crate::store::{Kind, Profile};

/// The contents of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Overview {
    /// The metadata of the trace.
    pub trace: TraceInfo,
    /// The parameters of the garbage collector, in words; null if the source does not tell.
    pub gc_params: Option<GcParams>,
    /// The input format.
    pub format: &'static str,
    /// The version of the trace's format.
    pub format_version: u32,
    /// The information that the source provides.
    pub tells: Capabilities,
    /// Mean number of bytes allocated from one sample to the next.
    pub bytes_per_sample: f64,
    /// True if every block was recorded.
    pub is_exact: bool,
    /// Seconds from the start of the trace to its latest event.
    pub duration: f64,
    /// Bytes of the trace, decompressed.
    pub trace_bytes: u64,
    /// Packets that were read.
    pub packets: u64,
    /// The domains that wrote events, in order.
    pub domains: Vec<u16>,
    /// Events by kind.
    pub events: EventCounts,
    /// Counts of samples.
    pub samples: Samples,
    /// The estimated amounts.
    pub bytes: Activity,
    /// What was allocated and promoted as OCaml's runtime counted it, exactly; absent if the trace does not tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub counted: Option<CountedMemory>,
    /// True if the trace tells what the garbage collector did.
    pub has_collections: bool,
    /// Estimated blocks allocated.
    pub blocks_allocated: Estimate,
    /// Bytes promoted, in percent of those allocated on the minor heap. Absent if there are none.
    pub promoted_percent: Option<f64>,
    /// Blocks by size.
    pub size_classes: Vec<SizeClass>,
    /// Words of the largest sampled block, header excluded.
    pub largest_words: u64,
    /// True if the recording kept only the innermost frames of deep stacks: a frame `<deeper calls>`
    /// stands for the others.
    pub has_cut_stacks: bool,
    /// The part of the run that the recording has summed up; absent if every event is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub coarse: Option<Coarse>,
    /// The times in which new blocks were not recorded; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub gaps: Option<Gaps>,
    /// The moments at which the source counted what was alive; empty if it has single blocks.
    pub snapshots: Vec<Snapshot>,
    /// The events that the program noted.
    pub marks: Vec<Mark>,
    /// The damage found in the trace.
    pub damage: Damage,
}

/// The metadata of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TraceInfo {
    /// The language runtime: `OCaml`, or `native` for programs whose allocator was sampled.
    pub runtime: &'static str,
    /// The probability with which each word (each byte of native programs) was sampled, headers
    /// included; 1 if all blocks are there.
    pub sample_rate: f64,
    /// Bits of the unit that sizes are given in: a word of 32 or 64 bits, or a byte.
    pub word_size: u64,
    /// The program that was traced.
    pub executable_name: String,
    /// The machine it ran on.
    pub host_name: String,
    /// The parameters of OCaml's runtime, as `OCAMLRUNPARAM` would have them; null if it is not
    /// OCaml.
    pub ocaml_runtime_params: Option<String>,
    /// The traced process.
    pub pid: u64,
    /// Microseconds since the Unix epoch.
    #[serde(rename = "start_time_us")]
    pub start_time: u64,
    /// The seed of the samples; absent if it is not known. Recordings of one program are independent if
    /// their seeds differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub seed: Option<u64>,
    /// The domain or thread that started the trace.
    pub initial_domain: u16,
    /// A description that the program's author chose.
    pub context: Option<String>,
    /// The process that was attached to when the recording began, so that blocks allocated before are not counted; absent if the
    /// recording began with the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub attached_to: Option<u64>,
}

impl TraceInfo {
    fn new(header: &Header) -> Self {
        Self {
            runtime: header.runtime.name(),
            sample_rate: match header.scheme {
                Scheme::PerUnit { rate, .. } => rate,
                Scheme::Exact | Scheme::Given => 1.0,
            },
            word_size: header.word_bytes * 8,
            executable_name: header.program.clone(),
            host_name: header.host.clone(),
            ocaml_runtime_params: header.runtime.ocaml_parameters().map(ToOwned::to_owned),
            pid: header.pid,
            start_time: header.start_time,
            seed: header.seed,
            initial_domain: header.first_lane,
            context: header.context.clone(),
            attached_to: header.attached_to(),
        }
    }
}

/// Events by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct EventCounts {
    /// Sampled blocks allocated on the minor heap.
    pub minor: u64,
    /// Sampled blocks allocated directly on the major heap.
    pub major: u64,
    /// Sampled blocks outside the OCaml heap.
    pub external: u64,
    /// Sampled blocks of an allocator such as malloc.
    pub native: u64,
    /// Promotions from the minor to the major heap.
    pub promotions: u64,
    /// Blocks found dead.
    pub collections: u64,
    /// Promotions and collections of blocks that the trace does not have.
    pub unmatched: u64,
}

impl EventCounts {
    /// All allocations.
    #[must_use]
    pub fn allocations(&self) -> u64 {
        self.minor + self.major + self.external + self.native
    }
}

/// Sums of samples, which is what memtrace's tools count in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Samples {
    /// All of them.
    pub total: u64,
    /// Samples of blocks allocated on the minor heap.
    pub minor: u64,
    /// Samples of blocks allocated elsewhere.
    pub direct: u64,
    /// Samples of promoted blocks.
    pub promoted: u64,
    /// Samples of blocks collected in the major heap.
    pub major_collected: u64,
    /// Samples of blocks of at most 4, 16 and 256 words.
    pub up_to_4_16_256: [u64; 3],
    /// Microseconds from the start to the last event in the order of the file.
    #[serde(rename = "last_event_time_us")]
    pub last_event_time: u64,
}

/// Estimated bytes, headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Activity {
    /// Allocated in all.
    pub allocated: Estimate,
    /// Allocated on the minor heap.
    pub minor: Estimate,
    /// Allocated directly on the major heap.
    pub major: Estimate,
    /// Allocated outside the OCaml heap.
    pub external: Estimate,
    /// Allocated by an allocator such as malloc.
    pub native: Estimate,
    /// Promoted from the minor to the major heap.
    pub promoted: Estimate,
    /// Found dead.
    pub collected: Estimate,
    /// Not found dead by the end of the trace.
    pub live_at_end: Estimate,
}

/// Blocks of one range of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SizeClass {
    /// The most words a block of this class has, header excluded; none for the last class.
    pub max_words: Option<u64>,
    /// Sampled blocks.
    pub sampled_blocks: u64,
    /// Estimated blocks.
    pub blocks: Estimate,
    /// Estimated bytes, headers included.
    pub bytes: Estimate,
}

/// The largest block of each class but the last.
const CLASSES: [u64; 4] = [4, 16, 256, 65536];

/// Blocks of one space and length.
#[derive(Clone, Copy, Default)]
struct Count {
    allocated: Sampled,
    promoted: Sampled,
    /// Blocks that are promoted, but were not on the minor heap.
    wrongly_promoted: u64,
    collected: Sampled,
    /// The part that died outside of the minor heap.
    major_collected: Sampled,
}

#[derive(Clone, Copy, Default)]
struct Sampled {
    blocks: u64,
    samples: u64,
}

impl Sampled {
    /// Adds rows of a kind.
    fn add(&mut self, rows: u64, kind: &Kind) {
        let blocks = kind.blocks().saturating_mul(rows);
        self.blocks = self.blocks.saturating_add(blocks);
        let samples = kind.samples.saturating_mul(rows);
        self.samples = self.samples.saturating_add(samples);
    }
}

/// The blocks of a profile by space and length in words.
struct Counts(BTreeMap<(Space, u64), Count>);

impl Counts {
    fn new(profile: &Profile) -> Self {
        if !profile.tells().sizes {
            // There are no single blocks to count.
            return Self(BTreeMap::new());
        }
        let mut counts: BTreeMap<(Space, u64), Count> = BTreeMap::new();
        for (kind, tally) in profile.kinds().iter().zip(profile.tallies()) {
            let is_minor = kind.space == Space::Minor;
            let count = counts.entry((kind.space, profile.words(kind))).or_default();
            count.allocated.add(tally.blocks, kind);
            if is_minor {
                count.promoted.add(tally.promoted, kind);
            } else {
                count.wrongly_promoted += tally.promoted;
            }
            count.collected.add(tally.died, kind);
            let major = if is_minor {
                tally.promoted_and_died
            } else {
                tally.died
            };
            count.major_collected.add(major, kind);
        }
        Self(counts)
    }

    fn sum(
        &self,
        tally: impl Fn(&Count) -> Sampled,
        inside: impl Fn(Space, u64) -> bool,
    ) -> Sampled {
        let mut sum = Sampled::default();
        for (&(space, words), count) in &self.0 {
            if inside(space, words) {
                let tally = tally(count);
                sum.blocks = sum.blocks.saturating_add(tally.blocks);
                sum.samples = sum.samples.saturating_add(tally.samples);
            }
        }
        sum
    }

    fn estimate(
        &self,
        profile: &Profile,
        tally: impl Fn(&Count) -> Sampled,
        inside: impl Fn(Space, u64) -> bool,
    ) -> Amount {
        let counts = self.0.iter();
        counts
            .filter(|((space, words), _)| inside(*space, *words))
            .map(|(&(space, words), count)| {
                let size = words.saturating_mul(profile.header().word_bytes);
                let amount = profile
                    .sampling()
                    .amount(Estimator::HorvitzThompson, size, space, 1);
                amount.times(tally(count).blocks)
            })
            .filter(|amount| !amount.is_empty())
            .sum()
    }
}

/// The function that stands for the outer frames of a stack that was recorded up to a given depth.
const DEEPER_CALLS: &str = "<deeper calls>";

/// Returns true if the recording kept only the innermost frames of deep stacks.
#[must_use]
pub fn has_cut_stacks(profile: &Profile) -> bool {
    let mut functions = profile.symbols().functions().iter();
    functions.any(|function| function.raw == DEEPER_CALLS)
}

fn everything(profile: &Profile) -> Scope<'_> {
    Scope::new(profile, &Query::default(), Estimator::HorvitzThompson)
}

/// Computes the contents of a profile. Stacks are not used, so the source may be read without them.
#[must_use]
pub fn info(profile: &Profile) -> Overview {
    let counts = Counts::new(profile);
    let everything = |_: Space, _: u64| true;
    let sampling = profile.sampling();
    let (allocated, collected, live_at_end) = if profile.tells().sizes {
        let allocated = counts.estimate(profile, |count| count.allocated, everything);
        let collected = counts.estimate(profile, |count| count.collected, everything);
        (allocated, collected, allocated - collected)
    } else {
        let scope = self::everything(profile);
        let allocated = scope.total();
        let live = if scope.is_live_untold() {
            Amount::UNTOLD
        } else {
            scope.at_end().total()
        };
        (allocated, scope.freed(allocated, live), live)
    };
    let promoted = counts.estimate(profile, |count| count.promoted, everything);
    let of_space = |wanted: Space| {
        counts.estimate(profile, |count| count.allocated, |space, _| space == wanted)
    };
    let [minor, major, external, native] = Space::ALL.map(of_space);
    let header = profile.header();
    let parameters = header.runtime.ocaml_parameters();
    Overview {
        trace: TraceInfo::new(header),
        gc_params: parameters
            .filter(|_| header.tells.gc_parameters)
            .map(|text| GcParams::parse(text, header.word_bytes)),
        format: header.format,
        format_version: header.format_version,
        tells: profile.tells(),
        bytes_per_sample: sampling.bytes_per_sample(),
        is_exact: sampling.is_exact(),
        duration: profile.duration(),
        trace_bytes: profile.input_size().bytes,
        packets: profile.input_size().packets,
        domains: profile.lanes().to_vec(),
        events: events(profile, &counts),
        samples: samples(profile, &counts),
        bytes: Activity {
            allocated: sampling.bytes(&allocated),
            minor: sampling.bytes(&minor),
            major: sampling.bytes(&major),
            external: sampling.bytes(&external),
            native: sampling.bytes(&native),
            promoted: sampling.bytes(&promoted),
            collected: sampling.bytes(&collected),
            live_at_end: sampling.bytes(&live_at_end),
        },
        counted: GcFacts::of(profile).and_then(|facts| facts.counted(&self::everything(profile))),
        has_collections: !profile.collections().is_empty(),
        blocks_allocated: allocated.estimated_blocks(),
        promoted_percent: (minor.bytes.value > 0.0)
            .then(|| 100.0 * promoted.bytes.value / minor.bytes.value),
        size_classes: size_classes(profile, &counts),
        largest_words: counts.0.keys().map(|&(_, words)| words).max().unwrap_or(0),
        has_cut_stacks: has_cut_stacks(profile),
        coarse: Coarse::new(profile),
        gaps: Gaps::new(profile),
        snapshots: profile
            .snapshots()
            .iter()
            .map(|&(_, snapshot)| snapshot)
            .collect(),
        marks: profile.marks().to_vec(),
        damage: profile.damage().clone(),
    }
}

fn events(profile: &Profile, counts: &Counts) -> EventCounts {
    let blocks = |wanted: Space| {
        let sum = counts.sum(|count| count.allocated, |space, _| space == wanted);
        sum.blocks
    };
    let everything = |_: Space, _: u64| true;
    let promoted = counts.sum(|count| count.promoted, everything).blocks;
    let collected = counts.sum(|count| count.collected, everything).blocks;
    let wrong: u64 = counts.0.values().map(|count| count.wrongly_promoted).sum();
    let unmatched_promotions = profile.unmatched().promotions + wrong;
    let unmatched_deaths = profile.unmatched().deaths;
    let [minor, major, external, native] = Space::ALL.map(blocks);
    EventCounts {
        minor,
        major,
        external,
        native,
        promotions: promoted + unmatched_promotions,
        collections: collected + unmatched_deaths,
        unmatched: unmatched_promotions + unmatched_deaths,
    }
}

fn samples(profile: &Profile, counts: &Counts) -> Samples {
    let all = |limit: u64| {
        let sum = counts.sum(|count| count.allocated, |_, words| words <= limit);
        sum.samples
    };
    let minor = counts.sum(|count| count.allocated, |space, _| space == Space::Minor);
    let direct = counts.sum(|count| count.allocated, |space, _| space != Space::Minor);
    let everything = |_: Space, _: u64| true;
    Samples {
        total: all(u64::MAX),
        minor: minor.samples,
        direct: direct.samples,
        promoted: counts.sum(|count| count.promoted, everything).samples,
        // memtrace takes a block that it does not know for one of a single sample.
        major_collected: counts
            .sum(|count| count.major_collected, everything)
            .samples
            .saturating_add(profile.unmatched().deaths),
        up_to_4_16_256: [4, 16, 256].map(all),
        last_event_time: profile.last_event_time(),
    }
}

fn size_classes(profile: &Profile, counts: &Counts) -> Vec<SizeClass> {
    let mut lower = None;
    CLASSES
        .iter()
        .copied()
        .map(Some)
        .chain([None])
        .map(|max_words| {
            let above = std::mem::replace(&mut lower, max_words);
            let total = counts.estimate(
                profile,
                |count| count.allocated,
                |_, words| {
                    above.is_none_or(|limit| words > limit)
                        && max_words.is_none_or(|limit| words <= limit)
                },
            );
            SizeClass {
                max_words,
                sampled_blocks: total.sampled,
                blocks: total.estimated_blocks(),
                bytes: profile.sampling().bytes(&total),
            }
        })
        .collect()
}
