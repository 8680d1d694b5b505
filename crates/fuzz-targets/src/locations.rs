//! A valid trace whose names are any bytes: the location coder, with no header in the way.

use heapline_testkit::generate;
use heapline_trace::{Options, Reader, Writer};

/// Runs the target on an input.
pub fn run(events: &[u8]) {
    let info = generate::info();
    let Ok(mut bytes) = Writer::new(Vec::new(), &info).and_then(Writer::finish) else {
        unreachable!("memory takes all");
    };
    // A packet header like that of the first packet, for events that are all locations: their
    // heads are made, the rest is the fuzzer's.
    let mut packet = bytes[..68].to_vec();
    let low = (info.start_time & 0x1ff_ffff) as u32;
    for event in events.split(|&byte| byte == b'\n') {
        packet.extend((1 << 25 | low).to_le_bytes());
        packet.extend(event);
    }
    let size = (packet.len() * 8) as u32;
    packet[4..8].copy_from_slice(&size.to_le_bytes());
    bytes.extend(packet);
    let Ok(mut reader) = Reader::new(&bytes[..], Options::new()) else {
        unreachable!("the first packet is intact");
    };
    // Once it is out of step, it may take anything for events.
    if reader.for_each(|_, _| ()).is_err() {
        unreachable!("damage is no error");
    }
    let locations = reader.locations();
    for id in locations.ids() {
        for frame in locations.frames(id) {
            assert!(frame.line < 1 << 20 && frame.start_char < 1 << 8 && frame.end_char < 1 << 10);
        }
    }
}
