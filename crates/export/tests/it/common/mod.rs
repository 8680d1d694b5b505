//! Profiles for the tests of formats.

#![allow(dead_code, reason = "every test uses some of it")]

use heapline_formats::{Options, Reader};
use heapline_profile::{ContextId, Estimator, Profile, Query, Scope, StoreOptions};
use heapline_testkit::{fixtures, generate};
use heapline_trace::{Block, Frame, Source, Writer};

/// Traces that every format is tried on: real ones, several domains, no names, deep stacks, no
/// events at all, damage.
pub(crate) const TRACES: [&str; 8] = [
    "mix-ocaml413/trace.ctf",
    "mix-ocaml53/trace.ctf",
    "generated/domains.ctf",
    "odd/stripped.ctf",
    "odd/deep1000.ctf",
    "odd/t1000.ctf",
    "odd/empty.ctf",
    "damaged/names.ctf",
];

/// Names that mean something in one format or another.
pub(crate) const ODD_NAME: &str = "M.\"f\"<a&b>;\n12";

pub(crate) fn load(trace: &str) -> Profile {
    parse(&std::fs::read(fixtures::folder().join(trace)).unwrap())
}

pub(crate) fn parse(bytes: &[u8]) -> Profile {
    let bytes = std::io::Cursor::new(bytes.to_vec());
    let mut reader = Reader::new(bytes, Options::default()).unwrap();
    Profile::load(&mut reader, StoreOptions::default()).unwrap()
}

pub(crate) fn whole(profile: &Profile) -> Scope<'_> {
    Scope::new(profile, &Query::default(), Estimator::default())
}

/// A trace with all that is unusual: no stack, odd names, no names, no line, the largest blocks.
pub(crate) fn odd() -> Profile {
    let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
    let stacks: [&[u64]; 5] = [&[], &[1], &[2, 1], &[3], &[1, 4]];
    for (id, stack) in (0..).zip(stacks) {
        let block = Block {
            length: [1, 1 << 48][usize::from(id == 4)],
            samples: 1,
            source: [Source::Minor, Source::External][usize::from(id == 4)],
        };
        writer
            .alloc(0, id, id, block, stack, |code, frames| {
                if code != 3 {
                    frames.push(Frame {
                        file: [b"a;\"b\".ml" as &[u8], b""][usize::from(code == 4)],
                        name: [ODD_NAME.as_bytes(), b"# g 12", b"", b""]
                            [usize::try_from(code - 1).unwrap()],
                        line: u32::from(code == 1) * 7,
                        start_char: 1,
                        end_char: 2,
                    });
                }
            })
            .unwrap();
    }
    parse(&writer.finish().unwrap())
}

/// All of them.
pub(crate) fn profiles() -> impl Iterator<Item = (&'static str, Profile)> {
    let traces = TRACES.into_iter().map(|trace| (trace, load(trace)));
    traces.chain(std::iter::once_with(|| ("odd", odd())))
}

/// The names of the functions of a stack, outermost first.
pub(crate) fn functions(profile: &Profile, stack: ContextId) -> Vec<&str> {
    let symbols = profile.symbols();
    let frames = profile.stack(stack).into_iter().rev();
    let names: Vec<&str> = frames
        .map(|frame| match &*symbols.function(frame).name {
            "" => "(unknown)",
            name => name,
        })
        .collect();
    if names.is_empty() {
        vec!["(unknown)"]
    } else {
        names
    }
}

/// Returns true if two numbers are the same but for so many roundings.
pub(crate) fn about(a: f64, b: f64, roundings: usize) -> bool {
    (a - b).abs() <= roundings as f64 * 0.5 + 1e-9 * a.abs()
}

/// A place to write to that is full.
pub(crate) struct Full;

impl std::io::Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
