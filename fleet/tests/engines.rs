//! Statements have equal answers on DataFusion, on a Ballista cluster and in DuckDB.

mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::Fleet;
use support::cluster::Cluster;

/// A Python with the package duckdb.
const PYTHON: &str = "HEAPLINE_PYTHON";

fn fleet() -> Fleet {
    Fleet {
        services: 2,
        runs_per_version: 5,
        sites: 40,
        growth: (1.2, 2),
        ..Fleet::default()
    }
}

/// Runs heapline-fleet; returns its standard output, or its standard error if it fails.
fn run(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_heapline-fleet"))
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() {
        Ok(text(output.stdout))
    } else {
        Err(text(output.stderr))
    }
}

/// The statements of all reports, and some that people would write.
fn statements(dataset: &str) -> Vec<String> {
    let mut all = vec![
        "select count(*) as runs, count(distinct service) as services from runs".to_owned(),
        "select service, version, sum(allocated_bytes) as bytes, sqrt(sum(allocated_bytes_variance)) as error \
         from runs group by service, version".to_owned(),
        "select f.function, count(*) as blocks, sum(b.estimated_bytes) as bytes from blocks b \
         join stacks s on s.run = b.run and s.stack_id = b.stack_id \
         join frames f on f.run = s.run and f.frame_id = s.frame_id \
         where s.depth = 0 and b.size_bytes > 64 group by f.function".to_owned(),
        "select run, function, allocated_bytes, rank() over (partition by run order by allocated_bytes desc) as place \
         from sites where module = 'Module3'".to_owned(),
    ];
    for report in [
        &["top"][..],
        &[
            "top",
            "--by",
            "service,version",
            "--measure",
            "live-at-peak",
        ],
        &[
            "top",
            "--by",
            "site",
            "--where",
            "file = module2.ml or (line < 9 and not site = /F'3/i)",
        ],
        &["trend", "--by", "day"],
        &[
            "trend",
            "--by",
            "version,service",
            "--where",
            "heap = native",
            "--measure",
            "blocks",
        ],
        &[
            "diff",
            "1.0",
            "1.1",
            "--by",
            "version",
            "--runs",
            "duration_s > 1",
        ],
        &["regressions", "--service", "service-1", "--by", "module"],
    ] {
        let arguments = [&[report[0], dataset][..], &report[1..], &["--sql"]].concat();
        let text = run(&arguments).unwrap();
        all.extend(
            text.split(";\n")
                .map(str::trim)
                .filter(|text| !text.is_empty())
                .map(str::to_owned),
        );
    }
    assert_eq!(all.len(), 4 + 7 * 2);
    all
}

/// The rows of an answer, in an order that does not depend on the engine.
fn rows(json: &str) -> Vec<Vec<(String, Value)>> {
    let rows: Vec<serde_json::Map<String, Value>> = serde_json::from_str(json).unwrap();
    let mut rows: Vec<Vec<(String, Value)>> = rows
        .into_iter()
        .map(|row| {
            row.into_iter()
                .filter(|(_, value)| !value.is_null())
                .collect()
        })
        .collect();
    // Numbers with a fraction may differ in their last digits.
    rows.sort_by_cached_key(|row: &Vec<(String, Value)>| {
        let exact = row.iter().filter(|(_, value)| !value.is_f64());
        exact
            .map(|(name, value)| format!("{name} {value}"))
            .collect::<Vec<_>>()
    });
    rows
}

fn assert_same(statement: &str, ours: &str, theirs: &str) {
    let (ours, theirs) = (rows(ours), rows(theirs));
    assert!(!ours.is_empty(), "{statement}");
    assert_eq!(ours.len(), theirs.len(), "{statement}");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(
            ours.len(),
            theirs.len(),
            "{statement}\n{ours:?}\n{theirs:?}"
        );
        for ((name, a), (other, b)) in ours.iter().zip(theirs) {
            assert_eq!(name, other, "{statement}");
            let same = match (a.as_f64(), b.as_f64()) {
                (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-3),
                _ => a == b,
            };
            assert!(same, "{statement}\n{name}: {a}, not {b}");
        }
    }
}

