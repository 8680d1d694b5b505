//! Any Spacetime profile: it is read or refused, what it prints is bounded by it, and sums agree.

use std::io::{Cursor, sink};

use heapline_formats::spacetime::{PrintMode, Series};
use heapline_formats::{Options, Reader};
use heapline_profile::{Estimator, Profile, Query, Scope, StoreOptions};

/// Runs the target on an input; returns true if it is a profile.
#[must_use]
pub fn run(bytes: &[u8]) -> bool {
    let input = || Cursor::new(bytes.to_vec());
    if let Ok(series) = Series::read(input(), Options::default()) {
        let last = series.snapshots().saturating_sub(1);
        for mode in [PrintMode::Words, PrintMode::Allocations, PrintMode::Calls] {
            series.print(mode, last, false, &mut sink()).unwrap();
        }
        series.compare(&series, &mut sink()).unwrap();
    }
    let Ok(mut reader) = Reader::new(input(), Options::default()) else {
        return false;
    };
    let Ok(profile) = Profile::load(&mut reader, StoreOptions::default()) else {
        return false;
    };
    let scope = Scope::new(&profile, &Query::default(), Estimator::default());
    let total = scope.total().bytes.value;
    for &(moment, _) in profile.snapshots() {
        assert!(scope.live_at(moment).total().bytes.value <= total);
    }
    true
}
