#![expect(clippy::float_cmp, reason = "what is exact is to be exact")]

mod causes;
mod hostile;
mod times;
mod words;

use heapline_model::{
    Batch, Birth, Capabilities, Collection, CollectorCounters, Damage, Frame, Header, InputSize,
    LocationId, Phase, Runtime, Scheme, Space,
};

use super::*;
use crate::query::Query;
use crate::reports::Phrase;
use crate::sampling::Estimator;
use crate::store::{Store, StoreOptions};
use crate::testing::exact_header;

const MS: u64 = 1_000_000;

/// A program whose collections are described one after another.
struct Run {
    batch: Batch,
    /// By lane.
    counters: Vec<CollectorCounters>,
    rate: f64,
    blocks: u64,
}

impl Run {
    fn new() -> Self {
        let mut batch = Batch::default();
        for (id, name) in [
            (0, &b"Parse.build"[..]),
            (1, b"Cache.add"),
            (2, b"Main.run"),
        ] {
            let frame = Frame {
                file: b"parse.ml",
                name,
                line: 10 + id,
                ..Frame::UNKNOWN
            };
            batch.define(LocationId(id), 0x1000 + u64::from(id), [frame]);
        }
        Self {
            batch,
            counters: vec![CollectorCounters::default(); 4],
            rate: 1.0,
            blocks: 0,
        }
    }

    fn work(&mut self, lane: u16, kind: CollectionKind, start: u64, length: u64) -> &mut Self {
        let phase = (kind == CollectionKind::Slice).then_some(Phase::Mark);
        let counters = Some(self.counters[usize::from(lane)]);
        self.batch.collection(Collection {
            lane,
            kind,
            start,
            length,
            phase,
            counters,
        });
        self
    }

    fn reading(&mut self, lane: u16, time: u64) -> &mut Self {
        self.work(lane, CollectionKind::Reading, time, 0)
    }

    fn slice(&mut self, lane: u16, start: u64, length: u64) -> &mut Self {
        self.work(lane, CollectionKind::Slice, start, length)
    }

    /// A minor collection after so many words were allocated on the minor heap, which promotes some of them.
    fn minor(
        &mut self,
        lane: u16,
        start: u64,
        length: u64,
        words: u64,
        promoted: u64,
    ) -> &mut Self {
        let counters = &mut self.counters[usize::from(lane)];
        counters.minor_words += words;
        counters.promoted_words += promoted;
        counters.major_words += promoted;
        for counters in &mut self.counters {
            counters.minor_collections += 1;
        }
        self.work(lane, CollectionKind::Minor, start, length)
    }

    /// Blocks of 10 words and a header, which live at a time on the heap of a lane. They are promoted at another time.
    fn blocks(
        &mut self,
        n: u64,
        site: u32,
        lane: u16,
        micros: u64,
        promoted: Option<u64>,
    ) -> &mut Self {
        for _ in 0..n {
            let birth = Birth {
                size: 80,
                samples: 1,
                space: Space::Minor,
                ..Birth::default()
            };
            let stack = [LocationId(2), LocationId(site)];
            self.batch
                .birth(micros, lane, self.blocks, birth, stack.into_iter());
            if let Some(time) = promoted {
                self.batch.promotion(time, lane, self.blocks);
            }
            self.blocks += 1;
        }
        self
    }

    fn header(&self) -> Header {
        Header {
            format: "memtrace",
            runtime: Runtime::OCaml {
                parameters: String::new(),
            },
            word_bytes: 8,
            scheme: Scheme::PerUnit {
                rate: self.rate,
                unit_bytes: 8,
            },
            tells: Capabilities {
                gc_parameters: true,
                ..exact_header().tells
            },
            ..exact_header()
        }
    }

    fn profile(&self) -> Profile {
        let mut store = Store::new(self.header(), StoreOptions::default());
        store.append(&self.batch);
        store.finish(Damage::default(), InputSize::default())
    }

    fn report(&self, options: &GcOptions) -> Gc {
        report(&self.profile(), options)
    }
}

fn report(profile: &Profile, options: &GcOptions) -> Gc {
    let scope = Scope::new(profile, &Query::default(), Estimator::default());
    gc(&scope, options).unwrap()
}

fn options(points: usize) -> GcOptions {
    GcOptions {
        points,
        ..GcOptions::default()
    }
}

fn kind(report: &Gc, kind: CollectionKind) -> Lengths {
    let found = report.kinds.iter().find(|times| times.kind == kind);
    found.map_or_else(Lengths::default, |times| times.lengths)
}

fn causes(pause: &WorstPause) -> Vec<PauseCauseKind> {
    pause.causes.iter().map(|cause| cause.kind).collect()
}

/// A sentence with amounts in bytes and seconds.
fn text(sentence: &[Phrase]) -> String {
    let text = |phrase: &Phrase| match phrase {
        Phrase::Text(text) | Phrase::Name(text) => text.clone(),
        Phrase::Bytes(bytes) => format!("{} B", bytes.value),
        Phrase::Percent(percent) => format!("{percent:.1} %"),
        Phrase::Seconds(seconds) => format!("{seconds} s"),
        Phrase::Count(n) => n.to_string(),
        other => format!("{other:?}"),
    };
    sentence.iter().map(text).collect()
}

/// A second with a collection each 10 ms: a minor collection of 1 ms, and a slice of 2 ms right after it.
fn steady() -> Run {
    let mut run = Run::new();
    run.reading(0, 0);
    for i in 0..100 {
        let start = i * 10 * MS + 5 * MS;
        run.minor(0, start, MS, 1000, 100);
        run.slice(0, start + MS + 500, 2 * MS);
    }
    run.reading(0, 1000 * MS);
    run
}
