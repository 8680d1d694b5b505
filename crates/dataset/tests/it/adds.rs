//! Datasets in folders: adding, listing, checking.

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Table, fixture};
use heapline_dataset::{Added, Dataset, Error, FILES, Labels, MANIFEST, RunFolder};
use heapline_testkit::generate;
use heapline_trace::{TraceInfo, Writer};
use tempfile::TempDir;

const TRACES: [&str; 4] = [
    "mix-ocaml53/trace.ctf",
    "mix-ocaml413/trace.ctf",
    "generated/domains.ctf",
    "odd/empty.ctf",
];

fn new() -> (TempDir, Dataset) {
    let folder = tempfile::tempdir().unwrap();
    let dataset = Dataset::create(folder.path().join("dataset")).unwrap();
    (folder, dataset)
}

fn filled() -> (TempDir, Dataset) {
    let (folder, dataset) = new();
    for trace in TRACES {
        let labels = Labels::parse(["version=1", "region=eu"]);
        dataset.add(fixture(trace), &labels.unwrap()).unwrap();
    }
    (folder, dataset)
}

fn first(dataset: &Dataset) -> (RunFolder, PathBuf) {
    let folder = dataset.run_folders().unwrap().remove(0);
    let path = folder.in_dataset(dataset.folder());
    (folder, path)
}

