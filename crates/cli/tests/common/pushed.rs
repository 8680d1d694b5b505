//! The profiles that were pushed to a server as pprof.

use std::io::Read;

use flate2::read::GzDecoder;
use heapline_export::pprof::proto::Profile;
use heapline_testkit::collector::Received;
use prost::Message;

/// Blocks and bytes.
pub(crate) type Sums = [i64; 2];

/// Allocated memory of all profiles, and live memory of the last one. Between profiles there are no gaps.
pub(crate) fn sums(received: &[Received]) -> (Sums, Sums) {
    let (mut allocated, mut live, mut end) = ([0, 0], [0, 0], None);
    for request in received {
        let mut body = Vec::new();
        let mut gzip = GzDecoder::new(&request.body[..]);
        gzip.read_to_end(&mut body).unwrap();
        let profile = Profile::decode(&body[..]).unwrap();
        assert!(end.is_none_or(|end| profile.time_nanos == end), "no gap");
        end = Some(profile.time_nanos + profile.duration_nanos);
        let sum = |column: usize| profile.sample.iter().map(|s| s.value[column]).sum::<i64>();
        allocated = [allocated[0] + sum(0), allocated[1] + sum(1)];
        live = [sum(2), sum(3)];
    }
    (allocated, live)
}

/// Compares sums with those of a report. Each of some stacks is rounded once, however many profiles there are.
pub(crate) fn assert_close(sums: Sums, reported: [f64; 2], rounded: f64) {
    for (sum, reported) in sums.into_iter().zip(reported) {
        assert!((sum as f64 - reported).abs() < rounded, "{sum} {reported}");
    }
}
