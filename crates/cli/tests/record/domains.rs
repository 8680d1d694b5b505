//! All domains of OCaml 5 are seen.

use std::collections::BTreeMap;

use crate::run::{Program, truths};
use crate::toolchain::with_domains;

#[test]
fn domains_are_seen_in_proportion_to_what_they_allocate() {
    for compiler in with_domains("domains_are_seen_in_proportion_to_what_they_allocate") {
        let program = Program::new(compiler.program("ocaml5/domains"));
        let (_, output) = program.plain();
        let truth: BTreeMap<u16, f64> = truths(&output, "domain ")
            .iter()
            .map(|line| {
                let (domain, words) = line.split_once(" words ").unwrap();
                (domain.parse().unwrap(), words.parse().unwrap())
            })
            .collect();
        assert_eq!(truth.len(), 4);
        for rate in ["1e-3", "1e-2", "0.1"] {
            let trace = program.record(&["--rate", rate]).read();
            let seen = trace.words_by_domain();
            assert_eq!(
                seen.keys().collect::<Vec<_>>(),
                truth.keys().collect::<Vec<_>>()
            );
            for (domain, words) in &truth {
                trace.assert_near(seen[domain], *words, &format!("domain {domain} at {rate}"));
            }
        }
    }
}

#[test]
fn domains_that_come_and_go_are_seen() {
    for compiler in with_domains("domains_that_come_and_go_are_seen") {
        let program = Program::new(compiler.program("ocaml5/waves"));
        let (_, output) = program.plain();
        let truth: f64 = truths(&output, "words")[0].parse().unwrap();
        let trace = program.record(&["--rate", "1e-2"]).read();
        trace.assert_near(trace.heap_words(), truth, "waves");
        // What a domain left behind dies in another one; the trace must not have it live on.
        assert!(trace.collections as f64 > 0.9 * trace.allocations.len() as f64);
    }
}

/// OCaml 5.3 to 5.5 give every domain in the same slot the same random numbers.
#[test]
fn short_lived_domains_are_seen_or_warned_about() {
    for compiler in with_domains("short_lived_domains_are_seen_or_warned_about") {
        let program = Program::new(compiler.program("ocaml5/short"));
        let (_, output) = program.plain();
        let truth: f64 = truths(&output, "words")[0].parse().unwrap();
        let recording = program.record(&["--rate", "1e-4"]);
        let trace = recording.read();
        let others = trace.words_where(|a| a.domain != 0);
        let is_right = (others - truth).abs() <= 5.0 * trace.standard_error(truth);
        assert!(
            is_right || recording.said.contains("domains"),
            "estimated {others:.0}, allocated {truth:.0}, said {:?}",
            recording.said
        );
    }
}

#[test]
fn stacks_go_on_through_fibers() {
    for compiler in with_domains("stacks_go_on_through_fibers") {
        let program = Program::new(compiler.program("ocaml5/effects"));
        let (_, output) = program.plain();
        let truth: f64 = truths(&output, "words")[0].parse().unwrap();
        let trace = program.record(&["--rate", "1"]).read();
        trace.assert_near(trace.heap_words(), truth, "effects");
        // A generator in the fiber of a function that calls itself 50 times.
        assert!(trace.depth > 50, "{}", trace.depth);
    }
}
