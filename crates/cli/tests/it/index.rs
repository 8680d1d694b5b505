//! `heapline index`, `--memory` and `--no-index`.

use std::fs::{self, File, FileTimes};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use heapline_testkit::fixtures::{self, VARIED as TRACES};
use heapline_testkit::long_run::{Length, LongRun};
use tempfile::TempDir;

/// All that is computed from a profile.
const REPORTS: [&[&str]; 17] = [
    &["summary"],
    &["summary", "--json"],
    &["summary", "--by", "function", "--json"],
    &["hotspots", "--json"],
    &[
        "hotspots",
        "--where",
        "live at peak and size >= 16B",
        "--json",
    ],
    &["tree", "--json"],
    &["series", "--json"],
    &["series", "--by", "site", "--json"],
    &["stats", "--json"],
    &["leaks", "--json"],
    &["temporary", "--json"],
    &["peak", "--json"],
    &["blocks", "--where", "lifetime > 1ms", "--json"],
    &["heatmap", "--json"],
    &["stats", "--where", "lifetime > 1MiB", "--json"],
    &["info", "--json"],
    &["export", "--format", "collapsed", "--output", "-"],
];

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapline"));
    command
        .args(arguments)
        .env_remove("HEAPLINE_INDEX")
        .env("COLUMNS", "160");
    command
}

