//! Sources and sampling parameters for unit tests.

use heapline_model::{Capabilities, Header, Runtime, Scheme};

use crate::sampling::Sampling;

/// The header of a source that has every block, with sizes in bytes.
pub(crate) fn exact_header() -> Header {
    Header {
        format: "test",
        format_version: 1,
        runtime: Runtime::Native,
        program: String::new(),
        host: String::new(),
        pid: 1,
        start_time: 0,
        seed: None,
        first_lane: 0,
        context: None,
        word_bytes: 1,
        scheme: Scheme::Exact,
        tells: Capabilities {
            lifetimes: true,
            promotions: true,
            gc_parameters: false,
            lanes: true,
            sizes: true,
        },
    }
}

/// Samples words of 8 bytes at a rate.
pub(crate) fn per_word(rate: f64) -> Sampling {
    let unit_bytes = 8;
    Sampling::new(Scheme::PerUnit { rate, unit_bytes }, unit_bytes)
}
