//! Estimates are right on average, and their intervals cover the truth as often as they say.
//!
//! All is seeded, so that a run is like any other.

mod common;

use std::hint::black_box;

use common::alone;
use heapline::{Options, Profiler};

#[global_allocator]
static ALLOC: heapline::Alloc = heapline::Alloc::system();

/// Blocks of a site: how many, and of which size. From a byte to more than the sampler's own limits.
const SITES: [(usize, usize); 6] = [
    (4000, 1),
    (4000, 24),
    (2000, 100),
    (500, 1000),
    (60, 20_000),
    (12, 150_000),
];

/// Half of the blocks die.
const SURVIVE: usize = 2;

const RUNS: u64 = 60;
const RATE: f64 = 1e-3;

/// Estimated blocks and bytes that are alive, and the variance of the latter.
#[derive(Clone, Copy, Default)]
struct Estimate {
    blocks: f64,
    bytes: f64,
    variance: f64,
}

/// One run: what is estimated of each site.
fn run(seed: u64) -> [Estimate; SITES.len()] {
    let mut kept: Vec<Vec<Vec<u8>>> = Vec::new();
    for (count, _) in SITES {
        kept.push(Vec::with_capacity(count));
    }
    let profiler = Profiler::watch(Options::rate(RATE).seed(seed)).unwrap();
    for (site, (count, size)) in SITES.into_iter().enumerate() {
        for n in 0..count {
            let block = vec![0_u8; size];
            if n % SURVIVE == 0 {
                kept[site].push(black_box(block));
            } else {
                drop(black_box(block));
            }
        }
    }
    let mut estimates = [Estimate::default(); SITES.len()];
    profiler.for_each_live(|block, ()| {
        let site = SITES.iter().position(|(_, size)| *size == block.size);
        if let Some(site) = site {
            let estimate = &mut estimates[site];
            let p = 1.0 / block.blocks();
            estimate.blocks += block.blocks();
            estimate.bytes += block.bytes();
            estimate.variance += (block.size as f64).powi(2) * (1.0 - p) / (p * p);
        }
    });
    drop(profiler);
    estimates
}

#[test]
fn estimates_of_what_is_alive_are_unbiased_and_their_intervals_cover_the_truth() {
    let _alone = alone();
    let runs: Vec<_> = (0..RUNS).map(run).collect();
    for (site, (count, size)) in SITES.into_iter().enumerate() {
        let truth = (count / SURVIVE * size) as f64;
        let words = size as f64 / 8.0;
        let p = 1.0 - (1.0 - RATE).powf(words);
        let blocks = (count / SURVIVE) as f64;
        // That of one run's estimate.
        let variance = blocks * (size as f64).powi(2) * (1.0 - p) / p;
        let n = RUNS as f64;
        let mean = runs.iter().map(|run| run[site].bytes).sum::<f64>() / n;
        let error = (variance / n).sqrt();
        assert!(
            (mean - truth).abs() <= 3.5 * error,
            "{size}: {mean} for {truth}, ± {error}"
        );
        let mean = runs.iter().map(|run| run[site].blocks).sum::<f64>() / n;
        let error = error / size as f64;
        assert!(
            (mean - blocks).abs() <= 3.5 * error,
            "{size}: {mean} for {blocks}, ± {error}"
        );
        // The truth is within 1.96 standard deviations, as estimated from the samples themselves,
        // in 95 of 100 runs; in fewer where there are only a handful of samples.
        let samples = blocks * p;
        if samples >= 30.0 {
            let covered = runs.iter().filter(|run| {
                let estimate = run[site];
                (estimate.bytes - truth).abs() <= 1.96 * estimate.variance.sqrt()
            });
            let covered = covered.count() as f64 / n;
            assert!((0.85..=1.0).contains(&covered), "{size}: {covered}");
        }
    }
}

#[test]
fn a_seed_gives_the_same_samples_again() {
    let _alone = alone();
    let first = run(7);
    let again = run(7);
    let other = run(8);
    let bytes = |run: &[Estimate]| run.iter().map(|e| e.bytes.to_bits()).collect::<Vec<_>>();
    assert_eq!(bytes(&first), bytes(&again));
    assert_ne!(bytes(&first), bytes(&other));
}

#[test]
fn sizes_that_grow_are_counted_at_each_size() {
    let _alone = alone();
    let mut total = 0.0;
    for seed in 0..40 {
        let tracker = heapline::Tracker::new(|block| Some(block.bytes()));
        let sum = std::sync::Arc::new(std::sync::Mutex::new(0.0));
        let (to_sum, to_sum_too) = (sum.clone(), sum.clone());
        let tracker = tracker
            .on_realloc(move |block, bytes| {
                *to_sum.lock().unwrap() += bytes;
                Some(block.bytes())
            })
            .on_free(move |_, bytes| *to_sum_too.lock().unwrap() += bytes);
        let profiler = Profiler::start(Options::rate(RATE).seed(seed), tracker).unwrap();
        for _ in 0..20 {
            let mut numbers: Vec<u8> = Vec::with_capacity(1000);
            for size in (2000..=20_000).step_by(1000) {
                numbers.reserve_exact(size);
                black_box(&mut numbers).push(1);
                numbers.clear();
            }
        }
        drop(profiler);
        total += *sum.lock().unwrap();
    }
    // 1000 + 2000 + ... + 20000, twenty times.
    let truth = 20.0 * 210_000.0;
    let mean = total / 40.0;
    assert!((mean / truth - 1.0).abs() < 0.05, "{mean} for {truth}");
}

#[test]
fn short_lived_threads_are_not_all_sampled_at_the_same_place() {
    let _alone = alone();
    let profiler = Profiler::watch(Options::rate(RATE).seed(1)).unwrap();
    let mut kept = Vec::new();
    for _ in 0..400 {
        let blocks = std::thread::spawn(|| (0..20).map(|_| vec![1_u8; 48]).collect::<Vec<_>>());
        kept.push(blocks.join().unwrap());
    }
    let mut seen = 0.0;
    profiler.for_each_live(|block, ()| {
        if block.size == 48 {
            seen += block.blocks();
        }
    });
    let (truth, p) = (8000.0, 6.0 * RATE);
    let error = (truth * (1.0 - p) / p).sqrt();
    assert!(
        (seen - truth).abs() < 4.0 * error,
        "{seen} for {truth}, ± {error}"
    );
}
