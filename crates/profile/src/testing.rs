//! Sources for unit tests.

use heapline_model::{Capabilities, Header, Runtime, Scheme};

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
