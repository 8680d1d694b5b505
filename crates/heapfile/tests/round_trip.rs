//! The reader reads all that the writer writes: plain, compressed, cut off and damaged.

use heapline_heapfile::{
    Block, Content, Edge, Folded, Nodes, ReadError, Reader, Section, Writer, compress,
    compress_with, put_delta, put_text, put_varint,
};
use heapline_testkit::heap::without_checksums;
use heapline_testkit::property_config;
use proptest::collection::vec;
use proptest::prelude::*;

type Owned = (Block, Vec<Edge>);

fn blocks() -> impl Strategy<Value = Vec<Owned>> {
    let tag = prop_oneof![
        Just(0),
        Just(245),
        Just(247),
        Just(252),
        Just(255),
        any::<u8>()
    ];
    let edge = (0..5_u64, prop_oneof![0..1000_u64, any::<u64>()]);
    let folded = (any::<u64>(), any::<u64>(), any::<u64>());
    let block = (
        1..100_u64,
        any::<u64>(),
        tag,
        any::<u64>(),
        vec(edge, 0..5),
        folded,
    );
    vec(block, 0..200).prop_map(|blocks| {
        let mut address = 0;
        blocks
            .into_iter()
            .map(
                |(gap, words, tag, detail, edges, (cells, others, folded))| {
                    address += gap;
                    let mut field = 0;
                    let edges = edges
                        .into_iter()
                        .map(|(gap, target)| {
                            field += gap + 1;
                            Edge { field, target }
                        })
                        .collect();
                    let detail = if matches!(tag, 247 | 252 | 255) {
                        detail
                    } else {
                        0
                    };
                    let folded = Folded {
                        cells,
                        others,
                        words: folded,
                    };
                    (
                        Block {
                            address,
                            words,
                            tag,
                            detail,
                            folded,
                        },
                        edges,
                    )
                },
            )
            .collect()
    })
}

fn write(blocks: &[Owned], per_section: usize) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, &[("pid", "7"), ("program", "é=1")]).unwrap();
    let mut nodes = Nodes::default();
    for (number, (block, edges)) in blocks.iter().enumerate() {
        nodes.push(block.address, block.words, block.tag, block.detail, edges);
        nodes.fold(block.folded);
        if number % per_section == 0 {
            writer.nodes(&mut nodes).unwrap();
        }
    }
    writer.nodes(&mut nodes).unwrap();
    writer.finish(&[(252, 3, 4)]).unwrap();
    file
}

fn read(file: &[u8]) -> Result<Vec<Owned>, ReadError> {
    let mut reader = Reader::new(file)?;
    let mut read = Vec::new();
    while let Some(content) = reader.next_section()? {
        match content {
            Content::Blocks(blocks) => {
                blocks.for_each(|block, edges| read.push((*block, edges.to_vec())))?;
            }
            Content::Meta(lines) => assert_eq!(lines, ["pid=7", "program=é=1"]),
            _ => {}
        }
    }
    Ok(read)
}

proptest! {
    #![proptest_config(property_config(200))]

    #[test]
    fn blocks_are_read_as_written(blocks in blocks(), per_section in 1..50_usize) {
        let file = write(&blocks, per_section);
        prop_assert_eq!(&read(&file).unwrap(), &blocks);
        let mut compressed = Vec::new();
        let written = compress(&file[..], &mut compressed).unwrap();
        prop_assert_eq!(written, compressed.len() as u64);
        prop_assert_eq!(&read(&compressed).unwrap(), &blocks);
        // Compressing twice changes nothing.
        let mut again = Vec::new();
        compress(&compressed[..], &mut again).unwrap();
        prop_assert_eq!(again, compressed);
    }

    #[test]
    fn snapshots_that_are_cut_off_are_incomplete(blocks in blocks(), cut in 1..2000_usize) {
        let file = write(&blocks, 20);
        let cut = file.len().saturating_sub(cut);
        let expected = cut;
        match read(&file[..cut]) {
            Err(ReadError::Incomplete { offset }) => prop_assert_eq!(offset, expected as u64),
            Err(ReadError::NotASnapshot) => prop_assert!(cut < 16),
            other => prop_assert!(false, "{:?}", other),
        }
        prop_assert!(compress(&file[..cut], Vec::new()).is_err());
    }

    #[test]
    fn damage_is_an_error_or_another_snapshot(
        blocks in blocks(), at in any::<prop::sample::Index>(), byte in any::<u8>()
    ) {
        let mut file = without_checksums(&write(&blocks, 20));
        prop_assert_eq!(&read(&file).unwrap(), &blocks);
        let at = at.index(file.len());
        file[at] = byte;
        // Not a panic.
        let Ok(mut reader) = Reader::new(&file[..]) else {
            return Ok(());
        };
        while let Ok(Some(content)) = reader.next_section() {
            if let Content::Blocks(blocks) = content {
                let _ = blocks.for_each(|_, _| ());
            }
        }
    }
}

#[test]
fn each_bit_that_changes_is_found() {
    let plain = heapline_testkit::heap::server_after(3).finish();
    let mut compressed = Vec::new();
    compress(&plain[..], &mut compressed).unwrap();
    let contents = |file: &[u8]| {
        let mut reader = Reader::new(file)?;
        let mut contents = Vec::new();
        while let Some(content) = reader.next_section()? {
            match content {
                Content::Blocks(blocks) => blocks.for_each(|_, _| ())?,
                other => contents.push(format!("{other:?}")),
            }
        }
        Ok::<_, ReadError>(contents)
    };
    for file in [plain, compressed] {
        contents(&file).unwrap();
        // Each bit of the small one would take long, and those within a section are alike.
        for bit in (0..file.len() * 8).step_by(if file.len() > 10_000 { 97 } else { 1 }) {
            let mut changed = file.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(contents(&changed).is_err(), "bit {bit}");
        }
    }
}

