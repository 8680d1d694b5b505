//! Traces are read alike, however their bytes arrive.

use std::io::{Read, Write};

use heapline_testkit::generate::Program;
use heapline_testkit::harm::{harm, packets};
use heapline_testkit::{OwnedEvent, OwnedTrace, property_config};
use heapline_trace::{Damage, Decoder, Error, FlawKind, Options, Reader, Step};
use proptest::prelude::*;

fn trace() -> Vec<u8> {
    Program {
        allocations: 4000,
        domains: 2,
        ..Program::default()
    }
    .trace()
}

/// Decodes a trace whose bytes come in pieces of these sizes, over and over.
fn in_pieces(mut bytes: &[u8], sizes: &[usize]) -> (Vec<OwnedEvent>, Damage) {
    let mut decoder = Decoder::new(Options::new());
    let mut events = Vec::new();
    let mut sizes = sizes.iter().cycle();
    loop {
        let step = decoder
            .next_packet(|event, locations| events.push(OwnedEvent::new(&event, locations)))
            .unwrap();
        match step {
            Step::Packet(_) => {}
            Step::End => return (events, decoder.damage().clone()),
            Step::NeedInput if bytes.is_empty() => decoder.finish(),
            Step::NeedInput => {
                let n = (*sizes.next().unwrap()).min(bytes.len());
                decoder.push(&bytes[..n]);
                bytes = &bytes[n..];
            }
        }
    }
}

proptest! {
    #![proptest_config(property_config(200))]

    #[test]
    fn pieces_make_no_difference(
        seed in 0..1000_u64,
        sizes in prop::collection::vec(prop_oneof![1..100_usize, 1..100_000_usize], 1..5),
    ) {
        // Damaged, because that is where the decoder has to look ahead.
        let bytes = harm(&trace(), seed).bytes;
        let whole = in_pieces(&bytes, &[bytes.len()]);
        prop_assert!(in_pieces(&bytes, &sizes) == whole);
    }
}

#[test]
fn compressed_traces_are_opened_as_they_are() {
    let program = Program {
        allocations: 60_000,
        ..Program::default()
    };
    let bytes = program.trace();
    let expected = OwnedTrace::read(&bytes, Options::new()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let gzipped = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&bytes).unwrap();
        encoder.finish().unwrap()
    };
    let zstandard = zstd::encode_all(&bytes[..], 1).unwrap();
    for (name, data) in [
        ("trace.ctf", &bytes),
        ("trace.ctf.gz", &gzipped),
        ("trace.ctf.zst", &zstandard),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, data).unwrap();
        let mut reader = Reader::open(&path, Options::new().strict(true)).unwrap();
        assert!(
            OwnedTrace::read_rest(&mut reader).unwrap() == expected,
            "{name}"
        );
    }
    // A compressed trace that is cut off gives what there is.
    for data in [gzipped, zstandard] {
        let half = data[..data.len() / 2].to_vec();
        let mut reader =
            Reader::from_source(std::io::Cursor::new(half.clone()), Options::new()).unwrap();
        let part = OwnedTrace::read_rest(&mut reader).unwrap();
        assert!(part.events.len() > expected.events.len() / 4);
        assert_eq!(part.events[..], expected.events[..part.events.len()]);
        let flaws = reader.damage().flaws();
        assert!(
            matches!(flaws[0].kind, FlawKind::BrokenCompression { .. }),
            "{flaws:?}"
        );
        let strict = Reader::from_source(std::io::Cursor::new(half), Options::new().strict(true))
            .and_then(|mut reader| reader.for_each(|_, _| ()));
        assert!(matches!(strict, Err(Error::Damaged(_))), "{strict:?}");
    }
}

#[test]
fn an_eager_decoder_does_not_wait_for_the_next_packet() {
    let bytes = trace();
    let expected = OwnedTrace::read(&bytes, Options::new()).unwrap();
    let mut decoder = Decoder::new(Options::new().eager(true));
    let mut events = Vec::new();
    for packet in packets(&bytes) {
        // Half a packet is not there yet; a whole one is there at once.
        let (start, end) = (packet.start, packet.end);
        let mut next = |decoder: &mut Decoder| {
            decoder
                .next_packet(|event, locations| events.push(OwnedEvent::new(&event, locations)))
                .unwrap()
        };
        decoder.push(&bytes[start..start + 10]);
        assert_eq!(next(&mut decoder), Step::NeedInput);
        decoder.push(&bytes[start + 10..end]);
        let Step::Packet(packet) = next(&mut decoder) else {
            panic!("the packet that ends at {end} is not there");
        };
        assert_eq!(packet.end_offset, end as u64);
        assert_eq!(next(&mut decoder), Step::NeedInput);
    }
    assert!(events == expected.events);
    assert!(decoder.damage().is_empty());
}

#[test]
fn interrupted_and_short_reads_are_no_end() {
    struct Hesitant<'a>(&'a [u8], u32);
    impl Read for Hesitant<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.1 += 1;
            if self.1.is_multiple_of(3) {
                return Err(std::io::ErrorKind::Interrupted.into());
            }
            let n = buffer.len().min(777);
            self.0.read(&mut buffer[..n])
        }
    }
    let bytes = trace();
    let mut reader = Reader::new(Hesitant(&bytes, 0), Options::new().strict(true)).unwrap();
    let read = OwnedTrace::read_rest(&mut reader).unwrap();
    assert!(read == OwnedTrace::read(&bytes, Options::new()).unwrap());
}

#[test]
fn what_is_no_trace_is_told_apart() {
    let error = |bytes: &[u8]| {
        Reader::from_source(std::io::Cursor::new(bytes.to_vec()), Options::new())
            .unwrap_err()
            .to_string()
    };
    let cases: [(&[u8], &str); 6] = [
        (b"", "the trace is empty"),
        (b"\x7fELF\x02\x01\x01", "found an ELF program or library"),
        (
            b"hello world, this is text",
            "found text beginning with \"hello world, thi\"",
        ),
        (b"\x00\x01\x02\x03", "found the bytes 00 01 02 03"),
        (b"{\"a\": 1}", "found JSON or other text"),
        (b"\xc1\x1f", "the file ends inside it"),
    ];
    for (bytes, expected) in cases {
        let error = error(bytes);
        assert!(error.contains(expected), "{error}");
    }
    let mut newer = trace();
    newer[28] = 9;
    assert!(error(&newer).contains("format version 9: versions 1 to 3 are supported"));
}
