//! Large traces: read, written again, and read again.

use std::io::Read;

use heapline_testkit::fixtures;
use heapline_testkit::generate::Program;
use heapline_trace::{Event, Options, Reader, Writer};

/// How much there is in a trace.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    allocations: usize,
    events: usize,
    new_frames: usize,
    frames: usize,
}

/// Reads a trace strictly. Written again, it is not larger, and still flawless.
fn counts<R: Read>(mut reader: Reader<R>) -> Counts {
    let mut writer = Writer::new(Vec::new(), reader.info()).unwrap();
    let mut counts = Counts::default();
    reader
        .for_each(|event, locations| {
            counts.events += 1;
            if let Event::Alloc(alloc) = &event {
                counts.allocations += 1;
                counts.new_frames += alloc.stack.new_frames().len();
                counts.frames += alloc.stack.frames().len();
            }
            writer.event(&event, locations).unwrap();
        })
        .unwrap();
    let rewritten = writer.finish().unwrap();
    let size = reader.offset();
    assert!(
        rewritten.len() as u64 <= size,
        "{size} bytes became {}",
        rewritten.len()
    );
    let mut again = 0;
    let mut reader = Reader::new(&rewritten[..], Options::new().strict(true)).unwrap();
    reader.for_each(|_, _| again += 1).unwrap();
    assert_eq!(again, counts.events);
    counts
}

#[test]
fn a_large_generated_trace_is_read_and_written_again() {
    let program = Program {
        allocations: 300_000,
        ..Program::default()
    };
    let trace = program.trace();
    assert!(trace.len() > 4 << 20, "{} bytes", trace.len());
    let reader = Reader::new(&trace[..], Options::new().strict(true)).unwrap();
    let counts = counts(reader);
    assert_eq!(counts.allocations, 300_000);
    assert!(counts.events > 500_000, "{counts:?}");
    assert!(counts.frames > 2 * counts.new_frames, "{counts:?}");
}

/// A compiler at work, 67 MB.
#[test]
#[ignore = "needs the reference traces"]
fn the_large_reference_trace_has_the_numbers_known_of_it() {
    let path = fixtures::reference("own/ocamlopt-large/trace.ctf.zst");
    let reader = Reader::open(&path, Options::new().strict(true)).unwrap();
    let expected = Counts {
        allocations: 3_487_056,
        events: 7_353_975,
        new_frames: 15_152_663,
        frames: 435_545_176,
    };
    assert_eq!(counts(reader), expected);
}
