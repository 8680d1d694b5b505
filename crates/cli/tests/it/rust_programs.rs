//! `heapline record` on Rust programs that have heapline's allocator.
#![cfg(recording)]

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use heapline_testkit::Killed;
use serde_json::Value;
use tempfile::TempDir;

use crate::examples::example;
use crate::setuid::setuid;

fn heapline(folder: &TempDir, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_heapline"))
        .args(arguments)
        .current_dir(folder)
        .env("COLUMNS", "200")
        .env_remove("MEMTRACE")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The line of an example that has this in it.
fn line_of(name: &str, part: &str) -> usize {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sampler/examples");
    let source = std::fs::read_to_string(examples.join(name)).unwrap();
    1 + source.lines().position(|line| line.contains(part)).unwrap()
}

#[test]
fn the_line_of_a_leak_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let leak: &str = &example("leak");
    let recorded = heapline(&folder, &["record", "-o", "leak.ctf", "--", leak]);
    let said = text(&recorded.stderr);
    assert!(recorded.status.success(), "{said}");
    assert!(said.contains("leak.ctf: ") && said.contains("blocks sampled, one per 78.1 KiB"));
    assert_eq!(
        text(&recorded.stdout),
        "44688890\n",
        "its output is its own"
    );
    assert!(!folder.path().join("leak.ctf.tail").exists());

    let leaks = text(&heapline(&folder, &["leaks", "leak.ctf"]).stdout);
    let place = format!("leak.rs:{}", line_of("leak.rs", "format!("));
    // The first row that grows. Its trend depends on how evenly a busy machine runs the program.
    let first = leaks
        .lines()
        .find(|line| line.trim_start().starts_with('+'));
    assert!(
        first.is_some_and(|row| row.contains("leak::answer") && row.contains(&place)),
        "{leaks}"
    );
}

#[test]
fn attaching_to_a_rust_program_is_refused_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let attach = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped());
        let running = Killed(command.stdout(Stdio::null()).spawn().unwrap());
        let attached = heapline(&folder, &["attach", &running.0.id().to_string()]);
        assert_eq!(attached.status.code(), Some(2));
        text(&attached.stderr)
    };
    // It waits for a trace.
    let plain = attach(env!("CARGO_BIN_EXE_heapline"), &["info", "-"]);
    assert!(
        plain.contains("is a Rust program") && plain.contains("add Heapline's allocator to it"),
        "{plain}"
    );
    let with_sampler = attach(&example("server"), &["0"]);
    assert!(
        with_sampler.contains("is a Rust program")
            && with_sampler.contains("heapline record -- PROGRAM"),
        "{with_sampler}"
    );
}

#[test]
fn what_is_asked_for_is_what_the_program_does() {
    let folder = tempfile::tempdir().unwrap();
    let leak: &str = &example("leak");
    let options = [
        "record",
        "--rate",
        "1e-3",
        "--context",
        "a test",
        "-o",
        "t.ctf",
        "--",
        leak,
    ];
    assert!(heapline(&folder, &options).status.success());
    let info = text(&heapline(&folder, &["info", "t.ctf"]).stdout);
    assert!(
        info.contains("one sample per 7.81 KiB") && info.contains("a test"),
        "{info}"
    );
    // Some 115 MiB were allocated, and half of that was kept. There is no heap of OCaml's.
    assert!(
        !info.contains("minor") && !info.contains("headers") && info.contains("Live at end"),
        "{info}"
    );

    let stats = text(&heapline(&folder, &["stats", "t.ctf"]).stdout);
    assert!(
        stats.contains("Sizes in bytes") && !stats.contains("collector"),
        "{stats}"
    );

    // Without `record`, as memtrace does it.
    let plain = Command::new(leak)
        .env("MEMTRACE", folder.path().join("plain.ctf"))
        .output()
        .unwrap();
    assert!(plain.status.success() && plain.stderr.is_empty());
    let info = text(&heapline(&folder, &["info", "plain.ctf"]).stdout);
    assert!(info.contains("one sample per 781 KiB"), "{info}");
    assert!(!folder.path().join("plain.ctf.tail").exists());
}

