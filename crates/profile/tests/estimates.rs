//! Simulated programs whose truth is known: are estimates right on average, and do their intervals
//! cover the truth as often as they say?

use heapline_profile::reports::{DiffOptions, diff};
use heapline_profile::{
    Amount, Estimate, Estimator, LoadOptions, Profile, Query, Sampling, Scope, Sum,
};
use heapline_trace::{Block, Frame, Options, Reader, Source, TraceInfo, Writer};
use rand::{RngExt, SeedableRng};
use rand_distr::{Binomial, Distribution};
use rand_xoshiro::Xoshiro256PlusPlus;

const BOTH: [Estimator; 2] = [Estimator::HorvitzThompson, Estimator::Count];
/// Enough to tell 95 % from 94.5 %.
const RUNS: u32 = 20_000;

/// Many blocks of the same size, allocated at the same site.
#[derive(Clone, Copy, PartialEq)]
struct Blocks {
    /// Without the header.
    length: u64,
    source: Source,
    count: u64,
    site: u64,
    /// Whether they are alive at the moment that is asked about.
    live: bool,
}

/// A program: blocks of `words` words, header included.
fn minor(words: u64, count: u64, site: u64, live: bool) -> Blocks {
    Blocks {
        length: words - 1,
        source: Source::Minor,
        count,
        site,
        live,
    }
}

fn external(words: u64, count: u64, site: u64, live: bool) -> Blocks {
    Blocks {
        length: words,
        source: Source::External,
        ..minor(1, count, site, live)
    }
}

impl Blocks {
    fn words(&self) -> u64 {
        self.length + u64::from(self.source != Source::External)
    }

    fn truth(&self, unit: Unit) -> f64 {
        match unit {
            Unit::Bytes => (8 * self.words() * self.count) as f64,
            Unit::Blocks => self.count as f64,
        }
    }