fn sql(dataset: &str, statement: &str, more: &[&str]) -> Result<String, String> {
    run(&[&["sql", dataset, statement, "--format", "json"][..], more].concat())
}

/// The time that a statement may take whose executor is lost.
const PATIENCE: Duration = Duration::from_secs(100);

#[test]
fn a_cluster_answers_as_one_process_does() {
    let Some(cluster) = Cluster::start(2) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    fleet().write(folder.path());
    let dataset = folder.path().to_str().unwrap();
    let on_cluster = ["--cluster", &cluster.address];
    for statement in statements(dataset) {
        let here = sql(dataset, &statement, &[]).unwrap();
        let there = sql(dataset, &statement, &on_cluster)
            .unwrap_or_else(|error| panic!("{statement}\n{error}\n{}", cluster.logs()));
        assert_same(&statement, &here, &there);
    }
    for report in [
        &["top", dataset, "--json"][..],
        &["trend", dataset, "--by", "version", "--json"],
        &["diff", dataset, "1.0", "1.1", "--json"],
        &["regressions", dataset, "--json"],
    ] {
        let here: Value = serde_json::from_str(&run(report).unwrap()).unwrap();
        let there: Value =
            serde_json::from_str(&run(&[report, &on_cluster].concat()).unwrap()).unwrap();
        let size = |report: &Value| {
            report
                .get("rows")
                .or(report.get("series"))
                .unwrap()
                .as_array()
                .unwrap()
                .len()
        };
        assert_eq!(size(&here), size(&there), "{report:?}");
        assert!(size(&here) > 0, "{report:?}");
    }
    // Schemas are not sent to the cluster.
    assert_eq!(
        sql(dataset, "describe sites", &on_cluster),
        sql(dataset, "describe sites", &[])
    );
    let error = sql(dataset, "select nothing from sites", &on_cluster).unwrap_err();
    assert!(error.contains("nothing"), "{error}");
}

#[test]
fn a_statement_survives_the_loss_of_an_executor() {
    let Some(mut cluster) = Cluster::start(2) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let fleet = Fleet {
        runs_per_version: 20,
        ..fleet()
    };
    fleet.write(folder.path());
    let dataset = folder.path().to_str().unwrap();
    // Seconds of work: all pairs of blocks of a run.
    let heavy = "select a.run, count(*) as pairs from blocks a join blocks b on a.run = b.run \
                 where (a.size_bytes * 31 + b.size_bytes * 17) % 1009 <> 3 group by a.run";
    let light = "select count(*) as runs from runs";
    let here = sql(dataset, heavy, &[]).unwrap();
    let started = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_heapline-fleet"))
        .args([
            "sql",
            dataset,
            heavy,
            "--format",
            "json",
            "--cluster",
            &cluster.address,
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    cluster.kill_executor();
    // Otherwise nothing was lost.
    assert!(child.try_wait().unwrap().is_none(), "it was too quick");
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("no answer after {PATIENCE:?}\n{}", cluster.logs());
        }
        heapline_testkit::pass_time(Duration::from_millis(100));
    }
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\n{}", cluster.logs());
    assert_same(heavy, &here, &String::from_utf8(output.stdout).unwrap());
    assert!(errors.contains("running the statement again"), "{errors}");
    let there = sql(dataset, light, &["--cluster", &cluster.address])
        .unwrap_or_else(|error| panic!("{error}\n{}", cluster.logs()));
    assert_same(light, &sql(dataset, light, &[]).unwrap(), &there);
}

#[test]
fn duckdb_answers_as_datafusion_does() {
    let Some(python) = std::env::var_os(PYTHON) else {
        heapline_testkit::missing(&format!("{PYTHON} is not set; see cargo xtask fleet"));
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    fleet().write(folder.path());
    let dataset = folder.path().to_str().unwrap();
    let statements = statements(dataset);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/duckdb_answers.py");
    let mut child = Command::new(python)
        .arg(script)
        .arg(dataset)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = serde_json::to_string(&statements).unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let answers: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answers.len(), statements.len());
    for (statement, theirs) in statements.iter().zip(answers) {
        assert_same(
            statement,
            &sql(dataset, statement, &[]).unwrap(),
            &theirs.to_string(),
        );
    }
}
