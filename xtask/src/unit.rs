//! The stage `unit`: the tests of all crates.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, thread};

use crate::command::{Outcome, Run, lint, root};
use crate::test::{TESTS, build_workspace};
use crate::{ocaml, programs, workspace};

/// Tests that record programs, attach to them, and look at screens: they wait most of the time.
const WAITING: [&str; 3] = ["record", "live", "top"];

/// Runs the tests that wait beside those that compute, and then the examples in documentation.
pub(crate) fn run() -> Outcome {
    // Some run the examples, which are only built with everything.
    build_workspace()?;
    let compilers = ocaml::compilers()?;
    let programs = programs::set_up()?;
    let cores = thread::available_parallelism().map_or(2, usize::from);
    let tests = |targets: &[&str], threads: usize| -> Run {
        // What is missing is a failure here, not a test less. Those of arm64 have a stage of their own.
        let options = ["--no-fail-fast", "--", "--skip=arm64::"];
        lint(&[&TESTS[..], targets, &options].concat())
            .env("RUST_TEST_THREADS", &threads.to_string())
            .env(ocaml::COMPILERS, &compilers)
            .env(programs::PROGRAMS, &programs)
            .reproducible()
    };
    let named = |names: &[String]| -> Vec<String> {
        let options = names.iter().map(|name| format!("--test={name}"));
        options.collect()
    };
    let waiting: Vec<String> = named(&WAITING.map(str::to_owned));
    let waiting: Vec<&str> = waiting.iter().map(String::as_str).collect();
    let others = named(&other_tests()?);
    let others = others.iter().map(String::as_str);
    let others: Vec<&str> = ["--lib", "--bins"].into_iter().chain(others).collect();

    let log = root().join("target/unit-waiting.log");
    let [waited, computed] = thread::scope(|scope| {
        // With a test for each core, most of the time would be spent waiting.
        let waiting = scope.spawn(|| tests(&waiting, 3 * cores).run_into(&log));
        let computed = tests(&others, cores).run();
        let waited = waiting
            .join()
            .unwrap_or_else(|_| Err("the tests that wait ended in a panic".into()));
        [waited, computed]
    });
    print!("{}", fs::read_to_string(&log).unwrap_or_default());
    waited.and(computed)?;
    tests(&["--doc"], cores).run()
}

/// The names of the integration tests that compute.
fn other_tests() -> Outcome<Vec<String>> {
    let mut names = BTreeSet::new();
    for member in workspace::members()? {
        let Ok(entries) = fs::read_dir(member.folder.join("tests")) else {
            continue;
        };
        for entry in entries.flatten() {
            names.extend(test_name(&entry.path()));
        }
    }
    names.retain(|name| !WAITING.contains(&&**name));
    Ok(names.into_iter().collect())
}

/// The name of the integration test that a file or a directory is, if it is one.
fn test_name(path: &Path) -> Option<String> {
    let is_test = path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").is_file();
    is_test.then(|| path.file_stem()?.to_str().map(str::to_owned))?
}
