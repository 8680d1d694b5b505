//! `heapline dataset` and `heapline fleet`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use heapline_testkit::fixtures::VARIED as TRACES;
use heapline_testkit::generate::hostile_names;
use serde_json::Value;
use tempfile::TempDir;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapline"));
    command
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures"))
        .env("COLUMNS", "160")
        .env("LC_ALL", "C.UTF-8");
    command
}

fn heapline(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = heapline(arguments);
    assert_eq!(code(&output), 0, "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A folder and the name of a dataset in it.
fn dataset() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let dataset = folder.path().join("profiles").display().to_string();
    (folder, dataset)
}

fn add(dataset: &str, traces: &[&str], options: &[&str]) -> Output {
    heapline(&[&["dataset", "add", dataset], traces, options].concat())
}

fn runs(dataset: &str) -> Vec<Value> {
    let list = json(&["dataset", "list", dataset, "--json"]);
    list["runs"].as_array().unwrap().clone()
}

fn assert_near(a: f64, b: f64, what: &str) {
    assert!(
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
        "{what}: {a} {b}"
    );
}

#[test]
fn totals_of_runs_are_those_of_summaries() {
    let (_folder, dataset) = dataset();
    let added = add(&dataset, &TRACES, &[]);
    assert_eq!(code(&added), 0, "{added:?}");
    let runs = runs(&dataset);
    assert_eq!(runs.len(), TRACES.len());
    for (trace, line) in TRACES.iter().zip(stdout(&added).lines()) {
        let (_, id) = line.split_once("run=").unwrap();
        let id = id.trim_end_matches(", damaged");
        let run = runs.iter().find(|run| run["run"] == id).unwrap();
        let summary = json(&["summary", trace, "--json"]);
        for total in ["allocated", "live_at_peak", "live_at_end", "promoted"] {
            for unit in ["bytes", "blocks"] {
                let what = format!("{trace}: {total} {unit}");
                let column = format!("{total}_{unit}");
                let figures = &summary[total][unit];
                let number = |value: &Value| value.as_f64().unwrap();
                assert_near(number(&run[&column]), number(&figures["value"]), &what);
                // Where nothing was sampled, the error is an upper bound.
                if summary[total]["samples"] != 0 {
                    let variance = number(&run[column + "_variance"]);
                    let error = 1.959_963_984_540_054 * variance.sqrt();
                    let summed_up = number(&figures["error"]);
                    if total == "live_at_peak" {
                        // That the peak may be too high is no variance.
                        assert!(error <= 1.000_001 * summed_up, "{what}");
                    } else {
                        assert_near(error, summed_up, &what);
                    }
                }
            }
        }
        assert_eq!(
            run["sampled_blocks"], summary["subject"]["sampled_blocks"],
            "{trace}"
        );
        assert_eq!(run["duration_s"], summary["subject"]["duration"], "{trace}");
        assert_eq!(run["damaged"], trace.contains("damaged"), "{trace}");
    }
    let check = heapline(&["dataset", "check", &dataset]);
    assert_eq!((code(&check), stdout(&check)), (0, "5 runs, 0 problems\n"));
}

#[test]
fn labels_are_columns_and_the_list_is_a_table() {
    let (_folder, dataset) = dataset();
    let labels = [
        "--label",
        "service=a b/c",
        "--label",
        "version=1.4.2",
        "--label",
        "region=eu",
    ];
    add(&dataset, &TRACES[..1], &labels);
    let [run] = &runs(&dataset)[..] else {
        panic!("one run")
    };
    assert_eq!(run["service"], "a b/c");
    assert_eq!(run["version"], "1.4.2");
    assert_eq!(run["labels"]["region"], "eu");
    assert!(
        Path::new(&dataset)
            .join("service=a%20b%2Fc/day=2026-11-15")
            .is_dir()
    );
    let list = heapline(&["dataset", "list", &dataset]);
    for expected in ["a b/c", "1.4.2", "36.52 ± 0.78 MiB", "trace.ctf"] {
        assert!(stdout(&list).contains(expected), "{list:?}");
    }
}

#[test]
fn a_trace_that_cannot_be_read_does_not_stop_the_others() {
    let (_folder, dataset) = dataset();
    let traces = [
        "odd/empty.ctf",
        "README.md",
        "none.ctf",
        "generated/server.heap",
        "odd/t1000.ctf",
    ];
    let added = add(&dataset, &traces, &[]);
    assert_eq!(code(&added), 2);
    assert_eq!(stdout(&added).lines().count(), 2, "{added:?}");
    for expected in [
        "cannot add README.md: not a memtrace trace",
        "cannot add none.ctf: cannot open none.ctf: No such file",
        "cannot add generated/server.heap: generated/server.heap is a heap snapshot",
    ] {
        assert!(stderr(&added).contains(expected), "{added:?}");
    }
    let again = add(&dataset, &traces[..1], &["--label", "service=other"]);
    assert_eq!(code(&again), 0);
    assert!(
        stdout(&again).contains("odd/empty.ctf: already there as service="),
        "{again:?}"
    );
    assert_eq!(runs(&dataset).len(), 2);
}

#[test]
fn several_processes_add_the_same_traces_once() {
    let (_folder, dataset) = dataset();
    let children: Vec<_> = (0..4)
        .map(|n| {
            let label = format!("service=s{n}");
            let arguments = [
                &["dataset", "add", &dataset, "--label", &label],
                &TRACES[..],
            ]
            .concat();
            command(&arguments)
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let outputs = children
        .into_iter()
        .map(|child| child.wait_with_output().unwrap());
    let added = outputs.map(|output| {
        assert_eq!(code(&output), 0, "{output:?}");
        stdout(&output).matches(": added ").count()
    });
    assert_eq!(added.sum::<usize>(), TRACES.len());
    let check = heapline(&["dataset", "check", &dataset]);
    assert_eq!((code(&check), stdout(&check)), (0, "5 runs, 0 problems\n"));
}

/// The folders of adds that are not finished.
fn unfinished(dataset: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dataset).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let is_adding = |path: &PathBuf| path.join("stacks.parquet").exists();
    paths.filter(is_adding).collect()
}

#[test]
fn an_add_that_is_killed_leaves_no_part_of_a_run() {
    let (folder, dataset) = dataset();
    let program = heapline_testkit::generate::Program {
        allocations: 200_000,
        ..Default::default()
    };
    let trace = folder.path().join("large.ctf");
    fs::write(&trace, program.trace()).unwrap();
    let trace = trace.display().to_string();
    let mut child = command(&["dataset", "add", &dataset, &trace])
        .spawn()
        .unwrap();
    while unfinished(&dataset).is_empty() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let left = unfinished(&dataset).len();
    assert_eq!(left, 1, "it was finished before it was killed");
    assert!(runs(&dataset).is_empty());
    let check = heapline(&["dataset", "check", &dataset]);
    assert_eq!(code(&check), 1, "{check:?}");
    assert!(
        stdout(&check).contains("left by an add that was killed"),
        "{check:?}"
    );
    let repair = heapline(&["dataset", "check", &dataset, "--repair"]);
    assert_eq!(code(&repair), 0, "{repair:?}");
    assert!(unfinished(&dataset).is_empty());
    let again = add(&dataset, &[&trace], &[]);
    assert!(stdout(&again).contains(": added "), "{again:?}");
    let check = heapline(&["dataset", "check", &dataset]);
    assert_eq!((code(&check), stdout(&check)), (0, "1 run, 0 problems\n"));
}

#[test]
fn hostile_labels_and_folders_are_refused() {
    let (folder, dataset) = dataset();
    for (label, expected) in [
        ("version", "is not a label"),
        ("../x=1", "cannot be the key"),
        ("version=\u{1b}[2J", "no control characters"),
    ] {
        let output = add(&dataset, &TRACES[..1], &["--label", label]);
        assert_eq!(code(&output), 2);
        assert!(stderr(&output).contains(expected), "{output:?}");
        assert!(!stderr(&output).contains("\u{1b}[2J"), "{output:?}");
    }
    assert!(!Path::new(&dataset).exists());
    fs::write(folder.path().join("file"), "").unwrap();
    let folder = folder.path().display().to_string();
    for (arguments, expected) in [
        (
            &["dataset", "add", &folder, TRACES[0]][..],
            "is not a dataset, and not empty",
        ),
        (
            &["dataset", "list", &folder],
            "it has no heapline-dataset.json",
        ),
        (&["dataset", "check", &dataset], "cannot read"),
    ] {
        let output = heapline(arguments);
        assert_eq!(code(&output), 2);
        assert!(stderr(&output).contains(expected), "{output:?}");
    }
}

#[test]
fn hostile_names_do_not_reach_the_terminal() {
    let (folder, dataset) = dataset();
    let trace = folder.path().join("\u{1b}[2J\n\u{202e}.ctf");
    fs::write(&trace, hostile_names()).unwrap();
    let added = add(
        &dataset,
        &[&trace.display().to_string()],
        &["--label", "service=\u{202e}x"],
    );
    let list = heapline(&["dataset", "list", &dataset]);
    for output in [&added, &list] {
        assert_eq!(code(output), 0, "{output:?}");
        assert!(
            !stdout(output).contains(['\u{1b}', '\u{202e}']),
            "{output:?}"
        );
    }
    assert_eq!(stdout(&added).lines().count(), 1, "{added:?}");
}

#[test]
fn a_damaged_dataset_is_listed_as_far_as_it_is_intact() {
    let (_folder, dataset) = dataset();
    add(&dataset, &TRACES[..2], &["--label", "service=s"]);
    let run = runs(&dataset)[0]["run"].as_str().unwrap().to_owned();
    let table =
        Path::new(&dataset).join(format!("service=s/day=2026-11-15/run={run}/runs.parquet"));
    fs::write(&table, "no table").unwrap();
    let list = heapline(&["dataset", "list", &dataset, "--json"]);
    assert_eq!(code(&list), 2);
    assert!(stderr(&list).contains("runs.parquet"), "{list:?}");
    let found: Value = serde_json::from_slice(&list.stdout).unwrap();
    assert_eq!(found["runs"].as_array().unwrap().len(), 1);
    let check = heapline(&["dataset", "check", &dataset]);
    assert_eq!(code(&check), 1);
    assert!(stdout(&check).contains("2 runs, 1 problem\n"), "{check:?}");
}

#[cfg(unix)]
mod fleet {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    use super::*;

    /// A program that prints its arguments and exits with code 7.
    fn fake() -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("heapline-fleet");
        heapline_testkit::write_program(&path, "#!/bin/sh\nprintf '%s|' \"$@\"\nexit 7\n");
        folder
    }

    fn with_path(arguments: &[&str], path: &Path) -> Output {
        command(arguments).env("PATH", path).output().unwrap()
    }

    #[test]
    fn object_stores_and_sql_are_handed_over_with_all_arguments() {
        let folder = fake();
        for (arguments, expected) in [
            (
                &["dataset", "add", "s3://b/p", "a b.ctf", "--label", "x=1"][..],
                "dataset|add|s3://b/p|a b.ctf|--label|x=1|",
            ),
            (
                &["--ascii", "dataset", "list", "gs://b", "--json"],
                "dataset|list|gs://b|--json|",
            ),
            (&["dataset", "check", "az://b"], "dataset|check|az://b|"),
            (
                &["fleet", "sql", "--help", "-x", "a b"],
                "sql|--help|-x|a b|",
            ),
            (&["fleet", "--help"], "--help|"),
        ] {
            let output = with_path(arguments, folder.path());
            assert_eq!(
                (code(&output), stdout(&output)),
                (7, expected),
                "{output:?}"
            );
        }
    }

    #[test]
    fn without_the_program_the_error_says_how_to_get_it() {
        let empty = tempfile::tempdir().unwrap();
        for arguments in [
            &["dataset", "list", "s3://b/p"][..],
            &["fleet", "sql"],
            &["view", "s3://b/p", "--no-browser"],
        ] {
            let output = with_path(arguments, empty.path());
            assert_eq!(code(&output), 2);
            assert!(
                stderr(&output).contains("cargo install --path fleet"),
                "{output:?}"
            );
        }
    }

    #[test]
    fn a_dataset_is_shown_in_the_viewer() {
        let (_folder, dataset) = dataset();
        assert_eq!(code(&add(&dataset, &TRACES[..1], &[])), 0);
        let program = fake();
        let refused = with_path(&["view", &dataset, "--against", "old.ctf"], program.path());
        assert_eq!(code(&refused), 2);
        assert!(stderr(&refused).contains("is a dataset"), "{refused:?}");

        let mut viewer = command(&["view", &dataset, "--no-browser", "--port", "0"])
            .env("PATH", program.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let said = BufReader::new(viewer.stdout.take().unwrap()).read_line(&mut line);
        viewer.kill().unwrap();
        viewer.wait().unwrap();
        said.unwrap();
        assert!(line.starts_with("profiles: serving on http://"), "{line}");
    }
}