    /// What the samples of a run are taken to stand for.
    fn sampled(&self, rate: f64, estimator: Estimator, random: &mut impl RngExt) -> Amount {
        let sampling = Sampling::new(rate, 8);
        let amount = |samples| sampling.amount(estimator, self.length, self.source, samples);
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

fn draw(trials: u64, probability: f64, random: &mut impl RngExt) -> u64 {
    Binomial::new(trials, probability.min(1.0))
        .unwrap()
        .sample(random)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Unit {
    Bytes,
    Blocks,
}

impl Unit {
    fn of(self, amount: &Amount) -> Sum {
        match self {
            Self::Bytes => amount.bytes,
            Self::Blocks => amount.blocks,
        }
    }
}

/// How estimates did in many runs.
#[derive(Default)]
struct Record {
    runs: f64,
    sum: f64,
    squares: f64,
    variance: f64,
    covered: f64,
    too_high: f64,
}

impl Record {
    fn add(&mut self, sum: Sum, interval: Estimate, truth: f64) {
        self.runs += 1.0;
        self.sum += sum.value - truth;
        self.squares += (sum.value - truth).powi(2);
        self.variance += sum.variance;
        let covers = interval.low <= truth && truth <= interval.high;
        self.covered += f64::from(u8::from(covers));
        self.too_high += f64::from(u8::from(interval.low > truth));
    }

    /// The mean error in its own standard errors.
    fn bias(&self) -> f64 {
        let mean = self.sum / self.runs;
        mean / (self.spread() / self.runs).sqrt().max(f64::MIN_POSITIVE)
    }

    /// The variance that estimates really have.
    fn spread(&self) -> f64 {
        self.squares / self.runs
    }

    /// The variance that they say they have.
    fn claimed(&self) -> f64 {
        self.variance / self.runs
    }

    /// In percent.
    fn coverage(&self) -> f64 {
        100.0 * self.covered / self.runs
    }
}

struct Case {
    name: &'static str,
    rate: f64,
    blocks: Vec<Blocks>,
}

/// Programs with enough samples at each site.
fn cases() -> Vec<Case> {
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

/// Whether blocks belong to a part.
type IsPart = fn(&Blocks) -> bool;

/// Parts of a program that figures are asked of.
const PARTS: [(&str, IsPart); 4] = [
    ("everything", |_| true),
    ("what is alive", |blocks| blocks.live),
    ("site 1", |blocks| blocks.site == 1),
    ("site 2", |blocks| blocks.site == 2),
];

fn simulate(
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
            Unit::Bytes => Sampling::new(case.rate, 8).bytes(&total),
            Unit::Blocks => sum.estimate(),
        };
        record.add(sum, interval, truth);
    }
    record
}

#[test]
fn figures_are_right_on_average_and_their_intervals_as_often_as_they_say() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut wrong = Vec::new();
    for case in cases() {
        for (part_name, part) in PARTS {
            for unit in [Unit::Bytes, Unit::Blocks] {
                let [best, count] =
                    BOTH.map(|estimator| simulate(&case, part, unit, estimator, &mut random));
                for (estimator, record) in BOTH.iter().zip([&best, &count]) {
                    let line = format!(
                        "{}, {part_name}, {unit:?}, {estimator:?}: bias {:.2} s.e., covered {:.2} %, \
                         claimed variance {:.3} of the real one, too high {:.2} %",
                        case.name,
                        record.bias(),
                        record.coverage(),
                        record.claimed() / record.spread(),
                        100.0 * record.too_high / record.runs,
                    );
                    let is_right = record.bias().abs() < 4.0
                        && (94.0..96.0).contains(&record.coverage())
                        && (record.claimed() / record.spread() - 1.0).abs() < 0.06;
                    if !is_right {
                        wrong.push(line);
                    }
                }
                // Equal for small blocks: allow for the noise of 20,000 runs.
                if best.spread() > 1.04 * count.spread() || best.claimed() > 1.01 * count.claimed()
                {
                    wrong.push(format!("{}: counting is more precise", case.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn changes_are_right_on_average_and_their_intervals_as_often_as_they_say() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
    let cases = cases();
    let mut wrong = Vec::new();
    // From each program to the next, whatever it is: sums do not care.
    for (before, after) in cases.iter().zip(&cases[1..]) {
        for ((part, is_part), unit) in PARTS
            .iter()
            .flat_map(|part| [(part, Unit::Bytes), (part, Unit::Blocks)])
        {
            for estimator in BOTH {
                let side = |case: &Case, random: &mut Xoshiro256PlusPlus| -> Sum {
                    let blocks = case.blocks.iter().filter(|blocks| is_part(blocks));
                    let total: Amount = blocks
                        .map(|blocks| blocks.sampled(case.rate, estimator, random))
                        .sum();
                    unit.of(&total)
                };
                let truth = |case: &Case| -> f64 {
                    let blocks = case.blocks.iter().filter(|blocks| is_part(blocks));
                    blocks.map(|blocks| blocks.truth(unit)).sum()
                };
                let truth = truth(after) - truth(before);
                let mut record = Record::default();
                for _ in 0..RUNS {
                    let old = side(before, &mut random);
                    let change = side(after, &mut random).change(old, Sum::default());
                    record.add(change, change.estimate_of_change(), truth);
                }
                if record.bias().abs() > 4.0 || !(94.0..96.0).contains(&record.coverage()) {
                    wrong.push(format!(
                        "{} to {}, {part}, {unit:?}, {estimator:?}: bias {:.2}, covered {:.2} %",
                        before.name,
                        after.name,
                        record.bias(),
                        record.coverage()
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Small blocks of one size, of which so many tenths of a sample are expected.
fn coverage_with(tenths: u64, random: &mut impl RngExt) -> f64 {
    let case = Case {
        name: "small blocks",
        rate: 1e-5,
        blocks: vec![minor(10, tenths * 1000, 1, true)],
    };
    let estimator = Estimator::HorvitzThompson;
    simulate(&case, |_| true, Unit::Bytes, estimator, random).coverage()
}

/// What `docs/statistics.md` says of few samples. Counts are whole numbers: with few of them no
/// interval can cover the truth in just 95 % of runs whatever the truth is.
#[test]
fn a_handful_of_samples_is_enough() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    for (from, to, low, high) in [
        (2, 5, 90.0, 98.6),
        (5, 20, 92.0, 97.2),
        (20, 60, 93.6, 96.2),
    ] {
        let coverages: Vec<f64> = (10 * from..10 * to)
            .step_by(7)
            .map(|tenths| coverage_with(tenths, &mut random))
            .collect();
        let least = coverages.iter().copied().fold(100.0, f64::min);
        let most = coverages.iter().copied().fold(0.0, f64::max);
        let mean = coverages.iter().sum::<f64>() / coverages.len() as f64;
        println!("{from} to {to} samples: {least:.2} to {most:.2} %, mean {mean:.2} %");
        assert!(least > low && most < high, "{least} to {most}");
        assert!((94.0..97.0).contains(&mean), "{mean}");
    }
}

/// Blocks so large that hardly any is missed: few outcomes are possible, but the truth is never
/// far outside.
#[test]
fn a_few_large_blocks_are_covered() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(4);
    for count in [1, 2, 5, 20, 100, 1000] {
        for tenths in 30..120 {
            let case = Case {
                name: "large blocks",
                rate: 1e-3,
                blocks: vec![external(100 * tenths, count, 1, true)],
            };
            let estimator = Estimator::HorvitzThompson;
            let record = simulate(&case, |_| true, Unit::Bytes, estimator, &mut random);
            assert!(
                record.coverage() > 90.0,
                "{count} blocks of {tenths} tenths of the distance: {:.2} %",
                record.coverage()
            );
        }
    }
}

#[test]
fn nothing_is_estimated_at_rate_one() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    for case in cases() {
        for estimator in BOTH {
            for unit in [Unit::Bytes, Unit::Blocks] {
                let truth: f64 = case.blocks.iter().map(|blocks| blocks.truth(unit)).sum();
                let total: Amount = case
                    .blocks
                    .iter()
                    .map(|blocks| blocks.sampled(1.0, estimator, &mut random))
                    .sum();
                let estimate = unit.of(&total).estimate();
                assert!((estimate.value / truth - 1.0).abs() < 1e-12);
                assert!(estimate.error.abs() < f64::MIN_POSITIVE);
                assert!(estimate.high - estimate.low < f64::MIN_POSITIVE);
            }
        }
    }
}

/// The largest amount that goes unseen in one run of twenty is what `none_seen` says.
#[test]
fn what_was_not_seen_is_not_more_than_said() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(6);
    for rate in [1e-6, 1e-3, 0.1] {
        let bound = Sampling::new(rate, 8).none_seen().high / 8.0;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a few million words"
        )]
        let words = bound.round() as u64;
        let unseen = (0..RUNS)
            .filter(|_| draw(words, rate, &mut random) == 0)
            .count();
        let percent = 100.0 * unseen as f64 / f64::from(RUNS);
        assert!((4.4..5.6).contains(&percent), "{rate}: {percent} %");
    }
}

const RATE: f64 = 1e-3;

/// The trace of a run. Blocks that are not alive die at half of it.
fn trace(program: &[Blocks], random: &mut impl RngExt) -> Profile {
    let info = TraceInfo {
        sample_rate: RATE,
        word_size: 64,
        executable_name: "simulated".into(),
        host_name: String::new(),
        ocaml_runtime_params: String::new(),
        pid: 1,
        start_time: 0,
        initial_domain: 0,
        context: None,
    };
    let mut writer = Writer::new(Vec::new(), &info).unwrap();
    let (mut id, mut dead) = (0, Vec::new());
    for blocks in program {
        let words = blocks.words();
        let seen = -(words as f64 * (-RATE).ln_1p()).exp_m1();
        for _ in 0..draw(blocks.count, seen, random) {
            // Where the first hit is, given that there is one; then the others.
            let chance: f64 = random.random_range(0.0..seen);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "less than the number of words"
            )]
            let first = ((-chance).ln_1p() / (-RATE).ln_1p()) as u64;
            let block = Block {
                length: blocks.length,
                samples: 1 + draw(words.saturating_sub(first + 1), RATE, random),
                source: blocks.source,
            };
            writer
                .alloc(0, id, id, block, &[blocks.site], |site, frames| {
                    frames.push(Frame {
                        file: b"program.ml",
                        name: format!("Program.site{site}").as_bytes(),
                        line: 1,
                        start_char: 0,
                        end_char: 1,
                    });
                })
                .unwrap();
            if !blocks.live {
                dead.push(id);
            }
            id += 1;
        }
    }
    for block in dead {
        writer.collect(0, 1_000_000, block).unwrap();
    }
    let bytes = writer.finish().unwrap();
    let mut reader = Reader::new(&bytes[..], Options::new()).unwrap();
    Profile::load(&mut reader, LoadOptions::default()).unwrap()
}

/// The same through everything that lies between a trace and an answer.
#[test]
fn answers_about_traces_are_right() {
    const RUNS: usize = 1000;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let before = [
        minor(3, 20_000, 1, true),
        minor(11, 5000, 1, false),
        external(1500, 40, 2, true),
        minor(257, 200, 2, false),
    ];
    let mut after = before;
    after[1].count = 8000;
    let queries = [
        ("", PARTS[0].1),
        ("live at 2s", PARTS[1].1),
        ("site = Program.site1", PARTS[2].1),
        ("not site = Program.site1", PARTS[3].1),
    ]
    .map(|(text, part)| (Query::parse(text).unwrap(), part));
    let truth = |program: &[Blocks], part: IsPart, unit| -> f64 {
        let blocks = program.iter().filter(|blocks| part(blocks));
        blocks.map(|blocks| blocks.truth(unit)).sum()
    };
    for estimator in BOTH {
        let mut records: [Record; 8] = Default::default();
        let mut changes: [Record; 4] = Default::default();
        for _ in 0..RUNS {
            let (old, new) = (trace(&before, &mut random), trace(&after, &mut random));
            for (i, (query, part)) in queries.iter().enumerate() {
                let total = Scope::new(&old, query, estimator).total();
                for (j, unit) in [Unit::Bytes, Unit::Blocks].into_iter().enumerate() {
                    let sum = unit.of(&total);
                    records[2 * i + j].add(sum, sum.estimate(), truth(&before, *part, unit));
                }
            }
            let scopes = [&old, &new].map(|of| Scope::new(of, &Query::default(), estimator));
            let diff = diff(&scopes[0], &scopes[1], &DiffOptions::default());
            let rows = diff.rows.iter().map(|row| (&*row.label.name, &row.change));
            for (name, change) in rows.chain([("all", &diff.total)]) {
                let (place, part) = match name {
                    "Program.site1" => (0, PARTS[2].1),
                    "Program.site2" => (1, PARTS[3].1),
                    _ => (2, PARTS[0].1),
                };
                let truth = truth(&after, part, Unit::Bytes) - truth(&before, part, Unit::Bytes);
                let sum = Sum {
                    value: change.bytes.value,
                    variance: change.bytes.standard_error().powi(2),
                    skew: 0.0,
                };
                changes[place].add(sum, change.bytes, truth);
            }
        }
        for record in records.iter().chain(&changes[..3]) {
            assert!(record.bias().abs() < 4.0, "{}", record.bias());
            // Three standard errors of a thousand runs.
            let coverage = record.coverage();
            assert!((93.0..97.0).contains(&coverage), "{coverage}");
        }
    }
}

/// Of changes that are called real, one in twenty is not.
#[test]
fn chance_is_not_called_a_change() {
    const RUNS: usize = 500;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(8);
    let options = DiffOptions {
        rows: usize::MAX,
        ..DiffOptions::default()
    };
    let small: Vec<Blocks> = (1..=20).map(|site| minor(4, 10_000, site, true)).collect();
    let mut changed = small.clone();
    changed[6].count = 30_000;
    let mut programs = vec![
        ("nothing changes".to_owned(), small.clone(), small.clone()),
        ("one site changes".to_owned(), small.clone(), changed),
    ];
    for words in [1000, 2000, 2500, 3000, 5000] {
        let mut blocks = small.clone();
        blocks.push(external(words, 1, 21, true));
        let name = format!("nothing changes, with a block of {words} words");
        programs.push((name, blocks.clone(), blocks));
    }
    for (name, before, after) in programs {
        let (mut false_share, mut found) = (0.0, 0);
        for _ in 0..RUNS {
            let profiles = [&before, &after].map(|program| trace(program, &mut random));
            let [old, new] = [&profiles[0], &profiles[1]]
                .map(|profile| Scope::new(profile, &Query::default(), Estimator::default()));
            let diff = diff(&old, &new, &options);
            let real = diff.rows.iter().filter(|row| row.change.is_real);
            let is_true = real.map(|row| row.label.name == "Program.site7" && before != after);
            let (mut all, mut wrong) = (0.0_f64, 0.0);
            for is_true in is_true {
                all += 1.0;
                wrong += f64::from(u8::from(!is_true));
                found += usize::from(is_true);
            }
            false_share += wrong / all.max(1.0);
        }
        let percent = 100.0 * false_share / RUNS as f64;
        println!("{name}: {percent:.1} % of real changes are not");
        // Three standard errors of 500 runs above 5 %.
        assert!(percent < 8.0, "{name}: {percent} %");
        if before != after {
            assert!(found > RUNS * 9 / 10, "{found}");
        }
    }
}
