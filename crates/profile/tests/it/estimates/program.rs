//! Programs whose truth is known, and how estimates of them did.

use heapline_model::{Scheme, Space};
use heapline_profile::{Amount, Estimate, Estimator, Sampling, Sum};
use heapline_trace::Source;
use rand::RngExt;
use rand_distr::{Binomial, Distribution};

pub(crate) const BOTH: [Estimator; 2] = [Estimator::HorvitzThompson, Estimator::Count];
/// Enough to tell 95 % from 94.5 %.
pub(crate) const RUNS: u32 = 20_000;

/// Many blocks of the same size, allocated at the same site.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Blocks {
    /// Without the header.
    pub(crate) length: u64,
    pub(crate) source: Source,
    pub(crate) count: u64,
    pub(crate) site: u64,
    /// True if they are alive at the moment that is asked about.
    pub(crate) live: bool,
}

/// Sampling of words of 8 bytes.
pub(crate) fn sampling(rate: f64) -> Sampling {
    Sampling::new(
        Scheme::PerUnit {
            rate,
            unit_bytes: 8,
        },
        8,
    )
}

fn space(source: Source) -> Space {
    match source {
        Source::Minor => Space::Minor,
        Source::Major => Space::Major,
        Source::External => Space::External,
    }
}

/// A program: blocks of `words` words, header included.
pub(crate) fn minor(words: u64, count: u64, site: u64, live: bool) -> Blocks {
    Blocks {
        length: words - 1,
        source: Source::Minor,
        count,
        site,
        live,
    }
}

pub(crate) fn external(words: u64, count: u64, site: u64, live: bool) -> Blocks {
    Blocks {
        length: words,
        source: Source::External,
        ..minor(1, count, site, live)
    }
}

impl Blocks {
    pub(crate) fn words(&self) -> u64 {
        self.length + u64::from(self.source != Source::External)
    }

    pub(crate) fn truth(&self, unit: Unit) -> f64 {
        match unit {
            Unit::Bytes => (8 * self.words() * self.count) as f64,
            Unit::Blocks => self.count as f64,
        }
    }

    /// The amount that the samples of a run stand for.
    pub(crate) fn sampled(
        &self,
        rate: f64,
        estimator: Estimator,
        random: &mut impl RngExt,
    ) -> Amount {
        let sampling = sampling(rate);
        let amount =
            |samples| sampling.amount(estimator, self.length * 8, space(self.source), samples);
        match estimator {
            Estimator::HorvitzThompson => {
                let seen = -(self.words() as f64 * (-rate).ln_1p()).exp_m1();
                amount(1).times(draw(self.count, seen, random))
            }
            // Hits are worth the same wherever they are.
            Estimator::Count => match draw(self.count * self.words(), rate, random) {
                0 => Amount::default(),
                hits => amount(hits),
            },
        }
    }
}

pub(crate) fn draw(trials: u64, probability: f64, random: &mut impl RngExt) -> u64 {
    Binomial::new(trials, probability.min(1.0))
        .unwrap()
        .sample(random)
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unit {
    Bytes,
    Blocks,
}

impl Unit {
    /// The change between two amounts that have nothing in common.
    pub(crate) fn change(self, after: &Amount, before: &Amount) -> Estimate {
        let none = Sum::default();
        match self {
            Self::Bytes => after.bytes.change(before.bytes, none).estimate_of_change(),
            Self::Blocks => after.change_of_blocks(before, none),
        }
    }

    pub(crate) fn of(self, amount: &Amount) -> Sum {
        match self {
            Self::Bytes => amount.bytes,
            Self::Blocks => amount.blocks,
        }
    }
}

/// How estimates did in many runs.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) runs: f64,
    pub(crate) sum: f64,
    pub(crate) squares: f64,
    pub(crate) variance: f64,
    pub(crate) covered: f64,
    pub(crate) too_high: f64,
}

