//! Development tasks.
//!
//! Few and small dependencies: it must build where nothing else does yet.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it is a program that talks to the developer"
)]

mod arm64;
mod bench;
mod browser;
mod command;
mod consumers;
mod debian;
mod fleet;
mod fuzz;
mod licenses;
mod ocaml;
mod package;
mod programs;
mod reproduce;
mod setup;
mod test;
mod unit;
mod workspace;

use std::process::ExitCode;

use command::{Outcome, cargo};

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  test [STAGE...]
            install missing tools, then run all checks, or those of some stages (below)
  package   build the packages for crates.io in target/package, install heapline from them
            into an empty directory without npm, and try it
  licenses [--write]
            check that deny.toml allows the licence of every dependency, and that
            THIRD-PARTY-NOTICES.md lists them; --write updates the list
  fuzz [S]  run each fuzz target for S seconds [default: 60]
  bench [TRACE]
            measure the speed of reading, writing and dumping, and count instructions
  bench recording
            measure the overhead of recording OCaml programs
  bench dataset FOLDER
            measure adding 2,000 runs to a dataset, and leave it in a folder
  bench large FOLDER
            measure traces of up to 8 GiB within 1 GiB of memory, and leave them in a folder
  bench programs
            measure user time and memory of real programs, plain and recorded
  bench sampler
            measure the overhead of the sampler in Rust programs, and of other profilers
  ocaml [programs]
            set up the OCaml compilers and programs for the recording tests, or only the programs,
            and print the environment variables for `cargo test`
  stress [ATTACHES SNAPSHOTS [SEED]]
            attach to programs with four domains, and take snapshots of them, at random moments,
            so many times with each OCaml 5 [default: 500 200, and a seed from the time]
  reproduce build the committed program in two directories, and check that both are the same
  types     generate the page's TypeScript declarations of requests and answers
  fixtures  regenerate the fixtures after changing their generator
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["test", ref stages @ ..] => test::run(stages),
        ["package"] => package::run(),
        ["licenses"] => licenses::check(false),
        ["licenses", "--write"] => licenses::check(true),
        ["fuzz"] => fuzz::run(60),
        ["fuzz", seconds] => match seconds.parse() {
            Ok(seconds) => fuzz::run(seconds),
            Err(_) => Err(format!("{seconds} is not a number of seconds")),
        },
        ["bench"] => bench::run(None),
        ["bench", "recording"] => bench::recording(),
        ["bench", "dataset", folder] => bench::dataset(folder),
        ["bench", "large", folder] => bench::large(folder),
        ["bench", "programs"] => bench::programs(),
        ["bench", "sampler"] => bench::sampler(),
        ["bench", trace] => bench::run(Some(trace)),
        ["stress"] => test::stress("500", "200", None),
        ["stress", attaches, snapshots] => test::stress(attaches, snapshots, None),
        ["stress", attaches, snapshots, seed] => test::stress(attaches, snapshots, Some(seed)),
        ["fixtures"] => fixtures(),
        ["reproduce"] => reproduce::run(),
        ["types"] => types(),
        ["ocaml"] => ocaml::set_up().and_then(|compilers| {
            let programs = programs::set_up()?;
            println!("{}={compilers}", ocaml::COMPILERS);
            println!("{}={programs}", programs::PROGRAMS);
            Ok(())
        }),
        ["ocaml", "programs"] => {
            programs::set_up().map(|programs| println!("{}={programs}", programs::PROGRAMS))
        }
        _ => {
            eprint!("{USAGE}\nStages of test:\n\n{}", test::list());
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("xtask: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn fixtures() -> Outcome {
    cargo(&[
        "run",
        "--quiet",
        "--package",
        "heapline-testkit",
        "--bin",
        "make-fixtures",
    ])
    .run()
}

/// Generates what the page knows of requests and answers; `cargo test` checks that it is up to date.
fn types() -> Outcome {
    cargo(&[
        "test",
        "--quiet",
        "--package",
        "heapline-engine",
        "--features",
        "typescript",
        "--test=it",
        "typescript::",
    ])
    .env("BLESS", "1")
    .run()
}
