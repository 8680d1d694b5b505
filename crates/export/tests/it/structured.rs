//! The formats for other programs hold the same events as the trace.

use heapline_export::dump::{Format, dump};
use heapline_testkit::{OwnedEvent, OwnedTrace, fixtures, generate};
use heapline_trace::{Block, Frame, Options, Reader, Source, TraceInfo, Writer};
use serde_json::Value;

use crate::common;

fn dumped(bytes: &[u8], format: Format) -> String {
    let mut reader = Reader::new(bytes, Options::new()).unwrap();
    let mut text = Vec::new();
    dump(&mut reader, format, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn source(name: &str) -> Source {
    match name {
        "minor" => Source::Minor,
        "major" => Source::Major,
        _ => Source::External,
    }
}

#[test]
fn json_lines_hold_every_event_and_name() {
    for name in [
        "mix-ocaml53/trace.ctf",
        "generated/domains.ctf",
        "odd/deep1000.ctf",
    ] {
        let bytes = std::fs::read(fixtures::folder().join(name)).unwrap();
        let expected = OwnedTrace::read(&bytes, Options::new()).unwrap();
        let mut events = Vec::new();
        let mut codes = std::collections::HashMap::new();
        let mut named = 0;
        for line in dumped(&bytes, Format::JsonLines).lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let number = |key: &str| line[key].as_u64().unwrap();
            let mark = || {
                (
                    number("time_us"),
                    number("id"),
                    u16::try_from(number("domain")).unwrap(),
                )
            };
            match line["event"].as_str().unwrap() {
                "trace" => assert_eq!(line["sample_rate"], 0.001),
                "location" => {
                    let code = number("code");
                    codes.insert(number("location"), code);
                    let frames = line["frames"].as_array().unwrap();
                    let original = &expected.locations[&code];
                    assert_eq!(frames.len(), original.len());
                    for (frame, original) in frames.iter().zip(original) {
                        assert_eq!(frame["name"].as_str().unwrap().as_bytes(), original.name);
                        assert_eq!(frame["file"].as_str().unwrap().as_bytes(), original.file);
                        assert_eq!(frame["line"], original.line);
                    }
                    named += 1;
                }
                "alloc" => {
                    let (time, id, domain) = mark();
                    let stack = line["stack"].as_array().unwrap();
                    events.push(OwnedEvent::Alloc {
                        time,
                        id,
                        domain,
                        length: number("length_words"),
                        samples: number("samples"),
                        source: source(line["source"].as_str().unwrap()),
                        stack: stack
                            .iter()
                            .map(|id| codes[&id.as_u64().unwrap()])
                            .collect(),
                        common_prefix: 0,
                    });
                }
                "promote" => {
                    let (time, id, domain) = mark();
                    events.push(OwnedEvent::Promote { time, id, domain });
                }
                "collect" => {
                    let (time, id, domain) = mark();
                    events.push(OwnedEvent::Collect { time, id, domain });
                }
                other => panic!("{other}"),
            }
        }
        assert!(events == expected.comparable(), "{name}");
        assert_eq!(
            named,
            expected.locations.len(),
            "{name}: each location is named once"
        );
    }
}

#[test]
fn names_that_need_quoting_are_quoted() {
    let info = TraceInfo {
        sample_rate: 1.0,
        word_size: 64,
        executable_name: "a \"quoted\" program".into(),
        host_name: String::new(),
        ocaml_runtime_params: String::new(),
        seed: None,
        pid: 1,
        start_time: 0,
        initial_domain: 0,
        context: None,
    };
    let mut writer = Writer::new(Vec::new(), &info).unwrap();
    let block = Block {
        length: 3,
        samples: 4,
        source: Source::External,
    };
    writer
        .alloc(0, 5, 0, block, &[7], |_, frames| {
            frames.push(Frame {
                file: b"a,b.ml",
                name: b"M.\"op\"",
                line: 1,
                start_char: 2,
                end_char: 3,
            });
        })
        .unwrap();
    writer.collect(0, 9, 0).unwrap();
    let bytes = writer.finish().unwrap();
    assert_eq!(
        dumped(&bytes, Format::Csv),
        "time_us,event,id,domain,source,length_words,samples,sampled_blocks,stack\n\
         5,alloc,0,0,external,3,4,1,\"M.\"\"op\"\"@a,b.ml:1:2-3\"\n\
         9,collect,0,0,,,,,\n"
    );
    let json = dumped(&bytes, Format::JsonLines);
    for line in json.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    assert!(json.contains(r#""name":"M.\"op\"""#), "{json}");
}

/// A trace with one sampled block for each of these functions.
fn allocated_by(functions: &[&'static str]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
    for (id, function) in (0_u64..).zip(functions) {
        let block = Block {
            length: 3,
            samples: 1,
            source: Source::Minor,
        };
        let name = function.as_bytes();
        writer
            .alloc(0, id, id, block, &[id], |_, frames| {
                frames.push(Frame {
                    file: b"x.ml",
                    name,
                    line: 1,
                    start_char: 2,
                    end_char: 3,
                });
            })
            .unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn no_name_is_a_formula_of_a_spreadsheet() {
    let names = ["=1+1", "+x", "-x", "@x", "", "\t=x", "plain"];
    let bytes = allocated_by(&names);
    let profile = common::parse(&bytes);
    let mut blocks = Vec::new();
    heapline_export::csv(&common::whole(&profile), &mut blocks).unwrap();
    let blocks = String::from_utf8(blocks).unwrap();
    for text in [dumped(&bytes, Format::Csv), blocks] {
        let stacks = text
            .lines()
            .skip(1)
            .map(|line| line.rsplit(",\"").next().unwrap());
        let expected = names.map(|name| {
            let apostrophe = if name == "plain" { "" } else { "'" };
            format!("{apostrophe}{name}@x.ml:1:2-3\"")
        });
        assert_eq!(stacks.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn every_csv_row_has_nine_columns() {
    let bytes = std::fs::read(fixtures::folder().join("generated/domains.ctf")).unwrap();
    let events = OwnedTrace::read(&bytes, Options::new())
        .unwrap()
        .events
        .len();
    let text = dumped(&bytes, Format::Csv);
    assert_eq!(text.lines().count(), events + 1);
    for line in text.lines() {
        let unquoted: String = line.split('"').step_by(2).collect();
        assert_eq!(unquoted.matches(',').count(), 8, "{line}");
    }
}
