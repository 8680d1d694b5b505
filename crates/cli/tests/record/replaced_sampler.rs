//! Programs of OCaml 5.5 that ask if they sample, and replace a sampler by another, do not see ours.

use crate::run::Program;
use crate::toolchain::with_domains;

#[test]
fn a_program_sees_only_its_own_sampler() {
    for compiler in with_domains("a_program_sees_only_its_own_sampler") {
        let version = &compiler.version;
        if version.starts_with("5.3") || version.starts_with("5.4") {
            continue;
        }
        let program = Program::new(compiler.program("ocaml5/replaced_sampler"));
        let (plain, _) = program.plain();
        assert_eq!(
            plain.stdout,
            "at first: false\nstarted: true\nreplaced: true\nstopped: false\n"
        );
        let words = |policy: &str| {
            let recording = program.record(&["--rate", "1e-2", "--memprof", policy]);
            assert_eq!(
                recording.ended, plain,
                "{version}, {policy}: {}",
                recording.said
            );
            recording.read().heap_words()
        };
        // Its four rounds of work, or the first.
        let (ours, theirs) = (words("ours"), words("theirs"));
        assert!(
            theirs > 0.0 && ours > 3.0 * theirs,
            "{version}: {ours} {theirs}"
        );
    }
}
