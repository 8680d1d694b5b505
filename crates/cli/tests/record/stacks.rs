//! Stacks are exactly those that OCaml's sampler would have found itself.

use crate::run::{Program, Recording};
use crate::toolchain::{compilers, with_domains};

/// Stacks that are compared in all.
const STACKS: u64 = 1_000_000;

impl Program {
    /// Has each stack compared with the sampler's.
    pub(crate) fn with_checked_stacks(self) -> Self {
        self.env("HEAPLINE_STACKS", "check")
    }
}

impl Recording {
    /// The number of stacks that were compared, which must all be the same.
    #[track_caller]
    pub(crate) fn equal_stacks(&self) -> u64 {
        equal_stacks(&self.said)
    }
}

/// The number of stacks that were compared according to what heapline has said.
#[track_caller]
pub(crate) fn equal_stacks(said: &str) -> u64 {
    let counts = said.lines().find_map(|line| {
        let (compared, rest) = line
            .strip_prefix("heapline: ")?
            .split_once(" stacks compared")?;
        Some((compared.parse().ok()?, rest.to_owned()))
    });
    let (compared, rest) = counts.unwrap_or_else(|| panic!("not compared: {said}"));
    assert!(rest.ends_with(", 0 differ"), "{said}");
    compared
}

#[test]
fn stacks_are_those_of_the_sampler() {
    let names = [
        "maps",
        "threads",
        "exceptions",
        "fork",
        "deep",
        "bigarrays",
        "marshal",
        "sizes",
        "sites",
    ];
    let all = compilers("stacks_are_those_of_the_sampler");
    let mut compared = 0;
    for compiler in all {
        for name in names {
            let program = Program::new(compiler.program(name)).with_checked_stacks();
            let recording = program.record(&["--rate", "0.1"]);
            compared += recording.equal_stacks();
        }
    }
    assert!(compared > STACKS || all.is_empty(), "{compared}");
}

#[test]
fn stacks_of_domains_and_fibers_are_those_of_the_sampler() {
    for compiler in with_domains("stacks_of_domains_and_fibers_are_those_of_the_sampler") {
        for name in ["domains", "waves", "short", "effects", "domain_exit"] {
            let program = Program::new(compiler.program(&format!("ocaml5/{name}")));
            let recording = program.with_checked_stacks().record(&["--rate", "0.1"]);
            assert!(
                recording.equal_stacks() > 1000,
                "{name}: {}",
                recording.said
            );
        }
    }
}

#[test]
fn stacks_are_cut_at_a_depth() {
    for compiler in compilers("stacks_are_cut_at_a_depth") {
        let program = Program::new(compiler.program("deep"));
        let whole = program.record(&["--rate", "0.1"]).read();
        for mode in ["own", "sampler"] {
            let program = Program::new(compiler.program("deep")).env("HEAPLINE_STACKS", mode);
            let recording = program.record(&["--rate", "0.1", "--stack-depth", "20"]);
            let trace = recording.read();
            // The frames, and the one that stands for the others.
            assert_eq!(trace.depth, 21, "OCaml {}, {mode}", compiler.version);
            let words = trace.heap_words();
            trace.assert_near(words, whole.heap_words(), &compiler.version);
            let print = |command: &str| {
                let output = crate::run::heapline()
                    .arg(command)
                    .arg(&recording.trace)
                    .output();
                String::from_utf8(output.unwrap().stdout).unwrap()
            };
            let tree = print("tree");
            assert!(tree.contains("<deeper calls>"), "{tree}");
            let info = print("info");
            assert!(info.contains("cut when they were recorded"), "{info}");
        }
    }
}
