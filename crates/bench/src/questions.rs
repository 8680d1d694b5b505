//! How long a loaded profile takes to answer.

use std::hint::black_box;
use std::time::{Duration, Instant};

use heapline_profile::reports::{
    self, Direction, HotspotOptions, LeakOptions, SeriesOptions, StatsOptions, TreeOptions,
};
use heapline_profile::{Estimator, Profile, Query, Scope, View};

use crate::Outcome;

/// Prints a table of questions and times.
pub(crate) fn table(profile: &Profile) -> Outcome {
    println!(
        "\nQuestions to the loaded profile: {} blocks, {} stacks, {:.1} bytes a block\n",
        profile.len(),
        profile.stack_count(),
        profile.bytes_per_block()
    );
    let all = Query::default();
    let queries = [
        "live at peak and heap = major and size >= 64",
        "inside /^Stdlib/ and lifetime > 1ms",
        "lifetime > 1MiB",
    ];
    for text in queries {
        let query = Query::parse(text)?;
        time(text, || {
            let scope = Scope::new(profile, &query, Estimator::default());
            black_box(reports::hotspots(&scope, &HotspotOptions::default()));
        });
    }
    let scope = Scope::new(profile, &all, Estimator::default());
    time("hotspots", || {
        black_box(reports::hotspots(&scope, &HotspotOptions::default()));
    });
    for (name, direction) in [
        ("tree", Direction::TopDown),
        ("tree, bottom-up", Direction::BottomUp),
    ] {
        let options = TreeOptions {
            direction,
            ..TreeOptions::default()
        };
        time(name, || {
            black_box(reports::tree(&scope, &options));
        });
    }
    let options = SeriesOptions {
        groups: Some((View::default(), 10)),
        ..SeriesOptions::default()
    };
    time("series by function", || {
        black_box(reports::series(&scope, &options));
    });
    time("summary", || {
        black_box(reports::summary(&scope, &View::default(), 5));
    });
    time("stats", || {
        black_box(reports::stats(&scope, &StatsOptions::default()));
    });
    time("leaks", || {
        black_box(reports::leaks(&scope, &LeakOptions::default()));
    });
    Ok(())
}

/// The best of several runs.
fn time(name: &str, mut ask: impl FnMut()) {
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let started = Instant::now();
        ask();
        best = best.min(started.elapsed());
    }
    println!("{name:<48} {:>9.1} ms", best.as_secs_f64() * 1e3);
}
