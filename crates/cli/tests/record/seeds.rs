//! Recordings of one program are independent of each other, unless they are given the same seed.

use std::collections::BTreeSet;

use heapline_trace::{Options, Reader};

use crate::attach::{Running, attach_until, is_any};
use crate::run::{Program, Recording, heapline};
use crate::toolchain::{Compiler, compilers};
use crate::trace::Trace;

const RATE: &[&str] = &["--rate", "1e-3"];

fn record(program: &Program, seed: u32) -> Recording {
    program.record(&[RATE, &["--seed", &seed.to_string()]].concat())
}

/// Words and samples of each block.
fn samples(trace: &Trace) -> Vec<(u64, u64)> {
    let blocks = trace.allocations.iter();
    blocks.map(|block| (block.words, block.samples)).collect()
}

fn seed_of(trace: &std::path::Path) -> Option<u64> {
    Reader::open(trace, Options::new()).unwrap().info().seed
}

#[test]
fn the_same_seed_gives_the_same_samples_and_another_one_others() {
    for compiler in compilers("the_same_seed_gives_the_same_samples_and_another_one_others") {
        let program = Program::new(compiler.program("maps"));
        let [first, again, other] = [7, 7, 8].map(|seed| record(&program, seed));
        assert_eq!(seed_of(&first.trace), Some(7));
        let [first, again, other] = [first, again, other].map(|r| samples(&r.read()));
        assert!(first.len() > 500, "OCaml {}", compiler.version);
        assert!(first == again, "OCaml {}", compiler.version);
        assert_ne!(first, other, "OCaml {}", compiler.version);
    }
}

#[test]
fn without_a_seed_each_recording_draws_its_own() {
    for compiler in compilers("without_a_seed_each_recording_draws_its_own") {
        let program = Program::new(compiler.program("maps")).without_env("HEAPLINE_SEED");
        let [first, second] = [(); 2].map(|()| program.record(RATE));
        assert_ne!(seed_of(&first.trace), seed_of(&second.trace));
        assert_ne!(samples(&first.read()), samples(&second.read()));
    }
}

/// The estimates of recordings with different seeds vary as much as their standard errors say.
fn assert_spread(estimates: impl Iterator<Item = (f64, f64)>, truth: f64, what: &str) {
    let squares: Vec<f64> = estimates
        .map(|(estimate, error)| ((estimate - truth) / error).powi(2))
        .collect();
    // Chi-squared with so many degrees of freedom; the seeds are always the same.
    let (sum, count) = (squares.iter().sum::<f64>(), squares.len() as f64);
    let (mean, deviation) = (count, (2.0 * count).sqrt());
    assert!(
        (sum - mean).abs() < 3.5 * deviation,
        "{what}: {squares:.1?} add up to {sum:.1}"
    );
}

/// Bytes that were allocated in all runs of a dataset, and the variance: sums of columns, as the documents say.
fn allocated(recordings: &[Recording]) -> (f64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let dataset = folder.path().join("dataset");
    let command = |name: &str| {
        let mut command = heapline();
        command.args(["dataset", name]).arg(&dataset);
        command
    };
    let traces = recordings.iter().map(|recording| &recording.trace);
    let add = command("add").args(traces).output().unwrap();
    assert!(add.status.success(), "{add:?}");
    let list = command("list").arg("--json").output().unwrap();
    let list: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap();
    let runs = list["runs"].as_array().unwrap();
    assert_eq!(runs.len(), recordings.len());
    let sum = |column: &str| runs.iter().map(|run| run[column].as_f64().unwrap()).sum();
    (sum("allocated_bytes"), sum("allocated_bytes_variance"))
}

#[test]
fn several_recordings_differ_and_vary_as_their_errors_say() {
    for compiler in compilers("several_recordings_differ_and_vary_as_their_errors_say") {
        let program = Program::new(compiler.program("maps"));
        let truth = program.words();
        let recordings: Vec<Recording> = (1..=30).map(|seed| record(&program, seed)).collect();
        let traces: Vec<Trace> = recordings.iter().map(Recording::read).collect();
        let distinct: BTreeSet<_> = traces.iter().map(samples).collect();
        assert_eq!(distinct.len(), traces.len(), "OCaml {}", compiler.version);
        let estimates = traces
            .iter()
            .map(|trace| (trace.heap_words(), trace.standard_error(truth)));
        assert_spread(estimates, truth, &compiler.version);

        let exact = program.record(&["--rate", "1"]);
        let (truth, _) = allocated(&[exact]);
        let (sum, variance) = allocated(&recordings);
        let error = sum - truth * recordings.len() as f64;
        assert!(
            error.abs() < 3.5 * variance.sqrt(),
            "OCaml {}: {error:.0} bytes, variance {variance:.0}",
            compiler.version
        );
    }
}

/// The library is part of the program, which starts it itself.
#[test]
fn programs_that_record_themselves_draw_their_own_samples_too() {
    let record = |compiler: &Compiler, seed: &str| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trace.ctf");
        Program::new(compiler.linked_programs().join("linked.exe"))
            .args(&["requested"])
            .env("MEMTRACE", file.to_str().unwrap())
            .env("MEMTRACE_RATE", "0.01")
            .env("HEAPLINE_SEED", seed)
            .plain();
        (seed_of(&file), samples(&Trace::strict(&file)))
    };
    for compiler in compilers("programs_that_record_themselves_draw_their_own_samples_too") {
        let [first, again, other] = ["7", "7", "8"].map(|seed| record(compiler, seed));
        assert_eq!(first.0, Some(7), "OCaml {}", compiler.version);
        assert!(first.1.len() > 100, "OCaml {}", compiler.version);
        assert!(
            first == again && first.1 != other.1,
            "OCaml {}",
            compiler.version
        );
        let [one, two] = ["", ""].map(|seed| record(compiler, seed));
        assert!(
            one.0 != two.0 && one.1 != two.1,
            "OCaml {}",
            compiler.version
        );
    }
}

#[test]
fn attached_recordings_have_the_seed_that_they_are_given() {
    for compiler in compilers("attached_recordings_have_the_seed_that_they_are_given") {
        let running = Running::start(&compiler.program("steady"), &[]);
        let trace = running.folder.path().join("trace.ctf");
        let file = trace.to_str().unwrap();
        for seed in ["7", "8"] {
            let options = ["--seed", seed, "--rate", "1e-3", "--force", "-o", file];
            attach_until(&trace, is_any, |period| {
                running.attach(&[&["--for", period], &options[..]].concat())
            });
            assert_eq!(
                seed_of(&trace),
                seed.parse().ok(),
                "OCaml {}",
                compiler.version
            );
        }
        assert!(running.finish().status.success());
    }
}
