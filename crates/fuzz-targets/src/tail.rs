//! Any bytes as a trace and its tail: reading both ends, and gives no more than there is.

use std::io::{Cursor, Read};
use std::sync::Arc;

use heapline_trace::tail::layout::{MAGIC, PAGE, SLOT, Word};
use heapline_trace::tail::{Completion, Overlay, Tail};
use heapline_trace::{Options, Reader};

/// Runs the target on an input.
pub fn run(bytes: &[u8]) {
    // A tail is mostly zeros: the input says only what else is where in it.
    let Some((&[a, b, how], bytes)) = bytes.split_first_chunk() else {
        return;
    };
    let (trace, mut pieces) =
        bytes.split_at(bytes.len().min(usize::from(u16::from_le_bytes([a, b]))));
    let mut tail = vec![0; PAGE + usize::from(how % 4) * SLOT];
    for (word, value) in [
        (Word::Magic, MAGIC),
        (Word::Version, 1 + u64::from(how >> 6) % 3),
        (Word::State, 1),
        (Word::Lanes, u64::from(how % 4)),
    ] {
        tail[word as usize * 8..][..8].copy_from_slice(&value.to_le_bytes());
    }
    while let Some((&[a, b, c, len], rest)) = pieces.split_first_chunk() {
        let at = u32::from_le_bytes([a, b, c, 0]) as usize % tail.len();
        let len = rest.len().min(usize::from(len)).min(tail.len() - at);
        tail[at..at + len].copy_from_slice(&rest[..len]);
        pieces = &rest[len..];
    }
    let size = tail.len();
    let Ok(tail) = Tail::read(&mut Cursor::new(tail)) else {
        return;
    };
    let _ = tail.belongs_to(trace);
    let completion = Completion::new(&tail, trace);
    for (_, bytes) in completion.writes(trace.len() as u64) {
        assert!(bytes.len() <= size);
    }
    let mut whole = Vec::new();
    let mut overlay = Overlay::new(trace, Arc::new(completion));
    overlay.read_to_end(&mut whole).unwrap();
    assert!(whole.len() <= trace.len() + size);
    if let Ok(mut reader) = Reader::new(&whole[..], Options::new()) {
        let _ = reader.for_each(|_, _| ());
    }
}
