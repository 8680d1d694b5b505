//! The numbers of ocaml-alloc-stats: those that it printed, and those that its notebooks, written
//! down again step by step, make of other traces.

#![expect(clippy::float_cmp, reason = "what is exact is to be exact")]

use std::collections::{BTreeMap, HashMap};

use heapline_formats::{Options, Reader};
use heapline_profile::reports::{AllocStats, EqualBins, Spread, alloc_stats};
use heapline_profile::{Profile, StoreOptions};
use heapline_testkit::generate::{self, Program};
use heapline_testkit::{OwnedEvent, OwnedTrace, fixtures};
use heapline_trace::{Block, Source, Writer};

fn ours(trace: &[u8]) -> AllocStats {
    let bytes = std::io::Cursor::new(trace.to_vec());
    let mut reader = Reader::new(bytes, Options::default()).unwrap();
    alloc_stats(&Profile::load(&mut reader, StoreOptions::default()).unwrap())
}

/// A line of the notebooks' filtered dump.
enum Line {
    Alloc { time: u64, id: u64, size: u64 },
    Collect { time: u64, id: u64 },
}

/// The dump, with its mistake: only allocations have a time of their own.
fn filtered(trace: &[u8]) -> Vec<Line> {
    let mut time = 0;
    let mut in_minor = HashMap::new();
    let mut lines = Vec::new();
    for event in OwnedTrace::read(trace, heapline_trace::Options::new())
        .unwrap()
        .events
    {
        match event {
            OwnedEvent::Alloc {
                time: now,
                id,
                length,
                source,
                ..
            } => {
                time = now;
                if source == Source::Minor {
                    in_minor.insert(id, length);
                } else {
                    lines.push(Line::Alloc {
                        time,
                        id,
                        size: length,
                    });
                }
            }
            OwnedEvent::Promote { id, .. } => {
                let size = in_minor.remove(&id).unwrap();
                lines.push(Line::Alloc { time, id, size });
            }
            OwnedEvent::Collect { id, .. } if in_minor.contains_key(&id) => {}
            OwnedEvent::Collect { id, .. } => lines.push(Line::Collect { time, id }),
        }
    }
    lines
}

/// `numpy.histogram`: where a value lies is decided by the edges, not by a division.
fn histogram(values: &[u64], low: f64, high: f64, bins: usize) -> Vec<u64> {
    let mut counts = vec![0; bins];
    let step = (high - low) / bins as f64;
    let mut edges: Vec<f64> = (0..=bins).map(|i| i as f64 * step + low).collect();
    edges[bins] = high;
    for value in values.iter().map(|&value| value as f64) {
        if value < low || value > high {
            continue;
        }
        let bin = (0..bins).rev().find(|&bin| value >= edges[bin]).unwrap();
        counts[bin] += 1;
    }
    counts
}

fn assert_bins(bins: &EqualBins, values: &[u64], mut low: f64, mut high: f64, n: usize) {
    if low == high && !values.is_empty() {
        (low, high) = (low - 0.5, high + 0.5);
    }
    assert_eq!(bins.counts, histogram(values, low, high, n));
    assert_eq!((bins.low, bins.high), (low, high));
}

fn assert_spread(spread: &Spread, values: &[u64]) {
    let n = values.len() as f64;
    assert_eq!(spread.count, values.len());
    assert_eq!(spread.max, values.iter().max().copied());
    if values.is_empty() {
        assert_eq!(
            (spread.mean, spread.variance, spread.sd),
            (None, None, None)
        );
        return;
    }
    let mean = values.iter().sum::<u64>() as f64 / n;
    let squares: f64 = values.iter().map(|&v| (v as f64 - mean).powi(2)).sum();
    close(spread.mean.unwrap(), mean);
    close(spread.variance.unwrap(), squares / n);
    close(spread.sd.unwrap(), (squares / n).sqrt());
}

/// Python adds in another order.
fn close(ours: f64, theirs: f64) {
    let scale = theirs.abs().max(1e-9);
    assert!(
        (ours - theirs).abs() <= 1e-12 * scale,
        "{ours} instead of {theirs}"
    );
}

