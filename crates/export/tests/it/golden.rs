//! Byte for byte what the reference programs print, on the project's traces and, where they are,
//! on all reference traces.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use heapline_export::dump::{Format, dump};
use heapline_export::identify;
use heapline_profile::reports::{Overview, info};
use heapline_profile::{Profile, StoreOptions};
use heapline_testkit::fixtures;
use heapline_trace::{Options, Reader};

/// Folders that hold a trace and this output of a reference program.
fn folders_with(output: &str) -> Vec<PathBuf> {
    fixtures::traces()
        .iter()
        .filter_map(|path| path.parent())
        .filter(|folder| folder.join(output).exists())
        .map(Path::to_owned)
        .collect()
}

fn overview(trace: &Path) -> Overview {
    let options = heapline_formats::Options {
        stacks: false,
        ..heapline_formats::Options::default()
    };
    let mut reader = heapline_formats::Reader::open(trace, options).unwrap();
    info(&Profile::load(&mut reader, StoreOptions::default()).unwrap())
}

fn gunzip(path: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(fs::File::open(path).unwrap())
        .read_to_end(&mut text)
        .unwrap();
    text
}

fn dumped(trace: &Path, format: Format) -> Vec<u8> {
    let mut reader = Reader::open(trace, Options::new().stacks(format.needs_stacks())).unwrap();
    let mut text = Vec::new();
    dump(&mut reader, format, &mut text).unwrap();
    text
}

/// Compares long texts without printing them.
fn assert_same(found: &[u8], expected: &[u8], name: &Path) {
    if found == expected {
        return;
    }
    let lines = |text: &[u8]| {
        String::from_utf8_lossy(text)
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (found, expected) = (lines(found), lines(expected));
    for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found, expected, "{}, line {}", name.display(), i + 1);
    }
    panic!(
        "{}: {} lines instead of {}",
        name.display(),
        found.len(),
        expected.len()
    );
}

#[test]
fn dumps_are_those_of_memtrace() {
    let folders = folders_with("dump_trace.txt.gz");
    assert!(folders.len() >= 2);
    for folder in folders {
        let expected = gunzip(&folder.join("dump_trace.txt.gz"));
        assert_same(
            &dumped(&folder.join("trace.ctf"), Format::Memtrace),
            &expected,
            &folder,
        );
    }
}

#[test]
fn summaries_are_those_of_memtrace() {
    let folders = folders_with("identify.txt");
    assert!(folders.len() >= 2);
    for folder in folders {
        let trace = folder.join("trace.ctf");
        let expected = fs::read_to_string(folder.join("identify.txt")).unwrap();
        // The reference program was given some path, and repeats it.
        let path = expected
            .strip_prefix("Trace file ")
            .and_then(|rest| rest.split(" (").next())
            .unwrap();
        let overview = overview(&trace);
        let found = identify(&overview, path, trace.metadata().unwrap().len());
        assert_eq!(found, expected, "{}", folder.display());
    }
}

#[test]
fn dumps_are_those_of_ocaml_alloc_stats() {
    for folder in folders_with("alloc-stats.dump.gz") {
        let expected = gunzip(&folder.join("alloc-stats.dump.gz"));
        assert_same(
            &dumped(&folder.join("trace.ctf"), Format::AllocStats),
            &expected,
            &folder,
        );
    }
    // Where its own output is not at hand, memtrace's has the same facts in other words.
    for folder in folders_with("dump_trace.txt.gz") {
        let memtrace = String::from_utf8(gunzip(&folder.join("dump_trace.txt.gz"))).unwrap();
        let translate = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let (time, id, kind) = (words[0], words[1], words[2]);
            let length = words.get(4).and_then(|word| word.strip_prefix("len="));
            match (kind, length) {
                ("alloc", Some(length)) => format!("{time} {id} a {length}\n"),
                ("alloc_major", Some(length)) => format!("{time} {id} A {length}\n"),
                ("alloc_ext", Some(length)) => format!("{time} {id} AE {length}\n"),
                ("promote", None) => format!("{time} {id} P\n"),
                ("collect", None) => format!("{time} {id} C\n"),
                _ => panic!("{line}"),
            }
        };
        let expected: String = memtrace.lines().map(translate).collect();
        assert_same(
            &dumped(&folder.join("trace.ctf"), Format::AllocStats),
            expected.as_bytes(),
            &folder,
        );
    }
}

#[test]
fn an_empty_trace_has_the_reference_program_s_oddities() {
    let trace = fixtures::folder().join("odd/empty.ctf");
    let overview = overview(&trace);
    let text = identify(&overview, "empty.ctf", 168);
    assert!(
        text.contains("Minor: -nan TB/s allocations, -nan% promoted"),
        "{text}"
    );
    assert!(
        text.ends_with("Max:   0 B\n   Runtime: 0.000 s\n"),
        "{text}"
    );
    assert!(dumped(&trace, Format::Memtrace).is_empty());
}

#[test]
fn a_stack_cut_by_its_writer_is_dumped_as_far_as_it_goes() {
    let text = String::from_utf8(dumped(
        &fixtures::folder().join("odd/t1000.ctf"),
        Format::Memtrace,
    ))
    .unwrap();
    let prefixes: Vec<&str> = text
        .lines()
        .map(|line| {
            line.split("dom=0 ")
                .nth(1)
                .unwrap()
                .split(':')
                .next()
                .unwrap()
        })
        .collect();
    // Wider than its four columns, a number still has a space before it.
    assert_eq!(prefixes, ["   0", " 1000", " 1000"]);
    for line in text.lines() {
        assert_eq!(
            line.split(' ').filter(|word| word.contains('@')).count(),
            409
        );
    }
}
