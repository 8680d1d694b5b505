//! The estimates are right: within 4 standard errors of what the runtime itself counts.

use heapline_trace::Source;

use crate::run::{Program, truths};
use crate::toolchain::compilers;

#[test]
fn the_estimate_of_all_that_was_allocated_is_right() {
    let input: String = "a line of words\n".repeat(20_000);
    for compiler in compilers("the_estimate_of_all_that_was_allocated_is_right") {
        for name in [
            "maps",
            "threads",
            "exceptions",
            "deep",
            "marshal",
            "sizes",
            "streams",
        ] {
            let program = Program::new(compiler.program(name)).input(input.as_str());
            let truth = program.words();
            for rate in ["1e-3", "1e-2", "0.3"] {
                let trace = program.record(&["--rate", rate]).read();
                let what = format!("{name} at {rate} (OCaml {})", compiler.version);
                trace.assert_near(trace.heap_words(), truth, &what);
                // All blocks that are read by one call share its stack.
                assert_eq!(trace.without_stack, 0, "{what}");
            }
        }
    }
}

#[test]
fn at_rate_one_every_word_is_counted() {
    for compiler in compilers("at_rate_one_every_word_is_counted") {
        let program = Program::new(compiler.program("maps"));
        let trace = program.record(&["--rate", "1"]).read();
        trace.assert_near(trace.heap_words(), program.words(), "maps");
        for block in &trace.allocations {
            // Memory outside of the heap, such as that of channels, has no header.
            let header = u64::from(block.source != Source::External);
            assert_eq!(block.samples, block.words + header);
        }
        // Most blocks are found dead, and some grew old.
        assert!(trace.promotions > 1_000);
        assert!(trace.collections > trace.allocations.len() as u64 / 2);
    }
}

#[test]
fn memory_outside_of_the_heap_is_a_source_of_its_own() {
    for compiler in compilers("memory_outside_of_the_heap_is_a_source_of_its_own") {
        let program = Program::new(compiler.program("bigarrays"));
        let (_, output) = program.plain();
        let truth: f64 = truths(&output, "external words")[0].parse().unwrap();
        let trace = program.record(&["--rate", "1e-2"]).read();
        let words = trace.words_where(|a| a.source == Source::External);
        trace.assert_near(words, truth, &compiler.version);
        // The heap's part of a bigarray is promoted, not its memory.
        assert_eq!(trace.external_promotions, 0, "OCaml {}", compiler.version);
    }
}

#[test]
fn deep_stacks_are_whole() {
    for compiler in compilers("deep_stacks_are_whole") {
        let program = Program::new(compiler.program("deep"));
        let trace = program.record(&["--rate", "0.1"]).read();
        assert!(trace.depth > 2_900, "{}", trace.depth);
    }
}
