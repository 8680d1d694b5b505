//! The peak of a noisy curve is too high, and its parts are those of a moment that chance has chosen. Intervals contain the truth all
//! the same, and comparisons find no changes that are not there.

use heapline_profile::reports::{Budget, Compared, DiffOptions, DiffSides, Outcome, diff_sides};
use heapline_profile::{Estimator, Profile, Query, Scope};
use heapline_testkit::lives::Life;
use heapline_testkit::{OwnedEvent, OwnedTrace};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::peak::load;

/// Bytes of a block: two words, one of which is the header.
const BYTES: u64 = 16;

/// Microseconds.
const RUN: u64 = 1_000_000;

/// How much is live, over time.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Flat,
    Rising,
    Spiked,
}

const FUNCTIONS: [&str; 4] = ["Program.a", "Program.b", "Program.c", "Program.d"];

/// A program that has about so many blocks at its peak, a quarter of them in each function.
fn program(shape: Shape, blocks: u64, seed: u64) -> Vec<Life> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mean = RUN / 20;
    let lifetimes = Exp::new(1.0 / mean as f64).unwrap();
    let mut lives = Vec::new();
    let mut life = |birth: u64, lifetime: Option<f64>| {
        let function = FUNCTIONS[lives.len() % FUNCTIONS.len()];
        let life = Life::new(BYTES, birth, &["main", function]);
        lives.push(match lifetime {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "microseconds"
            )]
            Some(lifetime) => life.until(birth + 1 + lifetime as u64),
            None => life,
        });
    };
    let steady = match shape {
        Shape::Flat => blocks,
        Shape::Rising => blocks / 10,
        Shape::Spiked => blocks / 2,
    };
    for _ in 0..steady {
        life(0, Some(lifetimes.sample(&mut random)));
    }
    for number in 0..steady * RUN / mean {
        life(number * mean / steady, Some(lifetimes.sample(&mut random)));
    }
    match shape {
        Shape::Flat => {}
        Shape::Rising => {
            for _ in 0..blocks - steady {
                life(random.random_range(0..RUN), None);
            }
        }
        Shape::Spiked => {
            for _ in 0..blocks - steady {
                life(RUN / 2 + random.random_range(0..RUN / 1000), Some(1e4));
            }
        }
    }
    lives
}

/// Recordings of a program: intervals contain its peak, and budgets above it are not broken.
#[expect(clippy::print_stdout, reason = "the documents have these figures")]
fn assert_covers(name: &str, lives: &[Life], samples: u64, runs: u64) {
    let whole = |profile: &Profile| {
        let all = Scope::new(profile, &Query::default(), Estimator::default());
        all.at_peak().total().bytes.estimate()
    };
    let truth = whole(&load(lives, 1.0, 0)).value;
    // So many words are live at the peak.
    let rate = samples as f64 / (truth / 8.0);
    let budget = Budget::parse(&format!("peak < {:.0}", 1.015 * truth)).unwrap();
    let (mut covered, mut broken, mut bias) = (0, 0, 0.0);
    for seed in 1..=runs {
        let profile = load(lives, rate, seed);
        let peak = whole(&profile);
        bias += (peak.value / truth - 1.0) / runs as f64;
        covered += u64::from(peak.low <= truth && truth <= peak.high);
        let verdict = budget.check(&profile, Estimator::default());
        broken += u64::from(verdict.outcome == Outcome::Broken);
    }
    let [covered, broken] = [covered, broken].map(|n| 100.0 * n as f64 / runs as f64);
    let what = format!(
        "{name} with {samples} samples: {covered:.1} % covered, {broken:.1} % broken, bias {:+.1} %",
        100.0 * bias
    );
    println!("{what}");
    // Between 93 and 97 %, and two standard errors of the share of these runs.
    let chance = 200.0 * (0.05 * 0.95 / runs as f64).sqrt();
    assert!((93.0 - chance..=97.0 + chance).contains(&covered), "{what}");
    assert!(broken <= 5.0, "{what}");
}

#[test]
fn the_interval_of_the_peak_contains_that_of_the_program() {
    for shape in [Shape::Flat, Shape::Rising, Shape::Spiked] {
        for (samples, blocks, runs) in [(100, 2_000, 400), (1_000, 10_000, 100)] {
            let lives = program(shape, blocks, samples);
            assert_covers(&format!("{shape:?}"), &lives, samples, runs);
        }
    }
}

/// The blocks that were sampled of a compiler's run, as a program that has no others.
#[test]
#[ignore = "needs the reference traces"]
fn the_interval_of_the_peak_contains_that_of_a_compilers_run() {
    let path = heapline_testkit::fixtures::reference("public/ocamlopt_big/trace.ctf");
    let trace = OwnedTrace::read(
        &std::fs::read(path).unwrap(),
        heapline_trace::Options::new(),
    )
    .unwrap();
    let mut lives: Vec<Life> = Vec::new();
    for event in &trace.events {
        match *event {
            OwnedEvent::Alloc { time, length, .. } => {
                lives.push(Life::new(8 * (length + 1), time, &["main", FUNCTIONS[0]]));
            }
            OwnedEvent::Collect { time, id, .. } => {
                let life = &mut lives[usize::try_from(id).unwrap()];
                life.death = Some(time.max(life.birth + 1));
            }
            OwnedEvent::Promote { .. } => {}
        }
    }
    for samples in [100, 1_000] {
        assert_covers("ocamlopt", &lives, samples, 400);
    }
}

/// The parts of two peaks that differ by more than chance.
fn changes(before: &Profile, after: &Profile) -> Vec<String> {
    let options = DiffOptions {
        sides: DiffSides {
            of: Compared::Peak,
            ..DiffSides::default()
        },
        ..DiffOptions::default()
    };
    let [before, after] =
        [before, after].map(|profile| Scope::new(profile, &Query::default(), Estimator::default()));
    let sides = options.sides.of_traces(before, after);
    let rows = diff_sides(&sides, &options).rows.into_iter();
    let real = rows.filter(|row| row.change.is_real);
    real.map(|row| row.label.name).collect()
}

#[test]
fn peaks_of_equal_runs_have_no_changes_and_those_of_others_do() {
    const RUNS: u64 = 100;
    let lives = program(Shape::Flat, 2_000, 1);
    // One function has half as much again.
    let is_more = |life: &&Life| life.stack[1] == FUNCTIONS[2];
    let more = lives.iter().filter(is_more).step_by(2).cloned();
    let mut other = [&lives[..], &more.collect::<Vec<_>>()].concat();
    other.sort_by_key(|life| life.birth);
    let (mut false_ones, mut found) = (0, 0);
    for seed in 1..=RUNS {
        let [before, after] = [2 * seed, 2 * seed + 1].map(|seed| load(&lives, 0.25, seed));
        false_ones += u64::from(!changes(&before, &after).is_empty());
        let grown = load(&other, 0.25, seed);
        found += u64::from(changes(&before, &grown) == [FUNCTIONS[2]]);
    }
    println!("{false_ones} of {RUNS} with changes, {found} of {RUNS} found");
    // 5 %, and three standard errors of it.
    assert!(false_ones <= 11, "{false_ones} of {RUNS}");
    assert!(found >= RUNS * 8 / 10, "{found} of {RUNS}");
}