impl Record {
    pub(crate) fn add(&mut self, sum: Sum, interval: Estimate, truth: f64) {
        self.runs += 1.0;
        self.sum += sum.value - truth;
        self.squares += (sum.value - truth).powi(2);
        self.variance += sum.variance;
        let covers = interval.low <= truth && truth <= interval.high;
        self.covered += f64::from(u8::from(covers));
        self.too_high += f64::from(u8::from(interval.low > truth));
    }

    /// The mean error in its own standard errors.
    pub(crate) fn bias(&self) -> f64 {
        let mean = self.sum / self.runs;
        mean / (self.spread() / self.runs).sqrt().max(f64::MIN_POSITIVE)
    }

    /// The variance that estimates really have.
    pub(crate) fn spread(&self) -> f64 {
        self.squares / self.runs
    }

    /// The variance that they say they have.
    pub(crate) fn claimed(&self) -> f64 {
        self.variance / self.runs
    }

    /// In percent.
    pub(crate) fn coverage(&self) -> f64 {
        100.0 * self.covered / self.runs
    }
}

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) rate: f64,
    pub(crate) blocks: Vec<Blocks>,
}

/// Programs with enough samples at each site.
pub(crate) fn cases() -> Vec<Case> {
    let case = |name, rate, blocks| Case { name, rate, blocks };
    vec![
        case(
            "small blocks, 60 samples at a site",
            1e-5,
            vec![
                minor(2, 2_000_000, 1, true),
                minor(4, 500_000, 1, false),
                minor(3, 10_000_000, 2, false),
                minor(20, 1_000_000, 2, true),
            ],
        ),
        case(
            "small blocks and a few huge ones",
            1e-4,
            vec![
                minor(3, 2_000_000, 1, true),
                minor(11, 100_000, 1, false),
                external(1_000_000, 3, 1, true),
                minor(257, 10_000, 2, true),
                external(20_000, 50, 2, false),
            ],
        ),
        case(
            "blocks about as large as the distance of samples",
            1e-3,
            vec![
                minor(500, 100, 1, true),
                minor(1000, 100, 1, false),
                minor(2000, 100, 2, true),
                minor(4000, 100, 2, false),
            ],
        ),
        case(
            "many blocks that are nearly certain to be seen",
            1e-3,
            vec![
                minor(3000, 1000, 1, true),
                minor(5000, 1000, 1, false),
                minor(4, 100_000, 2, true),
                external(4000, 3000, 2, false),
            ],
        ),
        case(
            "one word in ten",
            0.1,
            vec![
                minor(2, 300, 1, true),
                minor(3, 200, 1, false),
                minor(10, 500, 2, true),
                minor(100, 20, 2, false),
                external(1, 900, 2, true),
            ],
        ),
        case(
            "every other word",
            0.5,
            vec![
                minor(2, 300, 1, true),
                minor(1, 300, 1, false),
                minor(3, 500, 2, true),
                external(1, 500, 2, false),
            ],
        ),
    ]
}

/// Returns true if blocks belong to a part.
pub(crate) type IsPart = fn(&Blocks) -> bool;

/// Parts of a program that figures are asked of.
pub(crate) const PARTS: [(&str, IsPart); 4] = [
    ("everything", |_| true),
    ("what is alive", |blocks| blocks.live),
    ("site 1", |blocks| blocks.site == 1),
    ("site 2", |blocks| blocks.site == 2),
];

pub(crate) fn simulate(
    case: &Case,
    part: IsPart,
    unit: Unit,
    estimator: Estimator,
    random: &mut impl RngExt,
) -> Record {
    let blocks: Vec<&Blocks> = case.blocks.iter().filter(|blocks| part(blocks)).collect();
    let truth: f64 = blocks.iter().map(|blocks| blocks.truth(unit)).sum();
    let mut record = Record::default();
    for _ in 0..RUNS {
        let total: Amount = blocks
            .iter()
            .map(|blocks| blocks.sampled(case.rate, estimator, random))
            .sum();
        let sum = unit.of(&total);
        let interval = match unit {
            Unit::Bytes => sampling(case.rate).bytes(&total),
            Unit::Blocks => total.estimated_blocks(),
        };
        record.add(sum, interval, truth);
    }
    record
}
