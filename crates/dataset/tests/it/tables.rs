//! The tables of a run have what its profile has.

use crate::common;

use std::collections::HashMap;

use common::{ESTIMATES, Files, assert_near, parse};
use heapline_profile::reports::{self, Figures, SummaryOptions};
use heapline_profile::{Estimate, Estimator, Profile, Query, Scope};
use heapline_testkit::lives::{self, Life};
use heapline_testkit::{fixtures, generate};

fn whole(profile: &Profile) -> Scope<'_> {
    Scope::new(profile, &Query::default(), Estimator::default())
}

/// Real traces, damaged ones, several domains, no names, no events, hostile names.
fn profiles() -> impl Iterator<Item = (String, Profile)> {
    let traces = fixtures::traces().into_iter().map(|path| {
        let bytes = std::fs::read(&path).unwrap();
        (path.display().to_string(), bytes)
    });
    let hostile = ("hostile".to_owned(), generate::hostile_names());
    traces
        .chain([hostile])
        .map(|(name, bytes)| (name, parse(bytes)))
}

#[test]
fn sums_of_sites_and_blocks_are_the_totals_of_the_summary() {
    let mut seen = 0;
    for (name, profile) in profiles() {
        let files = Files::of(&profile);
        let (sites, blocks) = (files.table("sites"), files.table("blocks"));
        let summary = reports::summary(&whole(&profile), &SummaryOptions::default());
        let figures: [Figures; 4] = [
            summary.allocated,
            summary.live_at_peak,
            summary.live_at_end,
            summary.promoted,
        ];
        let expected = figures.iter().flat_map(|figures| {
            let is_seen = figures.samples > 0;
            [(figures.bytes, is_seen), (figures.blocks, is_seen)]
        });
        for (column, (estimate, is_seen)) in ESTIMATES.into_iter().zip(expected) {
            let what = format!("{name}: {column}");
            let variance = sites.sum(&format!("{column}_variance"));
            assert_near(sites.sum(column), estimate.value, &what);
            let total = files.info.totals.get(column).unwrap();
            assert_near(total.value, estimate.value, &what);
            assert_near(total.variance, variance, &what);
            // Where nothing was sampled, the summary has an upper bound.
            let error = if is_seen { estimate.error } else { 0.0 };
            if column.starts_with("live_at_peak") {
                // That the peak may be too high is no variance.
                assert!(total.estimate().error <= 1.000_001 * error, "{what}");
            } else {
                assert_near(total.estimate().error, error, &what);
            }
        }
        assert_near(
            blocks.sum("estimated_bytes"),
            summary.allocated.bytes.value,
            &name,
        );
        assert_near(
            blocks.sum("estimated_blocks"),
            summary.allocated.blocks.value,
            &name,
        );
        let sampled: i64 = sites.longs("sampled_blocks").iter().sum();
        assert_eq!(sampled, files.info.sampled_blocks, "{name}");
        assert_eq!(
            usize::try_from(sampled).unwrap(),
            summary.subject.sampled_blocks,
            "{name}"
        );
        assert_eq!(blocks.rows(), profile.len(), "{name}");
        assert_near(files.info.peak_s, summary.peak_time, &name);
        seen += usize::from(sampled > 1000);
    }
    assert!(seen >= 3, "{seen}");
}

#[test]
fn blocks_have_their_times_and_stacks() {
    for (name, profile) in profiles() {
        let files = Files::of(&profile);
        let blocks = files.table("blocks");
        let ids = blocks.longs("stack_id");
        let sites = blocks.longs("site");
        let promoted = blocks.nullable_longs("promoted_us");
        let collected = blocks.nullable_longs("collected_us");
        let allocated = blocks.longs("allocated_us");
        let frames = files.table("frames");
        let names: HashMap<i64, String> = frames
            .longs("frame_id")
            .into_iter()
            .zip(frames.texts("function"))
            .map(|(id, name)| (id, name.unwrap()))
            .collect();
        assert_eq!(names.len(), frames.rows(), "{name}: frames are there once");
        let table = files.table("stacks");
        let mut stacks: HashMap<i64, Vec<i64>> = HashMap::new();
        for (stack, frame) in table
            .longs("stack_id")
            .into_iter()
            .zip(table.longs("frame_id"))
        {
            stacks.entry(stack).or_default().push(frame);
        }
        let mut row = 0;
        let long = |time: u64| i64::try_from(time).unwrap();
        whole(&profile).for_each_block(|block| {
            assert_eq!(allocated[row], long(block.allocated), "{name}");
            assert_eq!(promoted[row], block.promoted.map(long), "{name}");
            assert_eq!(collected[row], block.collected.map(long), "{name}");
            let stack = &stacks[&ids[row]];
            assert_eq!(stack[0], sites[row], "{name}");
            let found: Vec<&str> = stack.iter().map(|frame| names[frame].as_str()).collect();
            let expected = profile.stack(block.stack);
            let mut expected: Vec<&str> = expected
                .iter()
                .map(|&frame| profile.symbols().function(frame).name.as_str())
                .collect();
            if expected.is_empty() {
                expected.push("(unknown)");
            }
            assert_eq!(found, expected, "{name}");
            row += 1;
        });
        assert_eq!(row, blocks.rows(), "{name}");
    }
}

