//! A recording by the test itself, which stands for a program that runs.

use std::path::Path;

use heapline_recorder::gaps::Unit;
use heapline_recorder::{Block, Frame, Options, Recorder, Source, TaggedCode};

/// The function that all blocks are allocated by.
pub(crate) const FUNCTION: &str = "Live.allocate";

/// Starts a recording.
pub(crate) fn record(trace: &Path, sample_rate: f64) -> &'static Recorder {
    Recorder::start(&Options {
        trace: trace.to_owned(),
        supervised: false,
        sample_rate,
        unit: Unit::Word,
        context: None,
        runtime_params: String::new(),
        max_size: None,
        max_allocated: None,
        seed: None,
        stack_depth: None,
        first_id: 0,
    })
    .unwrap()
}

/// Records so many blocks.
pub(crate) fn allocate(recorder: &Recorder, blocks: u64) {
    let block = Block {
        length: 3,
        samples: 1,
        source: Source::Minor,
    };
    let frame = Frame {
        file: b"live.ml",
        name: FUNCTION.as_bytes(),
        line: 1,
        start_char: 2,
        end_char: 3,
    };
    for _ in 0..blocks {
        let stack = [TaggedCode::new(7)];
        let id = recorder.alloc(0, block, &stack, |_, frames| frames.push(frame));
        id.expect("it is recorded");
    }
}
