//! The events that OCaml 5's runtime itself writes about its collector, from the file that it leaves behind.
//!
//! The file has a ring of events for each domain; its layout is described in `caml/runtime_events.h`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::run::Program;
use crate::toolchain::Compiler;

/// Logarithm of the words of a ring: enough for all events, so that none is overwritten.
const RING: u32 = 18;

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Where it began, among all events of the domain.
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Span {
    pub(crate) fn length(self) -> u64 {
        self.end - self.start
    }

    pub(crate) fn has(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// The work of each domain, by the names of the runtime, in the order of their ends.
pub(crate) type Spans = BTreeMap<(u16, &'static str), Vec<Span>>;

/// Lets a program leave its events in a folder.
pub(crate) fn with_events(program: Program, folder: &Path) -> Program {
    program
        .env("OCAML_RUNTIME_EVENTS_START", "1")
        .env("OCAML_RUNTIME_EVENTS_PRESERVE", "1")
        .env("OCAML_RUNTIME_EVENTS_DIR", folder.to_str().unwrap())
        .env("OCAMLRUNPARAM", &format!("e={RING}"))
}

/// The numbers of events, which differ between versions.
fn numbers(compiler: &Compiler, names: &[&'static str]) -> BTreeMap<u64, &'static str> {
    let header = Path::new(&compiler.libraries()).join("caml/runtime_events.h");
    let header = fs::read_to_string(header).unwrap();
    let (before, _) = header.split_once("} ev_runtime_phase;").unwrap();
    let (_, phases) = before.rsplit_once("typedef enum {").unwrap();
    let phases = phases.split(',').map(str::trim);
    (0..)
        .zip(phases)
        .filter_map(|(number, phase)| Some((number, *names.iter().find(|name| **name == phase)?)))
        .collect()
}

/// Reads the only file with events in a folder.
pub(crate) fn read(compiler: &Compiler, folder: &Path, names: &[&'static str]) -> Spans {
    const BEGIN: u64 = 2;
    const END: u64 = 3;
    let numbers = numbers(compiler, names);
    assert_eq!(numbers.len(), names.len(), "{numbers:?}");
    let file = fs::read_dir(folder).unwrap().next().unwrap().unwrap();
    let bytes = fs::read(file.path()).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let header = |n: usize| usize::try_from(word(8 * n)).unwrap();
    let [version, domains, header_size, ring_size, _, headers, data] = std::array::from_fn(header);
    assert_eq!(version, 1);
    let mut spans = Spans::new();
    for domain in 0..domains {
        let ring = headers + domain * header_size;
        let [head, tail] = [word(ring), word(ring + 8)];
        assert_eq!(head, 0, "events of domain {domain} were overwritten");
        let start = data + domain * ring_size;
        let mut open: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        let mut at = 0;
        while at < tail {
            let place = start + 8 * usize::try_from(at).unwrap();
            let event = word(place);
            let is_runtimes = event & 1 << 53 == 0;
            if let Some(name) = numbers.get(&(event >> 36 & 0x1fff)).filter(|_| is_runtimes) {
                let time = word(place + 8);
                match event >> 49 & 15 {
                    BEGIN => open.entry(name).or_default().push(time),
                    END => {
                        let start = open.entry(name).or_default().pop().unwrap();
                        let domain = u16::try_from(domain).unwrap();
                        let spans = spans.entry((domain, *name)).or_default();
                        spans.push(Span { start, end: time });
                    }
                    _ => {}
                }
            }
            at += event >> 54;
        }
    }
    spans
}
