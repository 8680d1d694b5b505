//! Traces that are unlike those of any real program.

use heapline_formats::{Options, Reader};
use heapline_profile::{Profile, StoreOptions};
use heapline_testkit::fixtures;
use heapline_testkit::generate::{self, Program};
use heapline_trace::{Block, Frame, FrameSink, Source, TraceInfo, Writer};
use serde::Serialize;
use serde_json::Value;

pub(crate) fn load(bytes: &[u8], options: StoreOptions) -> Profile {
    let bytes = std::io::Cursor::new(bytes.to_vec());
    let mut reader = Reader::new(bytes, Options::default()).unwrap();
    Profile::load(&mut reader, options).unwrap()
}

fn name(code: u64, frames: &mut FrameSink<'_>) {
    frames.push(Frame {
        file: format!("module{}.ml", code % 7).as_bytes(),
        name: format!("Lib__Module{}.f{}", code % 7, code % 50).as_bytes(),
        line: u32::try_from(code % 1000).unwrap_or(0),
        start_char: 0,
        end_char: 1,
    });
}

/// A trace of blocks that are allocated one a microsecond: length, samples, source and stack.
fn written(rate: f64, step: u64, blocks: &[(u64, u64, Source, Vec<u64>)]) -> Vec<u8> {
    let info = TraceInfo {
        sample_rate: rate,
        ..generate::info()
    };
    let mut writer = Writer::new(Vec::new(), &info).unwrap();
    for (id, (length, samples, source, stack)) in (0..).zip(blocks) {
        let block = Block {
            length: *length,
            samples: *samples,
            source: *source,
        };
        writer.alloc(0, id * step, id, block, stack, name).unwrap();
        if id % 3 == 1 && *source == Source::Minor {
            writer.promote(0, id * step, id).unwrap();
        }
        if id % 2 == 1 {
            writer.collect(0, id * step, id - 1).unwrap();
        }
    }
    writer.finish().unwrap()
}

/// All odd traces, with names.
pub(crate) fn odd_traces() -> Vec<(String, Vec<u8>)> {
    use Source::{External, Major, Minor};
    let mut traces = Vec::new();
    for file in [
        "odd/empty.ctf",
        "odd/stripped.ctf",
        "odd/domains.ctf",
        "odd/deep1000.ctf",
        "odd/t1000.ctf",
        "odd/peakend.ctf",
        "damaged/truncated.ctf",
        "damaged/garbage.ctf",
        "damaged/names.ctf",
        "damaged/overwritten.ctf",
    ] {
        let bytes = std::fs::read(fixtures::folder().join(file)).unwrap();
        traces.push((file.to_owned(), bytes));
    }
    let stack = |depth: u64| (0..depth).collect::<Vec<u64>>();
    let mut add = |name: &str, bytes| traces.push((name.to_owned(), bytes));
    add("one sample", written(1e-4, 1, &[(5, 1, Minor, stack(3))]));
    add(
        "one sample without a stack",
        written(1e-4, 1, &[(5, 1, Minor, vec![])]),
    );
    add(
        "one huge block",
        written(1e-4, 1, &[(1 << 40, 1 << 27, Major, stack(1))]),
    );
    let many = |source, length: fn(u64) -> u64| -> Vec<_> {
        (0..60)
            .map(|i| (length(i), 1 + length(i) / 9000, source, stack(i % 9)))
            .collect()
    };
    add(
        "no time passes",
        written(1e-3, 0, &many(Minor, |i| 1 + i % 9)),
    );
    add(
        "external only",
        written(1e-3, 100, &many(External, |i| i * i * 10)),
    );
    add("blocks of no words", written(1e-3, 7, &many(Major, |_| 0)));
    let exact: Vec<_> = (0..60)
        .map(|i| (i + 1, i + 2, Minor, stack(1 + i % 5)))
        .collect();
    add("rate 1", written(1.0, 10, &exact));
    let deep: Vec<_> = (0..5)
        .map(|i| (3, 1, Minor, stack(2000 - 100 * i)))
        .collect();
    add("2000 deep", written(1e-3, 10, &deep));
    let recursion: Vec<_> = (0..200)
        .map(|i| (3, 1, Minor, (0..i).map(|n| n * n % 11).collect()))
        .collect();
    add("recursion", written(1e-3, 10, &recursion));
    add(
        "no samples in a sample",
        written(
            1e-3,
            10,
            &[(3, 0, Minor, stack(2)), (3, 1, Minor, stack(3))],
        ),
    );
    let program = Program {
        allocations: 300,
        domains: 3,
        locations: 40,
        depth: 6,
        seed: 9,
    };
    add("generated", program.trace());
    traces
}

/// Panics if a report has a number that is not one. `null` is what JSON makes of those, so the
/// report is looked at in another way.
#[track_caller]
pub(crate) fn assert_finite(name: &str, report: &impl std::fmt::Debug) {
    let text = format!("{report:?}");
    let odd = text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .find(|word| matches!(*word, "NaN" | "inf" | "-inf"));
    assert!(odd.is_none(), "{name}: {text}");
}

/// Panics if a field is null that must not be.
#[track_caller]
pub(crate) fn assert_no_null(name: &str, report: &impl Serialize, may_be_null: &[&str]) {
    fn look(value: &Value, field: &str, may_be_null: &[&str]) -> Result<(), String> {
        match value {
            Value::Null if may_be_null.contains(&field) => Ok(()),
            Value::Null => Err(field.to_owned()),
            Value::Array(values) => values.iter().try_for_each(|v| look(v, field, may_be_null)),
            Value::Object(fields) => fields
                .iter()
                .try_for_each(|(field, v)| look(v, field, may_be_null)),
            _ => Ok(()),
        }
    }
    let value = serde_json::to_value(report).unwrap();
    if let Err(field) = look(&value, "", may_be_null) {
        panic!("{name}: {field} is null");
    }
}
