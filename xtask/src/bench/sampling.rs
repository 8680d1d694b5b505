//! Benchmark of the sampler in Rust programs, against the system's allocator alone and other
//! profilers.
//!
//! Instructions are what one round more takes: those of a long run less those of a short one, so that
//! what happens once is not in it. Looking up names is not counted at all: it is done once for each
//! place, but not in each run for the same ones.

use super::collected;
use crate::command::{Outcome, Run, cargo, program, root};

const MANIFEST: &str = "crates/sampler/bench/Cargo.toml";

/// Variables that are set for a program, and their values.
type Environment = &'static [(&'static str, &'static str)];

/// Names to print, programs, and what is set for them.
const PROGRAMS: [(&str, &str, Environment); 14] = [
    ("System", "system", &[]),
    ("heapline, not started", "sampler", &[]),
    (
        "heapline, 1 / 512 KiB",
        "sampler",
        &[("MEMTRACE_RATE", "0.0000152587890625")],
    ),
    (
        "heapline, 1 / 64 KiB",
        "sampler",
        &[("MEMTRACE_RATE", "0.0001220703125")],
    ),
    (
        "heapline, rate 1e-5",
        "sampler",
        &[("MEMTRACE_RATE", "1e-5")],
    ),
    (
        "heapline, rate 1e-4",
        "sampler",
        &[("MEMTRACE_RATE", "1e-4")],
    ),
    (
        "heapline, rate 1e-3",
        "sampler",
        &[("MEMTRACE_RATE", "1e-3")],
    ),
    (
        "heapline around any allocator, not started",
        "around_system",
        &[],
    ),
    (
        "... 1 / 512 KiB",
        "around_system",
        &[("MEMTRACE_RATE", "0.0000152587890625")],
    ),
    ("jemalloc, profiler off", "jemalloc", &[]),
    (
        "jemalloc, profiler on, 1 / 512 KiB",
        "jemalloc",
        &[("_RJEM_MALLOC_CONF", "prof:true,lg_prof_sample:19")],
    ),
    (
        "heapline around jemalloc, not started",
        "around_jemalloc",
        &[],
    ),
    (
        "... 1 / 512 KiB",
        "around_jemalloc",
        &[("MEMTRACE_RATE", "0.0000152587890625")],
    ),
    ("dhat", "dhat", &[]),
];

/// Workloads, and how many rounds are counted and timed.
const WORKLOADS: [(&str, u64, u64); 3] = [
    ("pairs", 200_000, 5_000_000),
    ("inlined", 200_000, 5_000_000),
    ("work", 100_000, 300_000),
];

/// Times are the best of so many runs.
const TIMED: u32 = 5;

pub(super) fn count() -> Outcome {
    cargo(&[
        "build",
        "--locked",
        "--release",
        "--bins",
        "--manifest-path",
        MANIFEST,
    ])
    .run()?;
    println!("\nSampling Rust programs: instructions per round, and time against System");
    print!("{:<44}", "");
    for (workload, ..) in WORKLOADS {
        print!("{workload:>10} {:>8} {:>8}", "", "time");
    }
    println!();
    let mut first = Vec::new();
    for (name, binary, environment) in PROGRAMS {
        print!("{name:<44}");
        for (index, (workload, rounds, timed)) in WORKLOADS.into_iter().enumerate() {
            // dhat takes fifteen times as long.
            let less = if binary == "dhat" { 20 } else { 1 };
            let (rounds, timed) = (rounds / less, timed / less);
            let run = |rounds| instructions(binary, environment, workload, rounds);
            let instructions = (run(2 * rounds)? - run(rounds)?) / rounds as f64;
            let nanos = nanos(binary, environment, workload, timed)?;
            if first.len() == index {
                first.push((instructions, nanos));
            }
            let (base, base_nanos) = first[index];
            let more = if workload == "work" {
                format!("{:+.2}%", 100.0 * (instructions / base - 1.0))
            } else {
                format!("{:+.1}", instructions - base)
            };
            print!(
                "{instructions:>10.1} {more:>8} {:>7.2}x",
                nanos / base_nanos
            );
        }
        println!();
    }
    Ok(())
}

/// The processor's time for a round, in nanoseconds: the best of some runs.
fn nanos(binary: &str, environment: Environment, workload: &str, rounds: u64) -> Outcome<f64> {
    let mut best = f64::MAX;
    for _ in 0..TIMED {
        let output = prepared(&[], binary, environment, workload, rounds).output()?;
        let nanos = output.lines().find_map(|line| line.parse::<f64>().ok());
        best = best.min(nanos.ok_or_else(|| format!("no time: {output}"))?);
    }
    Ok(best / rounds as f64)
}

fn instructions(
    binary: &str,
    environment: Environment,
    workload: &str,
    rounds: u64,
) -> Outcome<f64> {
    let callgrind = [
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        "--toggle-collect=heapline::stack::names::resolve*",
        "--collect-atstart=yes",
    ];
    let output = prepared(&callgrind, binary, environment, workload, rounds).output()?;
    collected(&output).ok_or_else(|| format!("valgrind counted nothing:\n{output}"))
}

/// A run of a program, under another one or not.
fn prepared(
    under: &[&str],
    binary: &str,
    environment: Environment,
    workload: &str,
    rounds: u64,
) -> Run {
    let folder = root().join("crates/sampler/bench/target/release");
    let binary = folder.join(binary).display().to_string();
    let rounds = rounds.to_string();
    let command = [under, &[&binary, workload, &rounds]].concat();
    let mut run = program(command[0], &command[1..]);
    for (name, value) in environment {
        run = run.env(name, value);
    }
    if environment.iter().any(|(name, _)| *name == "MEMTRACE_RATE") {
        run = run.env("MEMTRACE", &folder.join("trace.ctf").display().to_string());
    }
    run
}
