//! Names, files, lines and columns are those that `Printexc` gives.

use std::collections::BTreeSet;
use std::path::Path;

use heapline_trace::{Event, Options, Reader};

use crate::run::Program;
use crate::toolchain::compilers;

/// The function all of whose callees are compared.
const WORK: &str = "Sites.work ";

#[test]
fn stacks_are_those_of_printexc() {
    for compiler in compilers("stacks_are_those_of_printexc") {
        let path = compiler.program("sites");
        let (own, _) = Program::new(&path).args(&["self"]).plain();
        let expected: BTreeSet<String> = own
            .stdout
            .lines()
            .filter(|stack| stack.contains(WORK))
            .map(str::to_owned)
            .collect();
        assert!(expected.len() > 40, "{expected:#?}");
        let recording = Program::new(&path).record(&["--rate", "1"]);
        let seen: BTreeSet<String> = stacks(&recording.trace)
            .into_iter()
            .filter(|stack| stack.contains(WORK))
            .collect();
        let missing: Vec<_> = expected.difference(&seen).collect();
        let unknown: Vec<_> = seen.difference(&expected).collect();
        assert!(
            missing.is_empty() && unknown.is_empty(),
            "OCaml {}: only Printexc has {missing:#?}, only the trace has {unknown:#?}",
            compiler.version
        );
    }
}

/// Every stack of a trace, outermost frame first, in the words of `sites.ml`.
fn stacks(path: &Path) -> BTreeSet<String> {
    let mut reader = Reader::open(path, Options::new().strict(true)).unwrap();
    let mut codes = BTreeSet::new();
    reader
        .for_each(|event, _| {
            if let Event::Alloc(alloc) = event {
                let stack: Vec<usize> = alloc.stack.frames().iter().map(|id| id.index()).collect();
                codes.insert(stack);
            }
        })
        .unwrap();
    let locations = reader.locations();
    codes
        .into_iter()
        .map(|stack| {
            let frames: Vec<String> = stack
                .into_iter()
                .filter_map(|index| locations.get(index))
                .flat_map(|id| locations.frames(id))
                // Printexc knows nothing of frames without debugging information either.
                .filter(|frame| frame.line > 0)
                .map(|frame| {
                    format!(
                        "{} {}:{}:{}-{}",
                        frame.name_lossy(),
                        frame.file_lossy(),
                        frame.line,
                        frame.start_char,
                        frame.end_char
                    )
                })
                .collect();
            frames.join("; ")
        })
        .collect()
}
