//! Reports fit the screen that they are printed on.

use std::path::Path;
use std::process::Command;

use heapline_text::columns;

fn report(arguments: &[&str], width: usize) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_heapline"))
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures"))
        .env("COLUMNS", width.to_string())
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(!text.is_empty(), "{arguments:?}: {output:?}");
    text
}

fn reports(trace: &str) -> Vec<Vec<&str>> {
    [
        &["info"][..],
        &["summary"],
        &["hotspots"],
        &["hotspots", "--by", "site", "--sort", "peak"],
        &["tree"],
        &["tree", "--bottom-up"],
        &["tree", "--focus", "M*"],
        &["series", "--by", "function"],
        &["stats"],
        &["stats", "--linear"],
        &["heatmap"],
        &["heatmap", "--times", "200"],
        &["leaks"],
        &["peak"],
        &["peak", "--without", "site = \"M*\"", "--by", "site"],
        &["blocks"],
        &["blocks", "--sort", "age"],
        &["diff", "--window", "..50%", "--window", "50%.."],
        &["check", "--budget", "live at peak < 1KiB"],
    ]
    .iter()
    .map(|arguments| {
        let (command, options) = arguments.split_first().unwrap();
        [command, &trace]
            .into_iter()
            .chain(options)
            .copied()
            .collect()
    })
    .collect()
}

const TRACES: [&str; 3] = [
    "mix-ocaml53/trace.ctf",
    "generated/domains.ctf",
    "odd/peakend.ctf",
];

#[test]
fn no_line_is_wider_than_the_screen() {
    for trace in TRACES {
        for arguments in reports(trace) {
            for width in [60, 80, 120, 200] {
                let text = report(&arguments, width);
                // Commands to copy stay on one line.
                let lines = text.lines().take_while(|line| *line != "Next");
                for line in lines.filter(|line| !line.trim_start().starts_with("heapline ")) {
                    assert!(columns(line) <= width, "{arguments:?} at {width}: {line}");
                    assert_eq!(line.trim_end(), line, "{arguments:?} at {width}");
                }
            }
        }
    }
}

#[test]
fn ascii_output_is_ascii() {
    for trace in TRACES {
        for mut arguments in reports(trace) {
            arguments.push("--ascii");
            let text = report(&arguments, 80);
            assert!(text.is_ascii(), "{arguments:?}: {text}");
        }
    }
}

/// Of all that is piped, names are what programs and people search for.
#[test]
fn names_are_whole_in_files_and_pipes() {
    let arguments = ["hotspots", "mix-ocaml53/trace.ctf", "--by", "site"];
    assert!(report(&arguments, 60).contains('…'));
    for arguments in reports("mix-ocaml53/trace.ctf") {
        let output = Command::new(env!("CARGO_BIN_EXE_heapline"))
            .args(&arguments)
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures"))
            .env_remove("COLUMNS")
            .env("LC_ALL", "C.UTF-8")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let cut = text.lines().find(|line| line.contains('…'));
        assert_eq!(cut, None, "{arguments:?}");
    }
}

/// The trace has `mix.ml`, as the compiler was given it.
#[test]
fn source_files_are_found_from_the_current_directory() {
    let text = report(&["source", "mix-ocaml53/trace.ctf", "Mix.cached"], 100);
    assert!(text.contains("let cached n = "), "{text}");
}

#[test]
fn the_query_is_the_first_line_of_all_reports() {
    let where_ = ["--where", "size > 2w"];
    let [one, other] = ["mix-ocaml53/trace.ctf", "mix-ocaml413/trace.ctf"];
    for arguments in [
        &["hotspots", one][..],
        &["summary", one, other],
        &["diff", one, other],
        &["diff", one, other, "--tree"],
    ] {
        let text = report(&[arguments, &where_].concat(), 100);
        let first = text.lines().next().unwrap();
        assert_eq!(first, "Selected: size > 2w", "{arguments:?}");
    }
}
