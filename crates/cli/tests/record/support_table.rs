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

/// What the table is between.
const BEGIN: &str = "<!-- support table: begin -->\n";
const END: &str = "<!-- support table: end -->\n";

/// The platform that the programs of this run are for. Rows of others are left as they are.
const PLATFORM: &str = "x86-64 Linux";

type Check = fn(&Compiler);

/// The columns.
const FEATURES: [(&str, Check); 5] = [
    ("`record`", record),
    ("`attach`", attach),
    ("`attach` after `record --wait`", attach_to_waiting),
    ("`snapshot`", snapshot::check_running),
    ("`record --snapshot end`", snapshot::check_end),
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
fn row(compiler: &Compiler) -> String {
    let cells = FEATURES.map(|(_, check)| {
        // What is wrong is said by the panic, in the output of this test.
        let works = catch_unwind(|| check(compiler)).is_ok();
        if works { "yes" } else { "no" }
    });
    format!(
        "| {} | {PLATFORM} | {} |",
        minor(&compiler.version),
        cells.join(" | ")
    )
}

/// `5.4` for `5.4.1`: the table is about all of its releases.
fn minor(version: &str) -> String {
    version.split('.').take(2).collect::<Vec<_>>().join(".")
}

fn header() -> String {
    let names = FEATURES.map(|(name, _)| name).join(" | ");
    let rule = " --- |".repeat(2 + FEATURES.len());
    format!("| OCaml | platform | {names} |\n|{rule}\n")
}

/// Returns true if a row is about the platform of this run.
fn is_ours(row: &str) -> bool {
    row.split('|')
        .nth(2)
        .is_some_and(|cell| cell.trim() == PLATFORM)
}

#[test]
fn the_readme_says_what_works_with_which_version() {
    let all = compilers("the_readme_says_what_works_with_which_version");
    if all.is_empty() {
        return;
    }
    let path = root().join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once(BEGIN).unwrap();
    let (table, after) = rest.split_once(END).unwrap();
    let claimed = table.strip_prefix(&header());
    let claimed: Vec<&str> = claimed.unwrap_or_default().lines().collect();

    let mut tested: Vec<String> = all.iter().map(row).collect();
    tested.sort();
    tested.dedup();
    if std::env::var_os(UPDATE).is_some() {
        let others = claimed.iter().filter(|row| !is_ours(row));
        tested.extend(others.map(|row| (*row).to_owned()));
        let table = tested.join("\n");
        let text = format!("{before}{BEGIN}{}{table}\n{END}{after}", header());
        fs::write(path, text).unwrap();
        return;
    }
    assert!(table.starts_with(&header()), "{table}");
    let (claimed, untested): (Vec<&str>, Vec<&str>) = claimed
        .into_iter()
        .filter(|row| is_ours(row))
        .partition(|row| {
            let version = row.split('|').nth(1).unwrap().trim();
            all.iter()
                .any(|compiler| minor(&compiler.version) == version)
        });
    assert_eq!(claimed, tested, "the README is wrong; {UPDATE}=1 writes it");
    if !untested.is_empty() {
        heapline_testkit::missing(&format!(
            "the_readme_says_what_works_with_which_version: no compilers for {untested:?}"
        ));
    }
}
