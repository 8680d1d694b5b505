//! Development tasks.
//!
//! Few and small dependencies: it must build where nothing else does yet.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it is a program that talks to the developer"
)]

mod bench;
mod browser;
mod command;
mod consumers;
mod fuzz;
mod licenses;
mod ocaml;
mod package;
mod setup;
mod test;
mod workspace;

use std::process::ExitCode;

use command::{Outcome, cargo};

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  test      set up what is missing, then check everything: format, lints, tests, docs,
            fuzz targets, exports in the programs that they are for, the viewer in a
            browser, and what the README promises
  browser   check the viewer's page, and the built program in a browser
  package   make the packages for crates.io in target/package, install heapline from them
            into an empty folder without npm, and try it
  licenses [--write]
            check that deny.toml allows the licence of every dependency, and that
            THIRD-PARTY-NOTICES.md lists them; --write updates the list
  fuzz [S]  run each fuzz target for S seconds (60 if not given)
  bench [TRACE]
            speed of reading, writing and dumping, and instruction counts
  bench recording
            only what recording costs OCaml programs
  bench sampler
            what the sampler costs Rust programs, against other profilers
  ocaml     set up the OCaml compilers and programs that tests of recording need, and
            print the variable to set for `cargo test`
  types     generate the page's TypeScript declarations of requests and answers
  fixtures  make the fixtures that are generated, after their generator was changed
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["test"] => test::run(),
        ["browser"] => browser::check(),
        ["package"] => package::run(),
        ["licenses"] => licenses::check(false),
        ["licenses", "--write"] => licenses::check(true),
        ["fuzz"] => fuzz::run(60, None),
        ["fuzz", seconds] => match seconds.parse() {
            Ok(seconds) => fuzz::run(seconds, None),
            Err(_) => Err(format!("{seconds} is no number of seconds")),
        },
        ["bench"] => bench::run(None),
        ["bench", "recording"] => bench::recording(),
        ["bench", "sampler"] => bench::sampler(),
        ["bench", trace] => bench::run(Some(trace)),
        ["fixtures"] => fixtures(),
        ["types"] => types(true),
        ["ocaml"] => ocaml::set_up().map(|compilers| println!("{}={compilers}", ocaml::COMPILERS)),
        _ => {
            eprint!("{USAGE}");
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

/// Generates what the page knows of requests and answers, or checks that it is up to date.
fn types(write: bool) -> Outcome {
    let run = cargo(&[
        "test",
        "--quiet",
        "--package",
        "heapline-engine",
        "--features",
        "typescript",
        "--test",
        "typescript",
    ]);
    if write { run.env("BLESS", "1") } else { run }.run()
}