fn heapline(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// A copy of a trace in a folder of its own.
struct Copy {
    folder: TempDir,
    trace: PathBuf,
}

impl Copy {
    fn new(trace: impl AsRef<Path>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("trace.ctf");
        fs::copy(trace, &copy).unwrap();
        Self {
            folder,
            trace: copy,
        }
    }

    /// A trace with more blocks than the smallest limit of memory allows.
    fn large() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace.ctf");
        let run = LongRun {
            seed: 3,
            length: Length::Allocations(400_000),
            domains: 1,
        };
        run.write(File::create(&trace).unwrap()).unwrap();
        Self { folder, trace }
    }

    fn name(&self) -> &str {
        self.trace.to_str().unwrap()
    }

    fn index(&self) -> PathBuf {
        self.folder.path().join("trace.ctf.idx")
    }

    /// Writes the index.
    fn write_index(&self, options: &[&str]) -> Output {
        let output = heapline(&[&["index", self.name()], options].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        output
    }

    /// Runs a report on the trace.
    fn ask(&self, report: &[&str], options: &[&str]) -> Output {
        let (name, rest) = report.split_first().unwrap();
        heapline(&[&[*name, self.name()], rest, options].concat())
    }

    fn files(&self) -> Vec<String> {
        let entries = self.folder.path().read_dir().unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

#[test]
fn reports_are_the_same_with_an_index() {
    for trace in TRACES {
        let copy = Copy::new(fixtures::folder().join(trace));
        copy.write_index(&[]);
        for report in REPORTS {
            let plain = copy.ask(report, &["--no-index"]);
            let indexed = copy.ask(report, &[]);
            assert_eq!(plain, indexed, "{trace} {report:?}");
        }
        let strict = copy.ask(&["hotspots", "--strict"], &[]);
        assert_eq!(strict, copy.ask(&["hotspots", "--strict"], &["--no-index"]));
        assert_eq!(copy.files(), ["trace.ctf", "trace.ctf.idx"]);
    }
}

#[test]
fn traces_that_exceed_the_memory_are_read_and_nothing_is_written() {
    let copy = Copy::large();
    let options = ["--memory", "1MiB"];
    let expected = copy.ask(&["hotspots", "--json"], &["--no-index"]);
    let without = copy.ask(&["hotspots", "--json"], &["--memory", "1MiB", "--no-index"]);
    assert_eq!(without, expected);
    assert_eq!(copy.files(), ["trace.ctf"]);
    assert_eq!(copy.ask(&["hotspots", "--json"], &options), expected);
    assert_eq!(copy.files(), ["trace.ctf"], "reading never writes");
    copy.write_index(&options);
    for report in REPORTS {
        let indexed = copy.ask(report, &options);
        assert_eq!(indexed, copy.ask(report, &["--no-index"]), "{report:?}");
    }
    let recursion = ["tree", "--keep-recursion", "--json"];
    assert_eq!(
        copy.ask(&recursion, &options),
        copy.ask(&recursion, &["--no-index"])
    );
    // From a pipe there is nothing to keep.
    let piped = command(&["hotspots", "-", "--json", "--memory", "1MiB"])
        .stdin(File::open(&copy.trace).unwrap())
        .output()
        .unwrap();
    assert_eq!(piped, expected);
}

#[test]
fn an_index_of_another_trace_is_ignored() {
    let copy = Copy::new(fixtures::folder().join(TRACES[0]));
    copy.write_index(&[]);
    let again = copy.write_index(&[]);
    assert!(String::from_utf8_lossy(&again.stdout).contains("up to date"));
    fs::copy(fixtures::folder().join(TRACES[2]), &copy.trace).unwrap();
    let expected = copy.ask(&["summary"], &["--no-index"]);
    assert_eq!(copy.ask(&["summary"], &[]), expected);
    let written = copy.write_index(&[]);
    assert!(!String::from_utf8_lossy(&written.stdout).contains("up to date"));
    assert_eq!(copy.ask(&["summary"], &[]), expected);
}

/// The summary is kept: the blocks of the trace are not read for it.
#[test]
fn the_summary_is_answered_by_the_index() {
    let copy = Copy::large();
    let expected = copy.ask(&["summary"], &["--no-index"]);
    copy.write_index(&["--memory", "1MiB"]);
    let metadata = copy.trace.metadata().unwrap();
    let mut file = File::options().write(true).open(&copy.trace).unwrap();
    file.seek(SeekFrom::Start(metadata.len() / 2)).unwrap();
    file.write_all(&[0; 1000]).unwrap();
    let times = FileTimes::new().set_modified(metadata.modified().unwrap());
    file.set_times(times).unwrap();
    assert_eq!(copy.ask(&["summary"], &[]), expected);
    assert_ne!(copy.ask(&["summary"], &["--no-index"]), expected);
}

#[test]
fn a_damaged_index_is_ignored_or_an_error_but_never_a_wrong_answer() {
    let copy = Copy::large();
    copy.write_index(&[]);
    let whole = fs::read(copy.index()).unwrap();
    let report = ["hotspots", "--json"];
    let expected = copy.ask(&report, &["--no-index"]);
    let mut failed = 0;
    for part in 0..12 {
        let mut bytes = whole.clone();
        match part {
            0 => bytes.truncate(whole.len() - 1),
            1 => bytes.truncate(whole.len() / 2),
            2 => bytes.clear(),
            _ => bytes[whole.len() / 12 * part] ^= 0x10,
        }
        fs::write(copy.index(), bytes).unwrap();
        let output = copy.ask(&report, &[]);
        if output.status.success() {
            assert_eq!(output, expected, "{part}");
        } else {
            assert_eq!(output.status.code(), Some(2));
            assert!(stderr(&output).contains("--no-index"), "{output:?}");
            failed += 1;
        }
    }
    assert!(failed > 3);
    assert_eq!(copy.ask(&report, &["--no-index"]), expected);
}

#[test]
fn a_killed_command_leaves_nothing() {
    let copy = Copy::large();
    for wait in [20, 60, 150, 300, 600] {
        let mut child = command(&["index", copy.name(), "--memory", "1MiB"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        heapline_testkit::pass_time(Duration::from_millis(wait));
        child.kill().unwrap();
        let has_finished = child.wait().unwrap().success();
        let files = copy.files();
        if has_finished || files.len() > 1 {
            // It was complete already.
            assert_eq!(files, ["trace.ctf", "trace.ctf.idx"]);
            fs::remove_file(copy.index()).unwrap();
        }
    }
    copy.write_index(&["--memory", "1MiB"]);
    let indexed = copy.ask(&["hotspots", "--json"], &[]);
    assert_eq!(indexed, copy.ask(&["hotspots", "--json"], &["--no-index"]));
}

#[test]
fn indexes_can_be_switched_off() {
    let copy = Copy::new(fixtures::folder().join(TRACES[0]));
    let off = command(&["index", copy.name()])
        .env("HEAPLINE_INDEX", "off")
        .output()
        .unwrap();
    assert_eq!(off.status.code(), Some(2), "{off:?}");
    assert_eq!(copy.files(), ["trace.ctf"]);
    let spacetime = Copy::new(fixtures::folder().join("spacetime/mix/spacetime.profile.zst"));
    let refused = heapline(&["index", spacetime.name()]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(stderr(&refused).contains("memtrace"), "{refused:?}");
    assert_eq!(spacetime.files(), ["trace.ctf"]);
}

#[test]
#[cfg(unix)]
fn an_index_is_for_those_who_may_read_the_trace() {
    use std::os::unix::fs::PermissionsExt;
    for (trace, index) in [(0o600, 0o600), (0o640, 0o640), (0o444, 0o644)] {
        let copy = Copy::new(fixtures::folder().join(TRACES[0]));
        fs::set_permissions(&copy.trace, fs::Permissions::from_mode(trace)).unwrap();
        copy.write_index(&[]);
        let mode = fs::metadata(copy.index()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, index, "{mode:o}");
    }
}
