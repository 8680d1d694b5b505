//! What a shell is offered that completes a command line.

use std::path::Path;
use std::process::Command;

/// The candidates for the last word.
fn candidates(words: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_heapline"))
        .args(["--", "heapline"])
        .args(words)
        .env("HEAPLINE_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .env("_CLAP_IFS", "\n")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[track_caller]
fn assert_offered(words: &[&str], expected: &str) {
    let found = candidates(words);
    assert!(found.iter().any(|word| word == expected), "{found:?}");
}

#[test]
fn commands_options_and_values_are_offered() {
    assert_offered(&["hot"], "hotspots");
    assert_offered(&["hotspots", "demo", "--ow"], "--own-code");
    assert_offered(&["hotspots", "demo", "--by", "mod"], "module");
}

#[test]
fn traces_and_heap_snapshots_are_offered_but_no_other_files() {
    assert_offered(&["hotspots", "mix-ocaml53/t"], "mix-ocaml53/trace.ctf");
    assert_offered(&["odd/peak"], "odd/peakend.ctf");
    assert_offered(&["retained", "generated/server."], "generated/server.heap");
    assert!(candidates(&["hotspots", "README"]).is_empty());
}

#[test]
fn functions_and_queries_of_the_trace_are_offered() {
    for words in [
        &["tree", "demo", "--focus", "Shop."][..],
        &["hotspots", "demo", "--hide", "Shop."],
        &["source", "demo", "Shop."],
    ] {
        let found = candidates(words);
        assert!(!found.is_empty(), "{words:?}");
        assert!(
            found.iter().all(|name| name.starts_with("Shop.")),
            "{found:?}"
        );
    }
    assert_offered(&["leaks", "demo", "--where", "prom"], "promoted");
    let found = candidates(&["leaks", "demo", "--where", "size > 1k and inside \"Shop."]);
    let is_continued = |query: &String| query.starts_with("size > 1k and inside \"Shop.");
    assert!(
        !found.is_empty() && found.iter().all(is_continued),
        "{found:?}"
    );
}

#[test]
fn a_trace_that_cannot_be_read_is_no_error() {
    assert!(candidates(&["tree", "mix.ml", "--focus", "C"]).is_empty());
    assert!(candidates(&["tree", "--focus", "C"]).is_empty());
}

/// This process is none of OCaml's.
#[cfg(target_os = "linux")]
#[test]
fn only_processes_of_ocaml_programs_are_offered() {
    let pid = std::process::id().to_string();
    assert!(!candidates(&["attach", &pid]).contains(&pid));
}