/// The notebooks' way to cut a list: pieces of the same length, the last one shorter.
fn segments(values: &[u64], n: usize) -> Vec<Vec<u64>> {
    let length = values.len().div_ceil(n);
    let mut segments = Vec::new();
    let mut start = 0;
    while start < values.len() {
        let end = (start + length).min(values.len());
        segments.push(values[start..end].to_vec());
        start = end;
    }
    segments
}

fn assert_spreads(spreads: &[Spread], values: &[u64], n: usize) {
    let segments = segments(values, n);
    assert_eq!(spreads.len(), segments.len());
    for (spread, segment) in spreads.iter().zip(&segments) {
        assert_spread(spread, segment);
    }
}

fn is_large(size: u64) -> bool {
    size > 256
}

/// `main.ipynb`, cell by cell.
fn assert_sizes(stats: &AllocStats, lines: &[Line]) {
    let sizes: Vec<u64> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Alloc { size, .. } => Some(*size),
            Line::Collect { .. } => None,
        })
        .collect();
    let stats = &stats.sizes;
    assert_eq!(stats.events, sizes.len());
    let mut counts = BTreeMap::new();
    for &size in &sizes {
        *counts.entry(size).or_insert(0) += 1;
    }
    assert_eq!(stats.counts, counts);
    assert_bins(&stats.small, &sizes, 0.0, 32.0, 32);
    assert_bins(&stats.medium, &sizes, 32.0, 256.0, 100);
    assert_bins(&stats.large, &sizes, 256.0, 10_000.0, 100);
    let huge: Vec<u64> = sizes.iter().copied().filter(|&n| n > 10_000).collect();
    if let (Some(&low), Some(&high)) = (huge.iter().min(), huge.iter().max()) {
        assert_bins(&stats.huge, &huge, low as f64, high as f64, 100);
    } else {
        assert!(stats.huge.counts.iter().all(|&n| n == 0));
    }
    let large = |sizes: &[u64]| sizes.iter().filter(|&&size| is_large(size)).count();
    let percent = (!sizes.is_empty()).then(|| large(&sizes) as f64 * 100.0 / sizes.len() as f64);
    assert_eq!(stats.large_percent.is_some(), percent.is_some());
    close(stats.large_percent.unwrap_or(0.0), percent.unwrap_or(0.0));
    assert_spread(&stats.all, &sizes);
    assert_spreads(&stats.halves, &sizes, 2);
    assert_spreads(&stats.tenths, &sizes, 10);
    // Python's sizes[100:-100] of a short list is empty.
    let trimmed = match sizes.len() {
        0..=200 => Vec::new(),
        n => sizes[100..n - 100].to_vec(),
    };
    assert_spreads(&stats.trimmed_halves, &trimmed, 2);
    let trimmed_large: Vec<u64> = trimmed.into_iter().filter(|&size| is_large(size)).collect();
    assert_spreads(&stats.trimmed_large_halves, &trimmed_large, 2);
    let tenths: Vec<usize> = segments(&sizes, 10)
        .iter()
        .map(|part| large(part))
        .collect();
    assert_eq!(stats.large_per_tenth, tenths);
}

/// `lifetimes.ipynb`, cell by cell.
fn assert_lifetimes(stats: &AllocStats, lines: &[Line]) {
    let (mut clock, mut latest) = (0, 0);
    let mut born: HashMap<u64, (u64, u64)> = HashMap::new();
    let (mut ticks, mut times) = (Vec::new(), Vec::new());
    for line in lines {
        match *line {
            Line::Alloc { time, id, .. } => {
                born.insert(id, (clock, time));
                latest = latest.max(time);
            }
            Line::Collect { time, id } => {
                let (tick, then) = born.remove(&id).unwrap();
                ticks.push(clock - tick);
                times.push(time - then);
                latest = latest.max(time);
            }
        }
        clock += 1;
    }
    let stats = &stats.lifetimes;
    assert_eq!(stats.events, lines.len());
    assert_eq!(stats.survivors, born.len());
    for (tick, then) in born.into_values() {
        ticks.push(clock - tick);
        times.push(latest - then);
    }
    assert_eq!(stats.ticks_max, ticks.iter().max().copied());
    assert_bins(&stats.ticks, &ticks, 0.0, 32.0, 32);
    assert_eq!(stats.time_max, times.iter().max().copied());
    assert_eq!(stats.time_sum, times.iter().sum::<u64>());
    let longest = times.iter().max().copied().unwrap_or(0) as f64;
    assert_bins(&stats.time, &times, 0.0, longest, 100);
}