#[test]
fn a_block_of_one_byte_has_one_byte() {
    let folder = tempfile::tempdir().unwrap();
    let flags: &str = &example("flags");
    let options = ["record", "--rate", "1", "-o", "t.ctf", "--", flags];
    assert!(heapline(&folder, &options).status.success());
    let json = |arguments: &[&str]| -> Value {
        let output = heapline(&folder, arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };

    let info = json(&["info", "t.ctf", "--json"]);
    assert_eq!(info["trace"]["runtime"], "native");
    assert_eq!(info["trace"]["word_size"], 8);
    assert_eq!(info["is_exact"], true);
    assert_eq!(info["events"]["external"], 0);
    assert_eq!(info["bytes"]["native"], info["bytes"]["allocated"]);

    let query = "inside flags::flag and heap = native";
    // A word has 8 bytes, as the word that the rate is for.
    let tests = ["", " and size = 1", " and size >= 0.125w and size < 0.2w"];
    for query in tests.map(|test| format!("{query}{test}")) {
        let summary = json(&["summary", "t.ctf", "--json", "--where", &query]);
        let allocated = &summary["allocated"];
        assert_eq!(allocated["blocks"]["value"], 10_000.0, "{query}");
        assert_eq!(allocated["bytes"]["value"], 10_000.0, "{query}");
        assert_eq!(allocated["samples"], 10_000, "{query}");
    }
}

#[test]
fn a_rust_program_is_kept_within_a_size() {
    let folder = tempfile::tempdir().unwrap();
    let leak: &str = &example("leak");
    let options = ["--keep", "1MiB", "--rate", "1e-3", "-o", "kept.ctf", "--"];
    let recorded = heapline(&folder, &[&["record"], &options[..], &[leak]].concat());
    let said = text(&recorded.stderr);
    assert!(recorded.status.success(), "{said}");
    assert_eq!(text(&recorded.stdout), "44688890\n");
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let trace = folder.path().join("kept.ctf");
    assert!(std::fs::metadata(trace).unwrap().len() <= 1 << 18);
    let live = heapline(&folder, &["summary", "kept.ctf", "--where", "live at end"]);
    let live = text(&live.stdout);
    assert!(live.contains("leak::answer"), "{live}");
}

#[test]
fn a_file_that_cannot_be_written_is_said_and_the_program_runs() {
    let output = Command::new(example("leak"))
        .env("MEMTRACE", "/no/such/folder/t.ctf")
        .output()
        .unwrap();
    assert!(output.status.success());
    let said = text(&output.stderr);
    assert!(
        said.contains("not recorded: cannot write /no/such/folder/t.ctf"),
        "{said}"
    );
    assert_eq!(text(&output.stdout), "44688890\n");
}

#[test]
fn traces_are_only_for_their_user() {
    let folder = tempfile::tempdir().unwrap();
    let leak: &str = &example("leak");
    for keep in [&[][..], &["--keep", "1MiB"]] {
        let options = [&["record", "--force", "-o", "t.ctf"], keep, &["--", leak]].concat();
        let output = heapline(&folder, &options);
        assert!(output.status.success(), "{output:?}");
        let mode = folder.path().join("t.ctf").metadata().unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "{keep:?}");
    }
}

#[test]
fn a_setuid_program_does_not_write_where_its_user_wants() {
    let folder = tempfile::tempdir().unwrap();
    let test = "a_setuid_program_does_not_write_where_its_user_wants";
    let program = example("leak");
    let Some(mut command) = setuid(test, Path::new(&program), folder.path()) else {
        return;
    };
    let precious = folder.path().join("precious");
    std::fs::write(&precious, "of root").unwrap();
    let variables = [
        vec![("MEMTRACE", "precious")],
        vec![
            ("HEAPLINE_PREFIX", "precious"),
            ("HEAPLINE_TRACE", "precious"),
        ],
    ];
    for variables in variables {
        let output = command
            .envs(variables)
            .current_dir(&folder)
            .output()
            .unwrap();
        assert_eq!(text(&output.stdout), "44688890\n", "{output:?}");
        assert_eq!(text(&output.stderr), "");
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "of root");
    }
    // The program, `id`, and the file.
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3);
}
