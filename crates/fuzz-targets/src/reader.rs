//! Any bytes at all: the reader returns, and what it returns makes sense.

use std::collections::HashMap;

use heapline_trace::{Decoder, Event, LocationId, Options, Step};

/// Runs the target on an input.
pub fn run(bytes: &[u8]) {
    // The first byte decides how the rest is read.
    let Some((&how, bytes)) = bytes.split_first() else {
        return;
    };
    let options = Options::new()
        .stacks(how & 1 == 0)
        .strict(how & 2 != 0)
        .eager(how & 4 != 0)
        .partial_packets(how & 8 == 0);
    let mut decoder = Decoder::new(options);
    let mut chunks = bytes.chunks(1 << (how >> 4));
    let mut last_times = HashMap::new();
    let mut backwards = false;
    let mut stacks: HashMap<u16, Vec<LocationId>> = HashMap::new();
    loop {
        let step = decoder.next_packet(|event, locations| {
            let last = last_times.entry(event.domain()).or_insert(0);
            backwards |= event.time() < *last;
            *last = event.time();
            if let Event::Alloc(alloc) = event {
                let stack = stacks.entry(alloc.domain).or_default();
                stack.truncate(alloc.stack.shared());
                stack.extend(alloc.stack.new_frames());
                assert_eq!(
                    stack,
                    alloc.stack.frames(),
                    "the changes do not make the stack"
                );
                for &id in alloc.stack.new_frames() {
                    assert!(id.index() < locations.len());
                    locations.frames(id).for_each(drop);
                }
            }
        });
        match step {
            Ok(Step::Packet(_)) => {}
            Ok(Step::NeedInput) => match chunks.next() {
                Some(chunk) => decoder.push(chunk),
                None => decoder.finish(),
            },
            Ok(Step::End) => break,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                break;
            }
        }
    }
    let flaws = decoder.damage().flaws();
    assert!(!backwards, "time ran backwards");
    for flaw in flaws {
        assert!(flaw.offset <= bytes.len() as u64);
        assert!(!flaw.to_string().is_empty());
    }
}