#[test]
fn ids_of_places_and_stacks_are_the_same_in_every_run() {
    let lives = |first: &'static str| {
        [
            Life::new(64, 1, &["main@main.ml:1", first]),
            Life::new(64, 2, &["main@main.ml:1", "Cache.add@cache.ml:12"]),
        ]
    };
    let [a, b] = ["A.f@a.ml:1", "B.g@b.ml:2"]
        .map(|first| Files::of(&parse(lives::trace(&lives(first), 1.0, 1))));
    for column in ["site", "stack_id"] {
        let (a, b) = (
            a.table("blocks").longs(column),
            b.table("blocks").longs(column),
        );
        assert_eq!(a[1], b[1], "{column}");
        assert_ne!(a[0], b[0], "{column}");
    }
}

#[test]
fn lifetimes_are_in_the_bin_of_their_power_of_two() {
    let stack = ["main"];
    let lives = [
        Life::new(16, 10, &stack).until(11),
        Life::new(24, 20, &stack).until(23),
        Life::new(32, 30, &stack).until(34),
        Life::new(40, 40, &stack).until(47),
        Life::new(48, 50, &stack),
    ];
    let files = Files::of(&parse(lives::trace(&lives, 1.0, 1)));
    let sites = files.table("sites");
    assert_eq!(sites.lists("lifetime_log2_us"), [[16.0, 24.0, 72.0]]);
    assert_eq!(sites.doubles("live_at_end_bytes"), [48.0]);
    assert_eq!(sites.doubles("allocated_bytes_variance"), [0.0]);
}

/// A program with sites of small, mixed and large blocks.
fn program() -> Vec<Life> {
    let mut lives = Vec::new();
    for n in 0..3000_u64 {
        let life = match n % 10 {
            0..6 => Life::new(24, n, &["main", "Small.make"]),
            6..9 => Life::new(16 + 8 * (n % 40), n, &["main", "Mixed.make"]),
            _ => Life::new(2048, n, &["main", "Large.make"]),
        };
        let life = if n % 3 == 0 {
            life.promoted(n + 20)
        } else {
            life
        };
        lives.push(if n % 4 == 1 {
            life
        } else {
            life.until(n + 500)
        });
    }
    lives
}

#[test]
fn estimates_are_right_on_average_and_variances_are_those_of_repeated_runs() {
    const RUNS: usize = 200;
    const RATE: f64 = 0.02;
    let lives = program();
    // The peak is a maximum of estimates, so only the others have an expected value that is known.
    let columns = [
        "allocated_bytes",
        "allocated_blocks",
        "live_at_end_bytes",
        "promoted_blocks",
    ];
    let truth = |site: Option<&str>, column: &str| -> f64 {
        let counted = lives.iter().filter(|life| {
            site.is_none_or(|site| life.stack[1] == site)
                && match column {
                    "live_at_end_bytes" => life.death.is_none(),
                    "promoted_blocks" => life.promotion.is_some(),
                    _ => true,
                }
        });
        let amounts = counted.map(|life| {
            if column.ends_with("bytes") {
                life.bytes as f64
            } else {
                1.0
            }
        });
        amounts.sum()
    };
    let sites = [
        Some("Small.make"),
        Some("Mixed.make"),
        Some("Large.make"),
        None,
    ];
    let mut found: HashMap<(usize, usize), Vec<(f64, f64)>> = HashMap::new();
    for seed in 0..RUNS as u64 {
        let table = Files::of(&parse(lives::trace(&lives, RATE, seed))).table("sites");
        let functions = table.texts("function");
        for (c, column) in columns.iter().enumerate() {
            let values = table.doubles(column);
            let variances = table.doubles(&format!("{column}_variance"));
            for (s, site) in sites.iter().enumerate() {
                let is_in = |row: &usize| site.is_none() || functions[*row].as_deref() == *site;
                let sum = |of: &[f64]| (0..of.len()).filter(is_in).map(|row| of[row]).sum();
                let pair = (sum(&values), sum(&variances));
                found.entry((c, s)).or_default().push(pair);
            }
        }
    }
    for ((c, s), pairs) in found {
        let what = format!("{} of {:?}", columns[c], sites[s]);
        let truth = truth(sites[s], columns[c]);
        let n = pairs.len() as f64;
        let mean = pairs.iter().map(|(value, _)| value).sum::<f64>() / n;
        let deviations = pairs.iter().map(|(value, _)| (value - truth).powi(2));
        let spread = deviations.sum::<f64>() / n;
        let told = pairs.iter().map(|(_, variance)| variance).sum::<f64>() / n;
        // Four standard errors of a mean of so many runs.
        assert!(
            (mean - truth).abs() < 4.0 * (spread / n).sqrt(),
            "{what}: {mean}, not {truth}"
        );
        // The spread of an estimated variance is about the root of 2 / n: 10 %.
        assert!(
            (told / spread - 1.0).abs() < 0.35,
            "{what}: {told}, not {spread}"
        );
        let is_covered =
            |(value, variance): &&(f64, f64)| (value - truth).abs() <= 1.96 * variance.sqrt();
        let covered = pairs.iter().filter(is_covered).count() as f64 / n;
        assert!(covered > 0.88, "{what}: {covered}");
    }
}

#[test]
fn an_estimate_of_a_sum_over_runs_has_the_root_of_the_summed_variances() {
    let totals = [1, 2, 3].map(|seed| {
        let files = Files::of(&parse(lives::trace(&program(), 0.02, seed)));
        files.info.totals.get("allocated_bytes").unwrap()
    });
    let variance: f64 = totals.iter().map(|total| total.variance).sum();
    let each = totals.map(heapline_dataset::Total::estimate);
    let errors = each
        .iter()
        .map(|estimate: &Estimate| estimate.error.powi(2));
    assert_near(
        errors.sum::<f64>().sqrt(),
        1.959_963_984_540_054 * variance.sqrt(),
        "error",
    );
}
