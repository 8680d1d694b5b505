//! Traces made to use up memory or time do not.
//!
//! One test, so that what it measures is its own: the most memory that this process ever had.

use std::time::{Duration, Instant};

use heapline_testkit::{generate, peak_memory};
use heapline_trace::{Options, Reader, Writer};

/// A packet of version 3 with these events and so many allocations.
fn packet(domain: u16, allocations: u64, events: &[u8]) -> Vec<u8> {
    let info = generate::info();
    let mut bytes = Vec::new();
    bytes.extend(0xc1fc_1fc1_u32.to_le_bytes());
    bytes.extend(
        u32::try_from((68 + events.len()) * 8)
            .unwrap()
            .to_le_bytes(),
    );
    bytes.extend(info.start_time.to_le_bytes());
    bytes.extend(info.start_time.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(3_u16.to_le_bytes());
    bytes.extend(info.pid.to_le_bytes());
    bytes.extend(domain.to_le_bytes());
    bytes.extend([0xff, 0xff]);
    bytes.extend([0; 10]);
    bytes.extend(0_u64.to_le_bytes());
    bytes.extend(allocations.to_le_bytes());
    bytes.extend(events);
    bytes
}

/// An allocation in the long form, with this common prefix and these code words.
fn alloc(prefix: u32, words: &[u8], count: u16) -> Vec<u8> {
    let low = u32::try_from(generate::info().start_time & 0x1ff_ffff).unwrap();
    let mut bytes = (2 << 25 | low).to_le_bytes().to_vec();
    bytes.extend([3, 1, 0, 254]);
    bytes.extend(prefix.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend(words);
    bytes
}

/// One packet for each domain that there can be.
fn domain_flood() -> Vec<u8> {
    let events = alloc(0, &[0b11, 0, 1, 2, 3, 4, 5, 6, 7, 8], 1);
    (0..=u16::MAX)
        .flat_map(|domain| packet(domain, 1, &events))
        .collect()
}

/// Stacks that grow by 256 frames with every three bytes.
fn stack_bomb() -> Vec<u8> {
    let words = 10_000;
    let word = [0b10, 0, 255];
    let mut bytes = Vec::new();
    for packet_number in 0..60 {
        let prefix = packet_number * u32::from(words) * 256;
        bytes.extend(packet(
            0,
            1,
            &alloc(prefix, &word.repeat(usize::from(words)), words),
        ));
    }
    // And again for domains that each keep a deep one.
    for domain in 1..40 {
        bytes.extend(packet(
            domain,
            1,
            &alloc(0, &word.repeat(usize::from(words)), words),
        ));
    }
    bytes
}

/// Packets that claim to be far larger than they are.
fn size_bomb() -> Vec<u8> {
    let mut huge = packet(0, 0, &[]);
    huge[4..8].copy_from_slice(&(8 * (1_u32 << 24)).to_le_bytes());
    huge.repeat(20_000)
}

/// Nothing but beginnings of packets.
fn magic_bomb() -> Vec<u8> {
    0xc1fc_1fc1_u32.to_le_bytes().repeat(1_000_000)
}

#[test]
fn hostile_traces_use_bounded_memory_and_time() {
    let start = Writer::new(Vec::new(), &generate::info())
        .unwrap()
        .finish()
        .unwrap();
    let bombs = [
        ("domains", domain_flood(), 150),
        ("stacks", stack_bomb(), 250),
        ("sizes", size_bomb(), 100),
        ("magic", magic_bomb(), 50),
    ];
    for (name, bomb, limit) in bombs {
        let bytes = [start.clone(), bomb].concat();
        let before = peak_memory().unwrap_or(0);
        let started = Instant::now();
        for stacks in [true, false] {
            let mut reader = Reader::new(&bytes[..], Options::new().stacks(stacks)).unwrap();
            reader.for_each(|_, _| ()).unwrap();
        }
        let used = peak_memory().unwrap_or(0) - before;
        assert!(
            used < limit,
            "{name}: {used} MiB for a trace of {} KiB",
            bytes.len() >> 10
        );
        // Not a measurement: minutes would mean that the work is not bounded by the input.
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{name}: {:?}",
            started.elapsed()
        );
        eprintln!(
            "{name}: {used} MiB, {:?}, {} KiB",
            started.elapsed(),
            bytes.len() >> 10
        );
    }
}
