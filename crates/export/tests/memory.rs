//! A trace whose text would fill the memory does not.
//!
//! One test, so that what it measures is its own: the most memory that this process ever had.

use heapline_export::dump::{Format, dump};
use heapline_testkit::{generate, peak_memory};
use heapline_trace::{Block, Frame, Options, Reader, Source, Writer};

/// Found in review: a line of text can be a million times as long as what the trace says.
#[test]
fn long_lines_are_not_collected_in_memory() {
    let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
    let block = Block {
        length: 1,
        samples: 1,
        source: Source::Minor,
    };
    // A function with a name of 1000 bytes that calls itself 300,000 times, in several domains.
    let stack = vec![7; 300_000];
    for domain in 0..5 {
        writer
            .alloc(domain, 1, u64::from(domain), block, &stack, |_, frames| {
                frames.push(Frame {
                    file: b"f.ml",
                    name: "x".repeat(1000).as_bytes(),
                    line: 1,
                    start_char: 0,
                    end_char: 1,
                });
            })
            .unwrap();
    }
    let bytes = writer.finish().unwrap();
    assert!(bytes.len() < 100_000);
    let before = peak_memory().unwrap_or(0);
    for format in [Format::Memtrace, Format::Csv, Format::JsonLines] {
        let mut reader = Reader::new(&bytes[..], Options::new()).unwrap();
        dump(&mut reader, format, &mut std::io::sink()).unwrap();
    }
    let used = peak_memory().unwrap_or(0) - before;
    assert!(used < 100, "{used} MiB");
}
