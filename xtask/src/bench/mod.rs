//! `cargo xtask bench`: all benchmarks.

mod dataset;
mod large;
mod programs;
mod recording;
mod sampling;

use crate::browser;
use crate::command::{Outcome, cargo, exists, program, root};

/// The large reference trace, on machines that have the reference traces.
const LARGE: &str = "../shared/traces/own/ocamlopt-large/trace.ctf.zst";

/// Only datasets of many runs, in a folder that is left for other measurements.
pub(crate) fn dataset(folder: &str) -> Outcome {
    dataset::measure(folder)
}

/// Only traces larger than memory, in a folder that is left for other measurements.
pub(crate) fn large(folder: &str) -> Outcome {
    large::measure(folder)
}

/// Only what recording costs OCaml programs.
pub(crate) fn recording() -> Outcome {
    recording::measure(&build()?)
}

/// Only what recording costs real programs.
pub(crate) fn programs() -> Outcome {
    programs::measure()
}

/// Only what the sampler costs Rust programs.
pub(crate) fn sampler() -> Outcome {
    sampling::count()
}

pub(crate) fn run(trace: Option<&str>) -> Outcome {
    let bench = build()?;
    let large = root().join(LARGE);
    let large = large.exists().then(|| large.display().to_string());
    let trace = trace.or(large.as_deref());
    if let Some(trace) = trace {
        program(&bench, &[trace]).run()?;
    }
    program(&bench, &[]).run()?;
    program(&bench, &["--heap", "10"]).run()?;
    browser::bench(trace)?;
    if exists("valgrind") {
        count(&bench)?;
        if exists("ocamlopt") {
            recording::measure(&bench)?;
        }
        sampling::count()
    } else {
        println!(
            "\nFor instruction counts, which do not depend on how busy the machine is, install valgrind."
        );
        Ok(())
    }
}

/// Builds the program that measures; returns where it is.
fn build() -> Outcome<String> {
    let package = ["--release", "--package", "heapline-bench"];
    cargo(&[&["build", "--locked"], &package[..]].concat()).run()?;
    let bench = root().join("target/release/heapline-bench");
    Ok(bench.display().to_string())
}

/// Instructions per event, of a generated trace.
fn count(bench: &str) -> Outcome {
    println!("\n{:<20} {:>18}", "", "instructions/event");
    for operation in program(bench, &["--list"]).output()?.lines() {
        let callgrind = [
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            "--toggle-collect=heapline_bench::measured*",
            bench,
            "--count",
            operation,
        ];
        let output = program("valgrind", &callgrind).output()?;
        let instructions = collected(&output);
        let events = output.lines().find_map(|line| line.parse::<f64>().ok());
        let (Some(instructions), Some(events)) = (instructions, events) else {
            return Err(format!("valgrind counted nothing:\n{output}"));
        };
        println!("{operation:<20} {:>18.1}", instructions / events);
    }
    Ok(())
}

/// The instructions that callgrind says it has counted.
fn collected(output: &str) -> Option<f64> {
    let mut lines = output.lines();
    let count = lines.find_map(|line| line.split("Collected : ").nth(1))?;
    count.trim().parse().ok()
}