/// The reasons of all problems, one per line.
fn problems(dataset: &Dataset) -> String {
    let problems = dataset.check().unwrap().problems;
    let lines = problems.iter().map(|problem| problem.reason.clone() + "\n");
    lines.collect()
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[test]
fn runs_are_listed_as_they_were_added() {
    let (_folder, dataset) = filled();
    let runs = dataset.runs().unwrap();
    assert_eq!(runs.len(), TRACES.len());
    for (folder, info) in runs {
        let info = info.unwrap();
        assert_eq!(info.folder(), folder);
        assert_eq!(info.version.as_deref(), Some("1"));
        assert_eq!(info.labels.len(), 2);
        let table = Table::read(&folder.in_dataset(dataset.folder()).join("runs.parquet"));
        assert_eq!(table.texts("run"), [Some(info.run.to_string())]);
        assert_eq!(table.texts("service"), [Some(info.service)]);
    }
    let verdict = dataset.check().unwrap();
    assert_eq!(
        (verdict.runs, verdict.problems.len()),
        (TRACES.len(), 0),
        "{verdict:?}"
    );
}

#[test]
fn the_same_trace_is_added_once_whatever_its_labels() {
    let (_folder, dataset) = filled();
    let before = dataset.run_folders().unwrap();
    for trace in TRACES {
        let labels = Labels::parse(["service=other"]).unwrap();
        let added = dataset.add(fixture(trace), &labels).unwrap();
        assert!(matches!(added, Added::Known(_)), "{added:?}");
    }
    assert_eq!(dataset.run_folders().unwrap(), before);
}

#[test]
fn several_threads_add_the_same_traces_once() {
    let (_folder, dataset) = new();
    let new: usize = std::thread::scope(|scope| {
        let add = |service: usize| {
            let labels = Labels::parse([format!("service=s{service}")]).unwrap();
            let results = TRACES.map(|trace| dataset.add(fixture(trace), &labels).unwrap());
            let new = results
                .iter()
                .filter(|added| matches!(added, Added::New(_)));
            new.count()
        };
        let threads: Vec<_> = (0..4).map(|n| scope.spawn(move || add(n))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(new, TRACES.len());
    let verdict = dataset.check().unwrap();
    assert_eq!(
        (verdict.runs, verdict.problems.len()),
        (TRACES.len(), 0),
        "{verdict:?}"
    );
    assert!(verdict.leftovers.is_empty(), "{verdict:?}");
}

#[test]
fn a_trace_that_cannot_be_read_leaves_nothing_behind() {
    let (folder, dataset) = new();
    let text = folder.path().join("text.ctf");
    fs::write(&text, "no trace").unwrap();
    for (trace, expected) in [
        (text, "not a memtrace trace"),
        (folder.path().join("none.ctf"), "cannot open"),
        (folder.path().to_owned(), "cannot open"),
        (
            fixture("spacetime/without-positions.profile"),
            "no single blocks",
        ),
    ] {
        let error = dataset
            .add(&trace, &Labels::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(entries(dataset.folder()), [MANIFEST]);
}

#[test]
fn damaged_traces_are_added_and_marked() {
    let (_folder, dataset) = new();
    for (trace, is_damaged) in [("damaged/truncated.ctf", true), ("odd/peakend.ctf", false)] {
        let Added::New(info) = dataset.add(fixture(trace), &Labels::default()).unwrap() else {
            panic!("{trace} is new");
        };
        assert_eq!(info.damaged, is_damaged);
    }
    assert_eq!(problems(&dataset), "");
}

#[test]
fn names_of_programs_cannot_leave_the_dataset() {
    let (folder, dataset) = new();
    for (n, name) in [
        "..",
        "../../../etc/x",
        "a\0b",
        "",
        "x/\u{1b}[2J%2e=",
        &"é".repeat(5000),
    ]
    .into_iter()
    .enumerate()
    {
        let info = TraceInfo {
            executable_name: name.into(),
            pid: n as u64,
            start_time: u64::MAX >> n,
            ..generate::info()
        };
        let trace = Writer::new(Vec::new(), &info).unwrap().finish().unwrap();
        let path = folder.path().join("hostile.ctf");
        fs::write(&path, trace).unwrap();
        let Added::New(info) = dataset.add(&path, &Labels::default()).unwrap() else {
            panic!("{name:?} is new");
        };
        assert!(info.folder().in_dataset(dataset.folder()).is_dir());
    }
    assert_eq!(problems(&dataset), "");
    assert_eq!(entries(folder.path()).len(), 2);
    assert!(
        entries(dataset.folder())
            .iter()
            .all(|name| name == MANIFEST || name.starts_with("service="))
    );
}

#[test]
fn only_new_and_empty_folders_become_datasets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    assert!(matches!(Dataset::open(path), Err(Error::NotADataset(_))));
    assert!(matches!(
        Dataset::open(path.join("none")),
        Err(Error::Io { .. })
    ));
    fs::write(path.join("file"), "").unwrap();
    assert!(matches!(Dataset::create(path), Err(Error::NotEmpty(_))));
    fs::remove_file(path.join("file")).unwrap();
    Dataset::create(path).unwrap();
    fs::write(path.join("file"), "").unwrap();
    Dataset::create(path).unwrap();
    for (manifest, expected) in [
        (
            r#"{"format": "heapline-dataset", "version": 2}"#,
            "version 2",
        ),
        (
            r#"{"format": "other", "version": 1}"#,
            "not a heapline-dataset",
        ),
        ("", "EOF"),
    ] {
        fs::write(path.join(MANIFEST), manifest).unwrap();
        let error = Dataset::create(path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_run_that_lacks_a_table_is_reported() {
    for file in FILES {
        let (_folder, dataset) = filled();
        let (_, path) = first(&dataset);
        fs::remove_file(path.join(file)).unwrap();
        assert!(
            problems(&dataset).contains(&format!("{file} is missing")),
            "{file}"
        );
    }
}

#[test]
fn tables_that_are_cut_or_overwritten_are_reported() {
    for file in FILES {
        let (_folder, dataset) = filled();
        let (_, path) = first(&dataset);
        let path = path.join(file);
        let bytes = fs::read(&path).unwrap();
        for harmed in [
            &bytes[..bytes.len() / 2],
            &bytes[..bytes.len() - 1],
            b"",
            b"PAR1PAR1",
        ] {
            fs::write(&path, harmed).unwrap();
            assert_eq!(problems(&dataset).lines().count(), 1, "{file}");
        }
        fs::write(&path, &bytes).unwrap();
        assert_eq!(problems(&dataset), "");
    }
}

#[test]
fn each_bit_that_changes_is_reported() {
    let (_folder, dataset) = new();
    dataset.add(fixture(TRACES[0]), &Labels::default()).unwrap();
    let (_, path) = first(&dataset);
    for file in FILES {
        let path = path.join(file);
        let bytes = fs::read(&path).unwrap();
        let bits = bytes.len() * 8;
        for place in 0..80 {
            let bit = bits * place / 80 + place % 8;
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, changed).unwrap();
            assert_ne!(problems(&dataset), "", "{file}, bit {bit}");
        }
        fs::write(&path, &bytes).unwrap();
    }
    assert_eq!(problems(&dataset), "");
}

#[test]
fn tables_of_another_run_are_reported() {
    for file in FILES {
        let (_folder, dataset) = filled();
        let folders = dataset.run_folders().unwrap();
        let [a, b] = [0, 1].map(|n| folders[n].in_dataset(dataset.folder()).join(file));
        fs::copy(a, b).unwrap();
        let problems = problems(&dataset);
        // A table without rows is not of any run, but its sums differ.
        assert_eq!(problems.lines().count(), 1, "{file}: {problems}");
    }
}

#[test]
fn runs_that_are_there_twice_and_foreign_files_are_reported() {
    let (_folder, dataset) = filled();
    let (mut folder, path) = first(&dataset);
    folder.service = "other".to_owned();
    let copy = folder.in_dataset(dataset.folder());
    fs::create_dir_all(&copy).unwrap();
    for file in FILES {
        fs::copy(path.join(file), copy.join(file)).unwrap();
    }
    fs::write(copy.parent().unwrap().join("notes.txt"), "").unwrap();
    let problems = problems(&dataset);
    for expected in [
        "this run twice",
        "another run than its folder",
        "does not belong",
    ] {
        assert!(problems.contains(expected), "{problems}");
    }
}

#[test]
fn what_a_killed_add_left_is_reported_and_removed() {
    let (_folder, dataset) = filled();
    let left = dataset.folder().join(".adding-1-0");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("blocks.parquet"), "half").unwrap();
    let verdict = dataset.check().unwrap();
    assert_eq!(verdict.leftovers, std::slice::from_ref(&left));
    assert_eq!((verdict.runs, verdict.under_way), (TRACES.len(), 0));
    dataset.remove_leftovers(&verdict.leftovers).unwrap();
    assert!(!left.exists());
    assert!(dataset.check().unwrap().leftovers.is_empty());
}
