//! The table of supported OCaml versions in the README: each cell is what a test has just done.
//!
//! `HEAPLINE_UPDATE=1 cargo test --test record support_table` writes it.

use std::fs;
use std::panic::catch_unwind;
use std::process::Command;

use crate::attach::attach_in_system_call;
use crate::dormant::waiting;
use crate::run::Program;
use crate::snapshot;
use crate::toolchain::{Compiler, compilers, root};

/// Set, it has the table in the README rewritten.
const UPDATE: &str = "HEAPLINE_UPDATE";

/// The lines around the table.
const BEGIN: &str = "<!-- support table: begin -->\n";
const END: &str = "<!-- support table: end -->\n";

/// The columns.
const FEATURES: [&str; 5] = [
    "`record`",
    "`attach`",
    "`attach` after `record --wait`",
    "`snapshot`",
    "`record --snapshot end`",
];

/// The check of each feature; `None` if it is untested.
pub(crate) type Checks = [Option<fn(&Compiler)>; FEATURES.len()];

const CHECKS: Checks = [
    Some(record),
    Some(attach),
    Some(attach_to_waiting),
    Some(snapshot::check_running),
    Some(snapshot::check_end),
];

/// A recording has as many words as the program says, and the program does as it does without.
fn record(compiler: &Compiler) {
    let program = Program::new(compiler.program("maps"));
    let truth = program.words();
    let recording = program.record(&["--rate", "1e-2"]);
    assert_eq!(recording.ended, program.plain().0);
    let trace = recording.read();
    trace.assert_near(trace.heap_words(), truth, &compiler.version);
}

/// So does one of a program that runs already.
fn attach(compiler: &Compiler) {
    attach_in_system_call(compiler, "read", Command::new);
}

fn attach_to_waiting(compiler: &Compiler) {
    attach_in_system_call(compiler, "read", waiting);
}

/// The row of a compiler, with what works.
fn row(compiler: &Compiler, platform: &str, checks: Checks) -> String {
    let cells = checks.map(|check| {
        let Some(check) = check else {
            return "untested";
        };
        // What is wrong is said by the panic, in the output of this test.
        let works = catch_unwind(|| check(compiler)).is_ok();
        if works { "yes" } else { "no" }
    });
    format!(
        "| {} | {platform} | {} |",
        minor(&compiler.version),
        cells.join(" | ")
    )
}

/// `5.4` for `5.4.1`: the table is about all of its releases.
fn minor(version: &str) -> String {
    version.split('.').take(2).collect::<Vec<_>>().join(".")
}

fn header() -> String {
    let names = FEATURES.join(" | ");
    let rule = " --- |".repeat(2 + FEATURES.len());
    format!("| OCaml | platform | {names} |\n|{rule}\n")
}

#[test]
fn the_readme_says_what_works_with_which_version() {
    let all = compilers("the_readme_says_what_works_with_which_version");
    check_rows("x86-64 Linux", all, CHECKS);
}

/// Does what the rows of a platform say, and compares them.
pub(crate) fn check_rows(platform: &str, compilers: &[Compiler], checks: Checks) {
    if compilers.is_empty() {
        return;
    }
    let path = root().join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once(BEGIN).unwrap();
    let (table, after) = rest.split_once(END).unwrap();
    let claimed = table.strip_prefix(&header()).unwrap_or_default();
    let (claimed, others): (Vec<&str>, Vec<&str>) = claimed
        .lines()
        .partition(|row| row.split('|').nth(2).map(str::trim) == Some(platform));

    let mut tested: Vec<String> = compilers
        .iter()
        .map(|compiler| row(compiler, platform, checks))
        .collect();
    tested.sort();
    tested.dedup();
    if std::env::var_os(UPDATE).is_some() {
        let mut rows: Vec<&str> = tested.iter().map(String::as_str).chain(others).collect();
        rows.sort_by_key(|row| (row.contains("arm64"), *row));
        let table = rows.join("\n");
        let text = format!("{before}{BEGIN}{}{table}\n{END}{after}", header());
        fs::write(path, text).unwrap();
        return;
    }
    assert!(table.starts_with(&header()), "{table}");
    let (claimed, untested): (Vec<&str>, Vec<&str>) = claimed.into_iter().partition(|row| {
        let version = row.split('|').nth(1).unwrap().trim();
        compilers
            .iter()
            .any(|compiler| minor(&compiler.version) == version)
    });
    assert_eq!(claimed, tested, "the README is wrong; {UPDATE}=1 writes it");
    if !untested.is_empty() {
        heapline_testkit::missing(&format!("there are no compilers for {untested:?}"));
    }
}
