//! Any trace and any query: loading and every report return, and their sums agree.
//!
//! The first line is the query, the rest the trace.

use heapline_formats::{Options, Reader};
use heapline_profile::reports::{self, TreeOptions};
use heapline_profile::{Estimator, Profile, Query, Recursion, Scope, StoreOptions};

/// Runs the target on an input.
pub fn run(bytes: &[u8]) {
    let end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(0);
    let query = Query::parse(&String::from_utf8_lossy(&bytes[..end])).unwrap_or_default();
    let trace = bytes.get(end + 1..).unwrap_or_default();
    let Ok(mut reader) = Reader::new(std::io::Cursor::new(trace.to_vec()), Options::default())
    else {
        return;
    };
    let Ok(profile) = Profile::load(
        &mut reader,
        StoreOptions {
            recursion: Recursion::OnDemand,
        },
    ) else {
        return;
    };
    let scope = Scope::new(&profile, &query, Estimator::default());
    let kept = scope.clone().keep_recursion(true);
    let total = scope.total().bytes.value;
    let agrees = |sum: f64| assert!((sum - total).abs() <= 1e-6 * total.abs(), "{sum} {total}");
    for bottom_up in [false, true] {
        let options = TreeOptions {
            bottom_up,
            ..TreeOptions::default()
        };
        let nodes = reports::tree(&scope, &options).nodes;
        let roots = nodes.iter().filter(|node| node.parent.is_none());
        agrees(roots.map(|node| node.total.bytes.value).sum());
        let nodes = reports::tree(&kept, &options).nodes;
        let roots = nodes.iter().filter(|node| node.parent.is_none());
        agrees(roots.map(|node| node.total.bytes.value).sum());
    }
    drop(reports::info(&profile));
    let table = reports::hotspots(&scope, &Default::default());
    agrees(table.total.allocated.bytes.value);
    drop(reports::summary(&scope, &Default::default()));
    let series = reports::series(&scope, &Default::default());
    let series = series.expect("the whole run is a window");
    assert!(series.total.high.iter().all(|value| value.is_finite()));
    drop(reports::stats(&scope, &Default::default()));
    drop(reports::peak(&scope, &Default::default()));
    drop(reports::blocks(&scope, &Default::default()));
    drop(reports::leaks(&scope, &Default::default(), None));
    drop(reports::diff(&scope, &scope.at_end(), &Default::default()));
    drop(reports::alloc_stats(&profile));
}
