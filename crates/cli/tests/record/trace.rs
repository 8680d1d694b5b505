//! What a test wants to know of a trace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use heapline_trace::{Event, OMITTED_FRAMES, Options, Reader, Source};

#[derive(Default)]
pub(crate) struct Trace {
    pub(crate) rate: f64,
    pub(crate) pid: u64,
    pub(crate) context: Option<String>,
    pub(crate) allocations: Vec<Allocation>,
    pub(crate) promotions: u64,
    /// Those of blocks outside of the heap, of which there must be none.
    pub(crate) external_promotions: u64,
    pub(crate) collections: u64,
    /// The longest stack.
    pub(crate) depth: usize,
    /// Blocks whose stacks are not whole.
    pub(crate) without_stack: u64,
}

pub(crate) struct Allocation {
    pub(crate) domain: u16,
    pub(crate) words: u64,
    pub(crate) samples: u64,
    pub(crate) source: Source,
}

impl Trace {
    /// A trace in which the reader finds nothing wrong.
    pub(crate) fn strict(path: &Path) -> Self {
        Self::read(path, Options::new().strict(true))
    }

    pub(crate) fn read(path: &Path, options: Options) -> Self {
        let fail = |error| -> ! { panic!("{}: {error}", path.display()) };
        let mut reader = Reader::open(path, options).unwrap_or_else(|error| fail(error));
        let info = reader.info();
        let mut trace = Self {
            rate: info.sample_rate,
            pid: info.pid,
            context: info.context.clone(),
            ..Self::default()
        };
        let mut external = BTreeSet::new();
        let read = reader.for_each(|event, locations| match event {
            Event::Alloc(alloc) => {
                if alloc.source == Source::External {
                    external.insert(alloc.id);
                }
                let frames = alloc.stack.frames();
                trace.depth = trace.depth.max(frames.len());
                let omitted = frames
                    .iter()
                    .any(|frame| locations.code(*frame) == OMITTED_FRAMES);
                trace.without_stack += u64::from(omitted);
                trace.allocations.push(Allocation {
                    domain: alloc.domain,
                    words: alloc.length,
                    samples: alloc.samples,
                    source: alloc.source,
                });
            }
            Event::Promote(mark) => {
                trace.promotions += 1;
                trace.external_promotions += u64::from(external.contains(&mark.id));
            }
            Event::Collect(_) => trace.collections += 1,
        });
        read.unwrap_or_else(|error| fail(error));
        trace
    }

    /// An estimate of the words that the program allocated on its heap, headers included.
    pub(crate) fn heap_words(&self) -> f64 {
        self.words_where(|allocation| allocation.source != Source::External)
    }

    pub(crate) fn words_where(&self, wanted: impl Fn(&Allocation) -> bool) -> f64 {
        let samples: u64 = self
            .allocations
            .iter()
            .filter(|allocation| wanted(allocation))
            .map(|allocation| allocation.samples)
            .sum();
        samples as f64 / self.rate
    }

    /// An estimate of the words that a domain allocated on the heap.
    pub(crate) fn words_of_domain(&self, domain: u16) -> f64 {
        self.words_where(|allocation| {
            allocation.domain == domain && allocation.source != Source::External
        })
    }

    /// The same for each domain.
    pub(crate) fn words_by_domain(&self) -> BTreeMap<u16, f64> {
        let domains: BTreeSet<u16> = self.allocations.iter().map(|a| a.domain).collect();
        domains
            .into_iter()
            .map(|domain| (domain, self.words_where(|a| a.domain == domain)))
            .collect()
    }

    /// Each word is sampled independently: the number of samples of so many words is binomial.
    pub(crate) fn standard_error(&self, words: f64) -> f64 {
        (words * (1.0 - self.rate) / self.rate).sqrt()
    }

    /// Within 5 standard errors of the truth, and within what programs do beside: a few hundred
    /// words at start and end that one of the two counts leaves out. Not all recordings are the same in each run, in spite
    /// of their seed, and there are hundreds of them: with 4 standard errors, one run of the tests in twenty would fail.
    #[track_caller]
    pub(crate) fn assert_near(&self, estimate: f64, truth: f64, what: &str) {
        let error = self.standard_error(truth);
        assert!(
            (estimate - truth).abs() <= 5.0 * error + 1000.0,
            "{what}: estimated {estimate:.0} words, allocated {truth:.0}: {:+.1} standard errors",
            (estimate - truth) / error
        );
    }
}
