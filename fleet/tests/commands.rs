//! The commands, as a user runs them.

mod support;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use datafusion::arrow::ipc::reader::FileReader;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;
use support::Fleet;

struct Dataset(tempfile::TempDir);

impl Dataset {
    fn new(fleet: Fleet) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fleet.write(folder.path());
        Self(folder)
    }

    fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    /// Runs a command with the dataset and more arguments.
    fn run(&self, command: &str, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_heapline-fleet"))
            .arg(command)
            .arg(self.path())
            .args(arguments)
            .output()
            .unwrap()
    }

    fn ok(&self, command: &str, arguments: &[&str]) -> String {
        let output = self.run(command, arguments);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, command: &str, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(command, &[arguments, &["--json"]].concat())).unwrap()
    }

    fn error(&self, command: &str, arguments: &[&str]) -> String {
        let output = self.run(command, arguments);
        assert!(!output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stdout), "");
        String::from_utf8(output.stderr).unwrap()
    }
}

fn small() -> Fleet {
    Fleet {
        services: 2,
        runs_per_version: 4,
        sites: 10,
        growth: (1.3, 1),
        ..Fleet::default()
    }
}

#[test]
fn answers_have_several_formats() {
    let dataset = Dataset::new(small());
    let statement = "select service, count(*) as runs from runs group by service order by service";
    let sql = |arguments: &[&str]| dataset.ok("sql", &[&[statement], arguments].concat());
    assert_eq!(
        sql(&["--format", "csv"]),
        "service,runs\nservice-0,8\nservice-1,8\n"
    );
    let json: Value = serde_json::from_str(&sql(&["--format", "json"])).unwrap();
    assert_eq!(json[1]["runs"], 8);
    assert!(sql(&[]).contains("| service-0 | 8    |"), "{}", sql(&[]));
    let file = |name: &str| dataset.0.path().join(name);
    for format in ["arrow", "parquet"] {
        let path = file(format);
        let arguments = ["--format", format, "--output", path.to_str().unwrap()];
        assert_eq!(sql(&arguments), "");
        let error = dataset.error("sql", &[&[statement], &arguments[..]].concat());
        assert!(error.contains("already exists; use --force"), "{error}");
        sql(&[&arguments[..], &["--force"]].concat());
    }
    let mut arrow = FileReader::try_new(fs::File::open(file("arrow")).unwrap(), None).unwrap();
    assert_eq!(arrow.next().unwrap().unwrap().num_rows(), 2);
    let parquet = fs::File::open(file("parquet")).unwrap();
    let mut parquet = ParquetRecordBatchReaderBuilder::try_new(parquet)
        .unwrap()
        .build()
        .unwrap();
    assert_eq!(parquet.next().unwrap().unwrap().num_rows(), 2);
}

#[test]
fn nothing_is_written() {
    let dataset = Dataset::new(small());
    let file = dataset.0.path().join("written.csv");
    let copy = format!("copy runs to '{}'", file.display());
    let external = format!(
        "create external table t stored as parquet location '{}'",
        dataset.path()
    );
    for statement in [
        "create table t as select 1",
        "create view v as select * from runs",
        &external,
        "create schema s",
        "create function f(int) returns int return $1",
        "drop table runs",
        "insert into runs select * from runs",
        "update runs set service = ''",
        "delete from runs",
        "truncate table runs",
        &copy,
        &format!("explain analyze {copy}"),
        "set datafusion.execution.batch_size = 1",
        "prepare p as select 1",
    ] {
        let error = dataset.error("sql", &[statement]);
        assert!(
            error.contains("read only") || error.contains("not"),
            "{statement}: {error}"
        );
    }
    assert!(!file.exists());
    assert!(
        dataset
            .error("sql", &["drop table runs"])
            .contains("datasets are read only")
    );
    assert!(
        dataset
            .error("sql", &[&copy])
            .contains("datasets are read only")
    );
    assert!(
        dataset
            .ok("sql", &["select count(*) from runs", "--format", "csv"])
            .ends_with("\n16\n")
    );
}

