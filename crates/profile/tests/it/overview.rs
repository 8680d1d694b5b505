//! The numbers of an overview, on traces and on programs whose truth is known.

#![expect(clippy::float_cmp, reason = "what is exact is to be exact")]

use heapline_formats::{Options, Reader};
use heapline_profile::reports::{self, Overview};
use heapline_profile::{Estimate, Profile, StoreOptions};
use heapline_testkit::fixtures;
use heapline_trace::{Block, Source, TraceInfo, Writer};

fn overview(bytes: &[u8]) -> Overview {
    let options = Options {
        stacks: false,
        ..Options::default()
    };
    let mut reader = Reader::new(std::io::Cursor::new(bytes.to_vec()), options).unwrap();
    reports::info(&Profile::load(&mut reader, StoreOptions::default()).unwrap())
}

fn info(rate: f64) -> TraceInfo {
    TraceInfo {
        sample_rate: rate,
        word_size: 64,
        executable_name: "program".into(),
        host_name: "host".into(),
        ocaml_runtime_params: "s=262144".into(),
        seed: None,
        pid: 1,
        start_time: 0,
        initial_domain: 0,
        context: None,
    }
}

#[test]
fn a_domain_that_is_faster_to_write_may_tell_of_blocks_that_are_still_to_come() {
    let mut writer = Writer::new(Vec::new(), &info(1.0)).unwrap();
    // Found dead by domain 0, whose packet is the first; nobody ever allocates block 9.
    writer.promote(0, 30, 1).unwrap();
    writer.collect(0, 40, 1).unwrap();
    writer.collect(0, 40, 2).unwrap();
    writer.collect(0, 50, 9).unwrap();
    for id in [1, 2] {
        let block = Block {
            length: 3,
            samples: 4,
            source: Source::Minor,
        };
        writer.alloc(1, 10, id, block, &[], |_, _| ()).unwrap();
    }
    let overview = overview(&writer.finish().unwrap());
    assert_eq!(overview.bytes.promoted, Estimate::exact(32.0));
    assert_eq!(overview.bytes.collected, Estimate::exact(64.0));
    assert_eq!(overview.bytes.live_at_end, Estimate::exact(0.0));
    assert_eq!(overview.events.promotions, 1);
    assert_eq!(overview.events.collections, 3);
    assert_eq!(overview.events.unmatched, 1);
}

#[test]
fn every_block_is_counted_once_and_exactly_at_rate_one() {
    let mut writer = Writer::new(Vec::new(), &info(1.0)).unwrap();
    let mut alloc = |id, length, source| {
        let samples = length + u64::from(source != Source::External);
        let block = Block {
            length,
            samples,
            source,
        };
        writer.alloc(0, 10 * id, id, block, &[], |_, _| ()).unwrap();
    };
    alloc(0, 1, Source::Minor);
    alloc(1, 3, Source::Minor);
    alloc(2, 999, Source::Major);
    alloc(3, 100_000_000, Source::External);
    writer.promote(0, 40, 0).unwrap();
    writer.collect(0, 50, 0).unwrap();
    writer.collect(0, 60, 3).unwrap();
    let overview = overview(&writer.finish().unwrap());

    let exact = |words: f64| Estimate::exact(8.0 * words);
    assert!(overview.is_exact);
    assert_eq!(overview.bytes.minor, exact(6.0));
    assert_eq!(overview.bytes.major, exact(1000.0));
    assert_eq!(overview.bytes.external, exact(1e8));
    assert_eq!(overview.bytes.allocated, exact(1006.0 + 1e8));
    assert_eq!(overview.bytes.promoted, exact(2.0));
    assert_eq!(overview.bytes.collected, exact(2.0 + 1e8));
    assert_eq!(overview.bytes.live_at_end, exact(1004.0));
    assert_eq!(overview.blocks_allocated, Estimate::exact(4.0));
    assert_eq!(overview.promoted_percent, Some(100.0 * 2.0 / 6.0));
    assert_eq!(overview.largest_words, 100_000_000);
    let classes: Vec<u64> = overview
        .size_classes
        .iter()
        .map(|class| class.sampled_blocks)
        .collect();
    assert_eq!(classes, [2, 0, 0, 1, 1]);
    assert_eq!(
        (overview.events.allocations(), overview.events.unmatched),
        (4, 0)
    );
    assert!((overview.duration - 60e-6).abs() < 1e-12);
}