#[test]
fn all_sections_are_read_as_documented() {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, &[]).unwrap();
    let column = |numbers: &[u64]| {
        let mut column = Vec::new();
        for number in numbers {
            put_varint(&mut column, *number);
        }
        column
    };
    let deltas = |numbers: &[u64]| {
        let (mut column, mut last) = (Vec::new(), 0);
        for &number in numbers {
            put_delta(&mut column, last, number);
            last = number;
        }
        column
    };
    let texts = |texts: &[&str]| {
        let mut column = Vec::new();
        for text in texts {
            put_text(&mut column, text.as_bytes());
        }
        column
    };
    let mut section = |kind, items, columns: &[Vec<u8>]| {
        let columns: Vec<&[u8]> = columns.iter().map(Vec::as_slice).collect();
        writer.section(kind, items, &columns).unwrap();
    };
    section(
        Section::Roots,
        2,
        &[
            vec![2, 99],
            deltas(&[9, 5]),
            column(&[1, 2]),
            column(&[3, 4]),
        ],
    );
    section(
        Section::Frames,
        1,
        &[texts(&["f"]), texts(&["f.ml"]), column(&[7])],
    );
    section(
        Section::Ephemerons,
        2,
        &[
            deltas(&[9, 5]),
            deltas(&[0, 3]),
            column(&[2, 1]),
            deltas(&[4, 0, 8]),
        ],
    );
    section(
        Section::Facts,
        2,
        &[
            vec![3, 200],
            deltas(&[9, 5]),
            column(&[1, 1]),
            column(&[2, 2]),
        ],
    );
    section(
        Section::Symbols,
        1,
        &[vec![3], deltas(&[72]), texts(&["camlCache"])],
    );
    section(
        Section::Definitions,
        1,
        &[
            deltas(&[9]),
            column(&[1]),
            texts(&["table"]),
            texts(&["c.ml"]),
            column(&[12]),
        ],
    );
    // A column that this version does not know.
    section(
        Section::Sites,
        1,
        &[deltas(&[9]), column(&[40]), column(&[1]), vec![1, 2, 3]],
    );
    section(Section::Stacks, 1, &[texts(&["main"])]);
    writer.finish(&[(0, 1, 2)]).unwrap();

    let mut reader = Reader::new(&file[..]).unwrap();
    let mut read = Vec::new();
    while let Some(content) = reader.next_section().unwrap() {
        read.push(format!("{content:?}"));
    }
    assert_eq!(
        read,
        [
            "Meta([])",
            "Roots([Root { kind: Stack, target: 9, a: 1, b: 3 }, Root { kind: Other, target: 5, a: 2, b: 4 }])",
            "Frames([Frame { function: \"f\", file: \"f.ml\", line: 7 }])",
            "Ephemerons([Ephemeron { block: 9, data: 0, keys: [4, 0] }, \
             Ephemeron { block: 5, data: 3, keys: [8] }])",
            "Facts([Fact { kind: Hashtable, block: 9, a: 1, b: 2 }])",
            "Symbols([Symbol { kind: Module, address: 72, name: \"camlCache\" }])",
            "Definitions([Definition { module: 9, field: 1, name: \"table\", file: \"c.ml\", line: 12 }])",
            "Sites([Site { block: 9, number: 40, samples: 1 }])",
            "Stacks([\"main\"])",
            "End([Total { tag: 0, blocks: 1, words: 2 }])",
        ]
    );
}

#[test]
fn lengths_beyond_the_limit_are_refused_without_reading() {
    let mut file = write(&[], 1);
    let at = 16 + 8;
    file[at..at + 4].fill(0xff);
    let error = read(&file).unwrap_err().to_string();
    assert_eq!(
        error,
        "damaged heap snapshot: a length that is too large in the section of properties at byte 16"
    );
}

#[test]
fn other_files_are_no_snapshots() {
    for file in [&b""[..], b"heapline", b"#!/bin/sh\necho hello\n"] {
        assert!(matches!(Reader::new(file), Err(ReadError::NotASnapshot)));
    }
    let later = [b"heapline heap\n".as_slice(), &[9, 0]].concat();
    assert!(matches!(
        Reader::new(&later[..]),
        Err(ReadError::UnknownVersion(9))
    ));
}

#[test]
fn definitions_are_edited_while_compressing() {
    let mut snapshot = heapline_testkit::heap::Snapshot::default();
    let values = [snapshot.block(0, 1), snapshot.block(0, 1)];
    let modules = [
        snapshot.module("camlCache", &values),
        snapshot.module("camlServer", &values),
    ];
    for (line, module) in (1..).zip(modules) {
        for field in 0..2 {
            snapshot.definition(module, field, "", "some.ml", line);
        }
    }
    let file = snapshot.finish();
    let definitions = |file: &[u8]| {
        let mut reader = Reader::new(file).unwrap();
        let mut found = Vec::new();
        while let Some(content) = reader.next_section().unwrap() {
            if let Content::Definitions(definitions) = content {
                found.extend(definitions);
            }
        }
        found
    };
    let mut expected = definitions(&file);
    assert_eq!(expected.len(), 4);
    expected[2].name = "table".to_owned();
    expected[2].line = 77;
    let mut edited = Vec::new();
    compress_with(&file[..], &mut edited, |definition| {
        let is_it = (definition.line, definition.field) == (2, 0);
        if is_it {
            definition.name = "table".to_owned();
            definition.line = 77;
        }
        is_it
    })
    .unwrap();
    assert_eq!(definitions(&edited), expected);
}