fn assert_like_the_notebooks(trace: &[u8]) {
    let (stats, lines) = (ours(trace), filtered(trace));
    assert_sizes(&stats, &lines);
    assert_lifetimes(&stats, &lines);
}

#[test]
fn recorded_traces_give_the_numbers_of_the_notebooks() {
    for name in [
        "mix-ocaml413/trace.ctf",
        "mix-ocaml53/trace.ctf",
        "odd/deep1000.ctf",
        "odd/peakend.ctf",
        "odd/stripped.ctf",
        "odd/t1000.ctf",
        "odd/empty.ctf",
    ] {
        println!("{name}");
        assert_like_the_notebooks(&std::fs::read(fixtures::folder().join(name)).unwrap());
    }
}

#[test]
fn generated_traces_give_the_numbers_of_the_notebooks() {
    for seed in 0..40 {
        let program = Program {
            allocations: [1, 10, 300, 3000][usize::try_from(seed).unwrap() % 4],
            locations: 20,
            depth: 3,
            seed,
            ..Program::default()
        };
        assert_like_the_notebooks(&program.trace());
    }
}

/// Values on the edges of bars, and bars that have no width.
#[test]
fn bars_are_those_of_numpy() {
    let trace = |lengths: &[u64], lifetimes: &[u64]| {
        let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
        let mut time = 0;
        let sizes = lengths.iter().chain(std::iter::repeat(&5));
        let alloc = |writer: &mut Writer<Vec<u8>>, id, time, length| {
            let block = Block {
                length,
                samples: 1,
                source: Source::Major,
            };
            writer.alloc(0, time, id, block, &[], |_, _| ()).unwrap();
        };
        for ((id, &lifetime), &length) in (0..).zip(lifetimes).zip(sizes) {
            alloc(&mut writer, 2 * id, time, length);
            time += lifetime;
            // The time of a collection is that of the last allocation.
            alloc(&mut writer, 2 * id + 1, time, 1);
            writer.collect(0, time, 2 * id).unwrap();
            writer.collect(0, time, 2 * id + 1).unwrap();
        }
        writer.finish().unwrap()
    };
    // All multiples of a hundredth of the longest.
    let lifetimes: Vec<u64> = (0..=100).collect();
    assert_like_the_notebooks(&trace(&[], &lifetimes));
    let lifetimes: Vec<u64> = (0..=700).step_by(7).collect();
    assert_like_the_notebooks(&trace(&[31, 32, 256, 10_000, 10_001, 20_001], &lifetimes));
    // Huge blocks of one size only, and nothing that lasts.
    assert_like_the_notebooks(&trace(&[50_000, 50_000], &[0, 0, 0]));
}

fn bins(pairs: &[(usize, u64)], len: usize) -> Vec<u64> {
    let mut counts = vec![0; len];
    for &(bin, count) in pairs {
        counts[bin] = count;
    }
    counts
}

fn sds(spreads: &[Spread]) -> Vec<f64> {
    spreads.iter().map(|spread| spread.sd.unwrap()).collect()
}

fn all_close(ours: &[f64], theirs: &[f64]) {
    assert_eq!(ours.len(), theirs.len());
    for (&ours, &theirs) in ours.iter().zip(theirs) {
        close(ours, theirs);
    }
}