/// The trace of a Rust program that allocated blocks of 1, 8 and 1001 bytes, with `unit` bytes as
/// the unit of lengths.
fn rust_program(unit: u64) -> Overview {
    let info = TraceInfo {
        word_size: u8::try_from(8 * unit).unwrap(),
        ocaml_runtime_params: String::new(),
        seed: None,
        ..info(1.0)
    };
    let mut writer = Writer::new(Vec::new(), &info).unwrap();
    for (id, size) in [1_u64, 8, 1001].into_iter().enumerate() {
        let id = id as u64;
        let block = Block {
            length: size.div_ceil(unit),
            samples: size.div_ceil(unit),
            source: Source::External,
        };
        writer.alloc(0, id, id, block, &[], |_, _| ()).unwrap();
    }
    writer.collect(0, 9, 2).unwrap();
    overview(&writer.finish().unwrap())
}

#[test]
fn sizes_of_rust_programs_are_bytes() {
    let overview = rust_program(1);
    assert_eq!(overview.trace.runtime, "native");
    assert_eq!((overview.events.native, overview.events.external), (3, 0));
    assert_eq!(overview.bytes.native, Estimate::exact(1010.0));
    assert_eq!(overview.bytes.external, Estimate::exact(0.0));
    assert_eq!(overview.bytes.live_at_end, Estimate::exact(9.0));
    assert_eq!(overview.largest_words, 1001);
}

#[test]
fn traces_of_rust_programs_that_were_written_in_words_read_as_before() {
    let overview = rust_program(8);
    assert_eq!(overview.trace.runtime, "OCaml");
    assert_eq!((overview.events.native, overview.events.external), (0, 3));
    assert_eq!(overview.bytes.external, Estimate::exact(8.0 * 128.0));
    assert_eq!(overview.bytes.native, Estimate::exact(0.0));
    assert_eq!(overview.bytes.live_at_end, Estimate::exact(16.0));
    assert_eq!(overview.largest_words, 126);
}

#[test]
fn blocks_that_the_trace_does_not_have_are_counted_apart() {
    let mut writer = Writer::new(Vec::new(), &info(0.5)).unwrap();
    let block = Block {
        length: 2,
        samples: 1,
        source: Source::Minor,
    };
    writer.alloc(0, 0, 5, block, &[], |_, _| ()).unwrap();
    writer.promote(0, 1, 4).unwrap();
    writer.collect(0, 1, 3).unwrap();
    writer.collect(0, 1, 5).unwrap();
    writer.collect(0, 1, 5).unwrap();
    let overview = overview(&writer.finish().unwrap());
    assert_eq!(overview.events.unmatched, 3);
    assert_eq!(overview.bytes.live_at_end.value, 0.0);
    assert_eq!(overview.bytes.promoted.value, 0.0);
}

#[test]
fn an_empty_trace_has_no_odd_numbers() {
    let overview = overview(&std::fs::read(fixtures::folder().join("odd/empty.ctf")).unwrap());
    assert_eq!(overview.events.allocations(), 0);
    assert_eq!(overview.promoted_percent, None);
    let json = serde_json::to_string(&overview).unwrap();
    assert!(!json.contains("null,\"error\""), "not a number: {json}");
}

#[test]
fn domains_are_all_seen() {
    let overview =
        overview(&std::fs::read(fixtures::folder().join("generated/domains.ctf")).unwrap());
    assert_eq!(overview.domains, [0, 1, 2, 3]);
    assert_eq!(overview.events.allocations(), 2000);
}
