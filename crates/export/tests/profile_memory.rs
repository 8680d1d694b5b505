//! Stacks whose text would fill the memory do not, in any format.
//!
//! One test, so that what it measures is its own: the most memory that this process ever had.

use std::io::sink;

use heapline_export::pprof::pprof;
use heapline_export::{Leaf, SvgOptions, collapsed, csv, firefox, parquet, speedscope, svg};
use heapline_formats::{Options, Reader};
use heapline_profile::{Estimator, Profile, Query, Recursion, Scope, StoreOptions};
use heapline_testkit::{generate, peak_memory};
use heapline_trace::{Block, Frame, Source, Writer};

#[test]
fn deep_stacks_of_long_names_are_written_as_they_are_made() {
    let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
    let block = Block {
        length: 1,
        samples: 1,
        source: Source::Minor,
    };
    // Two functions with names of 2000 bytes that call each other 100,000 times: 200 MB of text
    // for each of some stacks.
    let mut stack = [7, 8].repeat(50_000);
    for id in 0..5 {
        stack.pop();
        writer
            .alloc(0, id, id, block, &stack, |code, frames| {
                frames.push(Frame {
                    file: b"f.ml",
                    name: code.to_string().repeat(2000).as_bytes(),
                    line: 1,
                    start_char: 0,
                    end_char: 1,
                });
            })
            .unwrap();
    }
    let bytes = writer.finish().unwrap();
    let bytes = std::io::Cursor::new(bytes.clone());
    let mut reader = Reader::new(bytes, Options::default()).unwrap();
    let options = StoreOptions {
        recursion: Recursion::OnDemand,
    };
    let profile = Profile::load(&mut reader, options).unwrap();
    let profile = profile.with_recursion();
    let scope = Scope::new(profile, &Query::default(), Estimator::default());
    let mut deepest = 0;
    scope.for_each_block(|block| deepest = deepest.max(profile.stack(block.stack).len()));
    assert_eq!(deepest, stack.len() + 4);

    let before = peak_memory().unwrap_or(0);
    pprof(&scope, profile.end(), &mut sink()).unwrap();
    collapsed(&scope, Leaf::Site, &mut sink()).unwrap();
    svg(&scope, &SvgOptions::default(), &mut sink()).unwrap();
    speedscope(&scope, None, Leaf::Site, &mut sink()).unwrap();
    firefox(&scope, Leaf::Site, &mut sink()).unwrap();
    parquet::blocks(&scope, sink()).unwrap();
    parquet::stacks(&scope, sink()).unwrap();
    csv(&scope, &mut sink()).unwrap();
    let used = peak_memory().unwrap_or(0) - before;
    assert!(used < 150, "{used} MiB");
}