#[test]
fn a_failed_statement_leaves_no_file() {
    let dataset = Dataset::new(small());
    let path = dataset.0.path().join("answer.csv");
    let arguments = ["--format", "csv", "-o", path.to_str().unwrap()];
    let statement = "select 1 / (pid_of - pid_of) from (select count(*) as pid_of from runs)";
    dataset.error("sql", &[&[statement], &arguments[..]].concat());
    let left: Vec<_> = fs::read_dir(dataset.0.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("answer"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn the_shell_goes_on_after_an_error() {
    let dataset = Dataset::new(small());
    let mut child = Command::new(env!("CARGO_BIN_EXE_heapline-fleet"))
        .args(["shell", dataset.path(), "--format", "csv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = b"select 1 as one;\nselect nonsense; drop table runs;\nselect count(*) as runs\nfrom runs -- last";
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "one\n1\nruns\n16\n"
    );
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("nonsense"), "{errors}");
    assert!(errors.contains("read only"), "{errors}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn top_has_means_with_errors_and_shares() {
    let dataset = Dataset::new(small());
    let top = dataset.json("top", &["--by", "service"]);
    assert_eq!(top["runs"], 16);
    let rows = top["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    let share: f64 = rows
        .iter()
        .map(|row| row["percent"].as_f64().unwrap())
        .sum();
    assert!((share - 100.0).abs() < 1e-9);
    let exact = "select service, avg(allocated_bytes) as mean, stddev(allocated_bytes) / sqrt(count(*)) as error \
                 from runs group by service order by mean desc limit 1";
    let exact: Value =
        serde_json::from_str(&dataset.ok("sql", &[exact, "--format", "json"])).unwrap();
    for (ours, theirs) in [("mean", "mean"), ("standard_error", "error")] {
        let (ours, theirs) = (
            rows[0][ours].as_f64().unwrap(),
            exact[0][theirs].as_f64().unwrap(),
        );
        assert!((ours - theirs).abs() < 1e-9 * theirs, "{ours} {theirs}");
    }
    // Whole runs and the sum of their sites are the same.
    let sites = dataset.json("top", &["--by", "service", "--where", "line > 0"]);
    assert_eq!(sites["rows"].as_array().unwrap().len(), 2);
    let close = |a: &Value, b: &Value| {
        (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-6 * a.as_f64().unwrap()
    };
    assert!(close(&sites["rows"][0]["mean"], &rows[0]["mean"]));
    let text = dataset.ok("top", &["--by", "service,site", "--rows", "3"]);
    assert!(
        text.contains("Allocated per run, mean of 16 runs"),
        "{text}"
    );
    assert!(text.contains("17 more rows (see --rows)"), "{text}");
    assert!(text.contains("(src/module"), "{text}");
}

#[test]
fn sites_that_some_runs_lack_count_as_nothing_there() {
    let dataset = Dataset::new(small());
    let top = dataset.json("top", &["--by", "function", "--where", "line = 5"]);
    let row = &top["rows"][0];
    assert_eq!(row["runs"], 16);
    let statement =
        "select sum(allocated_bytes) as bytes, count(*) as runs from sites where line = 5";
    let sums: Value =
        serde_json::from_str(&dataset.ok("sql", &[statement, "--format", "json"])).unwrap();
    assert!(sums[0]["runs"].as_u64().unwrap() < 16);
    let mean = sums[0]["bytes"].as_f64().unwrap() / 16.0;
    assert!((row["mean"].as_f64().unwrap() - mean).abs() < 1e-9 * mean);
}

#[test]
fn a_planted_growth_is_the_only_regression() {
    let dataset = Dataset::new(Fleet {
        growth: (1.08, 1),
        runs_per_version: 10,
        ..small()
    });
    let report = dataset.json("regressions", &[]);
    assert_eq!(report["services"][0]["before"], "1.0");
    assert_eq!(report["services"][0]["after_runs"], 10);
    let rows = report["rows"].as_array().unwrap();
    let found: Vec<&str> = rows
        .iter()
        .map(|row| row["group"]["function"].as_str().unwrap())
        .collect();
    assert_eq!(found, ["Module0.f'0"; 2]);
    for row in rows {
        let percent = row["percent"].as_f64().unwrap();
        assert!((4.0..12.0).contains(&percent), "{percent}");
        assert!(row["q"].as_f64().unwrap() < 0.05);
    }
    let text = dataset.ok("regressions", &["--by", "site"]);
    assert!(text.contains("Module0.f'0 (src/module0.ml:1)"), "{text}");
    assert!(
        text.contains("service-0: 1.1 (10 runs) compared to 1.0 (10 runs)"),
        "{text}"
    );
    // The other way round, it is an improvement.
    let reverse = dataset.json("regressions", &["--before", "1.1", "--after", "1.0"]);
    assert_eq!(reverse["rows"].as_array().unwrap().len(), 0);
}

#[test]
fn diff_compares_any_property_of_runs() {
    let dataset = Dataset::new(Fleet {
        growth: (1.08, 1),
        runs_per_version: 10,
        ..small()
    });
    let diff = dataset.json(
        "diff",
        &[
            "1.0",
            "1.1",
            "--by",
            "version",
            "--service",
            "service-0",
            "--significant",
        ],
    );
    assert_eq!(
        (&diff["before_runs"], &diff["tested"]),
        (&Value::from(10), &Value::from(10))
    );
    assert_eq!(diff["rows"][0]["group"]["function"], "Module0.f'0");
    let services = dataset.json(
        "diff",
        &["service-0", "service-1", "--by", "service,version,module"],
    );
    assert_eq!(services["compared"], "service");
    assert_eq!(services["rows"].as_array().unwrap().len(), 14);
    let error = dataset.error("diff", &["1.0", "2.0"]);
    assert!(
        error.contains("no run has the version \"2.0\"; there are: 1.0, 1.1"),
        "{error}"
    );
    let error = dataset.error("diff", &["1.0", "1.1", "--by", "function"]);
    assert!(error.contains("--by needs a property of runs"), "{error}");
}

#[test]
fn one_run_of_a_version_is_not_called_significant() {
    let dataset = Dataset::new(Fleet {
        services: 1,
        runs_per_version: 1,
        growth: (9.0, 10),
        ..small()
    });
    let diff = dataset.json("diff", &["1.0", "1.1"]);
    assert_eq!(diff["tested"], 0);
    assert!(diff["rows"][0]["p"].is_null());
    let text = dataset.ok("diff", &["1.0", "1.1"]);
    assert!(
        text.contains("run-to-run variation needs two runs"),
        "{text}"
    );
}

#[test]
fn trend_follows_days_and_versions() {
    let dataset = Dataset::new(Fleet {
        growth: (1.5, 10),
        ..small()
    });
    let trend = dataset.json("trend", &["--by", "version,service"]);
    assert_eq!(trend["significant"], 2);
    let points = trend["series"][0]["points"].as_array().unwrap();
    assert_eq!(points[0]["name"], "1.0");
    let percent = points[1]["step"]["percent"].as_f64().unwrap();
    assert!((40.0..60.0).contains(&percent), "{percent}");
    let days = dataset.json(
        "trend",
        &["--where", "module = Module1", "--measure", "promoted"],
    );
    assert_eq!(days["series"][0]["points"].as_array().unwrap().len(), 8);
    let error = dataset.error("trend", &["--by", "site"]);
    assert!(error.contains("select sites with --where"), "{error}");
    assert!(dataset.ok("trend", &[]).contains("2026-11-01"));
}

#[test]
fn queries_that_sites_cannot_answer_are_refused() {
    let dataset = Dataset::new(small());
    let error = dataset.error("top", &["--where", "inside Parser.*"]);
    assert!(error.contains("`inside` needs whole stacks"), "{error}");
    let error = dataset.error("top", &["--where", "functoin = f"]);
    assert!(error.contains("did you mean"), "{error}");
}

#[test]
fn damaged_and_hostile_files_are_errors_that_name_them() {
    let dataset = Dataset::new(small());
    let sites = first_file(dataset.0.path(), "sites.parquet");
    let whole = fs::read(&sites).unwrap();
    for bytes in [&b""[..], b"PAR1 garbage PAR1", &whole[..whole.len() / 2]] {
        fs::write(&sites, bytes).unwrap();
        let error = dataset.error("sql", &["select sum(allocated_bytes) from sites"]);
        assert!(error.starts_with("heapline-fleet: "), "{error}");
    }
    fs::remove_file(&sites).unwrap();
    let error = dataset.error("top", &[]);
    assert!(error.contains("sites.parquet"), "{error}");
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let dataset = Dataset::new(small());
    let text = dataset.ok("sql", &["select chr(27) || '[2J' as name"]);
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn an_unreachable_cluster_is_a_clear_error() {
    let dataset = Dataset::new(small());
    let error = dataset.error("sql", &["select 1", "--cluster", "127.0.0.1:1"]);
    assert!(
        error.contains("cannot reach the scheduler of the cluster at 127.0.0.1:1"),
        "{error}"
    );
    let error = dataset.error("sql", &["select 1", "--cluster", "nonsense"]);
    assert!(error.contains("give HOST:PORT"), "{error}");
}

fn first_file(folder: &Path, name: &str) -> std::path::PathBuf {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                folders.push(path);
            } else if path.ends_with(name) {
                return path;
            }
        }
    }
    panic!("there is no {name}");
}
