//! Whatever can be read can be written, and both readers take what was written.

use heapline_testkit::{OwnedTrace, plain};
use heapline_trace::{Options, Reader, Writer};

/// Runs the target on an input.
pub fn run(bytes: &[u8]) {
    let Ok(mut reader) = Reader::new(bytes, Options::new()) else {
        return;
    };
    // Domains of their own time may be given up, and ids beyond all bounds be made up: neither
    // is for this target.
    let mut sane = true;
    let mut depth = 0;
    let Ok(mut writer) = Writer::new(Vec::new(), reader.info()) else {
        return;
    };
    let _ = reader.for_each(|event, locations| {
        sane &= event.id() < 1 << 62 && event.time() < 1 << 50;
        if let heapline_trace::Event::Alloc(alloc) = event {
            depth += alloc.stack.frames().len();
        }
        if sane && depth < 1_000_000 {
            writer.event(&event, locations).expect("memory takes all");
        }
    });
    if !sane
        || depth >= 1_000_000
        || writer.shortened_stacks() > 0
        || reader.info().start_time > 1 << 50
    {
        return;
    }
    let written = writer.finish().expect("memory takes all");
    let Ok(read) = OwnedTrace::read(bytes, Options::new()) else {
        return;
    };
    let plain = plain::read(&written).expect("the plain reader takes it");
    let strict = OwnedTrace::read(&written, Options::new().strict(true))
        .expect("and so does the strict one");
    assert!(plain == strict);
    assert!(plain.comparable() == read.comparable());
}