/// The numbers that are printed in the notebooks themselves.
#[test]
#[ignore = "needs the reference traces"]
fn its_own_example_gives_its_own_numbers() {
    let trace = std::fs::read(fixtures::reference("public/irmin-replay/trace.ctf")).unwrap();
    let AllocStats { sizes, lifetimes } = ours(&trace);

    assert_eq!(sizes.events, 739);
    let counts = [
        (1, 179),
        (2, 269),
        (3, 64),
        (4, 12),
        (5, 112),
        (6, 13),
        (7, 15),
        (8, 5),
        (9, 2),
        (13, 1),
        (14, 1),
        (15, 46),
        (32, 8),
    ];
    let large = [
        380, 677, 923, 1145, 1379, 1751, 2116, 6250, 8193, 18_401, 125_004, 376_181,
    ];
    let all = counts.into_iter().chain(large.map(|size| (size, 1)));
    assert_eq!(sizes.counts, all.collect());
    let small: Vec<(usize, u64)> = counts[..12]
        .iter()
        .map(|&(size, count)| (usize::try_from(size).unwrap(), count))
        .chain([(31, 8)])
        .collect();
    assert_eq!(sizes.small.counts, bins(&small, 32));
    assert_eq!(sizes.medium.counts, bins(&[(0, 8)], 100));
    let ones = [1, 4, 6, 9, 11, 15, 19, 61, 81].map(|bin| (bin, 1));
    assert_eq!(sizes.large.counts, bins(&ones, 100));
    assert_eq!(sizes.huge.counts, bins(&[(0, 1), (29, 1), (99, 1)], 100));
    close(sizes.large_percent.unwrap(), 1.623_815_967_523_680_7);
    assert_eq!((sizes.all.count, sizes.all.max), (739, Some(376_181)));
    close(sizes.all.mean.unwrap(), 737.660_351_826_793);
    close(sizes.all.variance.unwrap(), 212_710_479.022_663_44);
    close(sizes.all.sd.unwrap(), 14_584.597_321_238_027);
    all_close(
        &sds(&sizes.halves),
        &[20_583.192_112_262_896, 443.157_727_430_018_67],
    );
    assert_eq!((sizes.halves[0].count, sizes.halves[1].count), (370, 369));
    assert!(sizes.tenths[..9].iter().all(|tenth| tenth.count == 74));
    all_close(
        &sds(&sizes.tenths),
        &[
            43_433.244_057_724_15,
            14_440.091_686_961_93,
            158.948_019_145_750_7,
            5.060_986_717_976_299,
            2_132.331_943_132_892,
            244.020_232_010_354_3,
            131.903_530_168_834_86,
            4.778_837_724_038_701,
            5.495_083_797_900_26,
            951.694_800_570_100_6,
        ],
    );
    all_close(
        &sds(&sizes.trimmed_halves),
        &[7_678.859_107_909_331, 145.935_678_599_337_73],
    );
    let large = &sizes.trimmed_large_halves;
    assert!(large.iter().all(|half| half.count == 5));
    all_close(
        &[large[0].mean.unwrap(), large[1].mean.unwrap()],
        &[26_787.2, 4818.0],
    );
    all_close(&sds(large), &[49_153.209_593_677_6, 6_809.463_884_917_814]);
    assert_eq!((large[0].max, large[1].max), (Some(125_004), Some(18_401)));
    assert_eq!(sizes.large_per_tenth, [1, 3, 1, 0, 4, 1, 1, 0, 0, 1]);

    assert_eq!((lifetimes.events, lifetimes.survivors), (1477, 1));
    assert_eq!(lifetimes.ticks_max, Some(467));
    assert_eq!(
        lifetimes.ticks.counts,
        [
            0, 56, 83, 54, 20, 18, 29, 16, 6, 17, 19, 23, 12, 28, 14, 24, 26, 19, 31, 29, 6, 26,
            22, 7, 4, 5, 9, 4, 6, 6, 5, 12
        ]
    );
    assert_eq!(lifetimes.time_max, Some(13_745_183));
    assert_eq!(lifetimes.time_sum, 428_933_212);
    let counts = &lifetimes.time.counts;
    assert_eq!(counts[..10], [251, 85, 108, 84, 77, 24, 14, 9, 9, 4]);
    assert_eq!((counts.len(), counts[99]), (100, 2));
    assert_eq!(counts.iter().sum::<u64>(), 739);
    assert_like_the_notebooks(&trace);
}
