//! A trace cannot control the terminal that its reports are printed on.

use std::path::Path;
use std::process::{Command, Output};

use heapline_testkit::generate::{HOSTILE_NAMES, hostile_names};

/// Runs a command on the hostile trace, which is in a folder with a hostile name.
fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_heapline"))
        .args(arguments)
        .current_dir(folder)
        .env("COLUMNS", "200")
        .env("LC_ALL", "C.UTF-8")
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

/// Characters that must never be printed.
fn is_dangerous(c: char) -> bool {
    let bidi = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\
                \u{2066}\u{2067}\u{2068}\u{2069}";
    (c.is_control() && c != '\n') || bidi.contains(c) || "\u{2028}\u{2029}".contains(c)
}

fn assert_harmless(arguments: &[&str], output: &Output) {
    for stream in [&output.stdout, &output.stderr] {
        let text = std::str::from_utf8(stream).unwrap();
        assert!(!text.contains(is_dangerous), "{arguments:?}: {text:?}");
        assert!(
            !text.lines().any(|line| line.starts_with("fake")),
            "{arguments:?}: {text}"
        );
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("trace.ctf"), hostile_names()).unwrap();
    std::fs::write(
        folder.path().join("\u{1b}[2J\n\u{202e}.ctf"),
        hostile_names(),
    )
    .unwrap();
    let empty = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/odd/empty.ctf");
    std::fs::copy(empty, folder.path().join("other.ctf")).unwrap();
    folder
}

#[test]
fn reports_are_harmless() {
    let folder = folder();
    for trace in ["trace.ctf", "\u{1b}[2J\n\u{202e}.ctf"] {
        for (arguments, has_names) in [
            (&["info", trace][..], true),
            (&["summary", trace], true),
            (&["hotspots", trace], true),
            (&["hotspots", trace, "--by", "file"], true),
            (&["hotspots", trace, "--by", "module"], false),
            (&["tree", trace], true),
            (&["tree", trace, "--bottom-up"], true),
            (&["tree", trace, "--focus", "Evil.*"], true),
            (&["series", trace, "--by", "function"], true),
            (&["series", trace, "--by", "function", "--csv"], true),
            (&["stats", trace], false),
            (&["heatmap", trace], false),
            (&["leaks", trace], true),
            (&["leaks", trace, "--by", "function"], true),
            (&["peak", trace], true),
            (
                &["peak", trace, "--without", "site = \"x\u{1b}[2J\u{202e}\""],
                true,
            ),
            (&["blocks", trace], true),
            (&["diff", trace, trace], false),
            (
                &["diff", trace, "--window", "..50%", "--window", "50%.."],
                true,
            ),
            (
                &["diff", trace, "other.ctf", "--compat", "prof-spacetime"],
                true,
            ),
        ] {
            let output = run(folder.path(), arguments);
            assert!(output.status.success(), "{arguments:?}: {output:?}");
            assert_harmless(arguments, &output);
            let text = String::from_utf8(output.stdout).unwrap();
            if has_names {
                // What is not dangerous is still there.
                assert!(text.contains("Evil."), "{arguments:?}: {text}");
                assert!(text.contains('\u{fffd}'), "{arguments:?}: {text}");
            }
        }
        let arguments = ["check", trace, "--budget", "live at end < 1B"];
        let output = run(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(1));
        assert_harmless(&arguments, &output);
    }
}

#[test]
fn errors_and_warnings_are_harmless() {
    let folder = folder();
    let truncated = &hostile_names()[..3000];
    let damaged = "\u{1b}[2J\n\u{202e}damaged.ctf";
    std::fs::write(folder.path().join(damaged), truncated).unwrap();
    let pattern = format!("inside \"{}x\"", HOSTILE_NAMES[0]);
    for arguments in [
        &["summary", "\u{1b}[2J\nfake\u{202e}.ctf"][..],
        &["summary", damaged],
        &["summary", damaged, "--strict"],
        &["info", damaged],
        &["summary", "trace.ctf", "--where", &pattern],
        &["summary", "trace.ctf", "--where", "\u{1b}[2J\u{202e}"],
        &["cut", "trace.ctf", "-o", damaged],
    ] {
        let output = run(folder.path(), arguments);
        assert_harmless(arguments, &output);
        if arguments[0] != "info" {
            assert!(!output.stderr.is_empty(), "{arguments:?}");
        }
    }
}

#[test]
fn mistakes_in_queries_are_still_shown_on_lines_of_their_own() {
    let folder = folder();
    let output = run(
        folder.path(),
        &["summary", "trace.ctf", "--where", "sizze > 3"],
    );
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("\n  sizze > 3\n  ^^^^^ "), "{text}");
}
