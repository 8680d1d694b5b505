//! Memory over time by branches of the call tree.

use std::path::Path;

use heapline_formats::{Options, Reader};
use heapline_profile::query::Pattern;
use heapline_profile::reports::{Measure, Series, SeriesOptions, series};
use heapline_profile::{Estimator, Look, Profile, Query, Scope, StoreOptions};

fn load(trace: Vec<u8>) -> Profile {
    let mut reader = Reader::new(std::io::Cursor::new(trace), Options::default()).unwrap();
    Profile::load(&mut reader, StoreOptions::default()).unwrap()
}

fn fixture(path: &str) -> Profile {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    load(std::fs::read(fixtures.join(path)).unwrap())
}

fn curve(profile: &Profile, query: &str, options: &SeriesOptions) -> Series {
    let query = Query::parse(query).unwrap();
    series(&Scope::new(profile, &query, Estimator::default()), options).unwrap()
}

fn assert_same(left: &[f64], right: &[f64], of: &str) {
    assert_eq!(left.len(), right.len());
    for (left, right) in left.iter().zip(right) {
        assert!(
            (left - right).abs() <= 1e-6 * left.abs().max(1.0),
            "{of}: {left} and {right}"
        );
    }
}

/// The branches add up to the total, and each is what its query selects.
#[test]
fn branches_are_what_their_queries_select() {
    let looks = [
        Look::default(),
        Look {
            all_code: true,
            ..Look::default()
        },
        Look {
            split_anonymous: true,
            ..Look::default()
        },
        Look {
            hide: vec![Pattern::parse("Mix.*").unwrap()],
            ..Look::default()
        },
    ];
    let measures = [
        Measure::LiveBytes,
        Measure::AllocatedBytes,
        Measure::PromotedBytes,
    ];
    let mut profiles = vec![
        fixture("mix-ocaml53/trace.ctf"),
        fixture("mix-ocaml413/trace.ctf"),
    ];
    // Stacks in which functions call each other and themselves.
    profiles
        .extend((0..8).map(|seed| load(heapline_testkit::generate::random_stacks(2_000, seed))));
    let mut checked = 0;
    for profile in &profiles {
        for look in &looks {
            for measure in measures {
                let options = SeriesOptions {
                    measure,
                    branches: true,
                    points: Some(20),
                    look: look.clone(),
                    ..SeriesOptions::default()
                };
                let all = curve(profile, "", &options);
                let mut sum = vec![0.0; all.total.values.len()];
                for group in &all.groups {
                    for (sum, value) in sum.iter_mut().zip(&group.line.values) {
                        *sum += value;
                    }
                    let label = &group.label;
                    assert_eq!(group.query.is_none(), group.is_other, "{label:?}, {look:?}");
                    let Some(query) = &group.query else {
                        continue;
                    };
                    let whole = SeriesOptions {
                        branches: false,
                        ..options.clone()
                    };
                    let same = curve(profile, query, &whole).total;
                    assert_same(&group.line.values, &same.values, query);
                    checked += 1;
                }
                if !all.groups.is_empty() {
                    assert_same(&sum, &all.total.values, "sum");
                }
            }
        }
    }
    assert!(checked > 200, "{checked}");
}

/// Half of the memory of a program is in no layer of its own if it is split by function, and nearly all in one of its branches.
#[test]
fn little_is_in_no_branch() {
    for path in ["mix-ocaml53/trace.ctf", "mix-ocaml413/trace.ctf"] {
        let options = SeriesOptions {
            branches: true,
            ..SeriesOptions::default()
        };
        let series = curve(&fixture(path), "", &options);
        let sum = |values: &[f64]| values.iter().sum::<f64>();
        let other = series.groups.iter().filter(|group| group.is_other);
        let other: f64 = other.map(|group| sum(&group.line.values)).sum();
        let total = sum(&series.total.values);
        assert!(other < 0.1 * total, "{path}: {other} of {total}");
        assert!(series.groups.len() > 4, "{path}");
    }
}
