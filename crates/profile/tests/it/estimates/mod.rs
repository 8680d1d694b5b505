//! Simulated programs whose truth is known: are estimates right on average, and do their intervals
//! cover the truth as often as they say?

mod program;
mod traces;

use heapline_profile::{Amount, Estimator, Sum};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use program::{
    BOTH, Blocks, Case, PARTS, RUNS, Record, Unit, cases, draw, external, minor, simulate,
};

#[test]
fn figures_are_right_on_average_and_their_intervals_as_often_as_they_say() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut wrong = Vec::new();
    let mut coverages = Vec::new();
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
                    coverages.push(record.coverage());
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
    coverages.sort_by(f64::total_cmp);
    println!(
        "covered: {:?} to {:?} %",
        coverages.first(),
        coverages.last()
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Blocks of which the smallest are seen by few samples, or by none: vectors that grow, texts, and boxes beside tables. Rates
/// are as in Rust programs, whose sizes differ most.
#[test]
fn numbers_of_blocks_of_very_different_sizes_are_covered() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let growing = |from: u64, doublings: u32, count| -> Vec<Blocks> {
        (0..doublings)
            .map(|n| external(from << n, count, 1, true))
            .collect()
    };
    let texts = |count| (1..=25).map(move |words| external(words, count, 1, true));
    let cases = [
        ("vectors that grow from 4 words", growing(4, 12, 200)),
        ("vectors that grow from a word", growing(1, 16, 200)),
        ("many vectors that grow", growing(1, 16, 2000)),
        ("texts of up to 25 words", texts(800).collect()),
        ("few texts", texts(100).collect()),
        (
            "boxes and tables",
            vec![
                external(2, 1000, 1, true),
                external(8, 1000, 1, true),
                external(125, 500, 1, true),
                external(2500, 100, 1, true),
            ],
        ),
    ];
    for (name, blocks) in cases {
        let case = Case {
            name,
            rate: 1e-3,
            blocks,
        };
        let estimator = Estimator::HorvitzThompson;
        let record = simulate(&case, |_| true, Unit::Blocks, estimator, &mut random);
        println!("{name}: {:.2} %", record.coverage());
        assert!(
            (92.0..97.5).contains(&record.coverage()),
            "{name}: {:.2} %",
            record.coverage()
        );
    }
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
                let side = |case: &Case, random: &mut Xoshiro256PlusPlus| -> Amount {
                    let blocks = case.blocks.iter().filter(|blocks| is_part(blocks));
                    blocks
                        .map(|blocks| blocks.sampled(case.rate, estimator, random))
                        .sum()
                };
                let truth = |case: &Case| -> f64 {
                    let blocks = case.blocks.iter().filter(|blocks| is_part(blocks));
                    blocks.map(|blocks| blocks.truth(unit)).sum()
                };
                let truth = truth(after) - truth(before);
                let mut record = Record::default();
                for _ in 0..RUNS {
                    let old = side(before, &mut random);
                    let new = side(after, &mut random);
                    let change = unit.of(&new).change(unit.of(&old), Sum::default());
                    record.add(change, unit.change(&new, &old), truth);
                }
                // Where sizes differ, more blocks may be missing than were seen.
                let most = if unit == Unit::Blocks { 97.0 } else { 96.0 };
                if record.bias().abs() > 4.0 || !(94.0..most).contains(&record.coverage()) {
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

/// Checks `docs/statistics.md` on few samples. Counts are whole numbers: with few of them no
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
    let (mut least, mut below) = (100.0_f64, 0);
    for count in [1, 2, 5, 20, 100, 1000] {
        for tenths in 30..120 {
            let case = Case {
                name: "large blocks",
                rate: 1e-3,
                blocks: vec![external(100 * tenths, count, 1, true)],
            };
            let estimator = Estimator::HorvitzThompson;
            let record = simulate(&case, |_| true, Unit::Bytes, estimator, &mut random);
            least = least.min(record.coverage());
            below += usize::from(record.coverage() < 94.0);
            assert!(
                record.coverage() > 89.5,
                "{count} blocks of {tenths} tenths of the distance: {:.2} %",
                record.coverage()
            );
        }
    }
    println!("at least {least:.2} %; {below} of 540 below 94 %");
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
        let bound = program::sampling(rate).none_seen().high / 8.0;
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
