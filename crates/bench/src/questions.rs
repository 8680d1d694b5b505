//! Query times of a loaded profile.

use std::hint::black_box;
use std::time::{Duration, Instant};

use heapline_profile::reports::{
    self, HotspotOptions, LeakOptions, SeriesOptions, StatsOptions, SummaryOptions, TreeOptions,
};
use heapline_profile::{Estimator, GroupBy, Profile, Query, Scope};

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
    for (name, bottom_up) in [("tree", false), ("tree, bottom-up", true)] {
        let options = TreeOptions {
            bottom_up,
            ..TreeOptions::default()
        };
        time(name, || {
            black_box(reports::tree(&scope, &options));
        });
    }
    let options = SeriesOptions {
        by: Some(GroupBy::Function),
        ..SeriesOptions::default()
    };
    time("series by function", || {
        let _ = black_box(reports::series(&scope, &options));
    });
    time("summary", || {
        black_box(reports::summary(&scope, &SummaryOptions::default()));
    });
    time("stats", || {
        black_box(reports::stats(&scope, &StatsOptions::default()));
    });
    time("leaks", || {
        black_box(reports::leaks(&scope, &LeakOptions::default(), None));
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
