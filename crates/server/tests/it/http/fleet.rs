//! Datasets, with a program in place of `heapline-fleet`.
#![cfg(unix)]

use std::fs;
use std::io::Write;
use std::path::Path;

use heapline_server::Fleet;

use super::client::Running;

/// A server whose program is this script.
fn serve(folder: &Path, script: &str) -> Running {
    let program = folder.join("heapline-fleet");
    heapline_testkit::write_program(&program, format!("#!/bin/sh\n{script}\n"));
    Running::fleet(Fleet {
        dataset: "some/profiles".to_owned(),
        program,
    })
}

#[test]
fn reports_are_what_the_program_prints() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), r#"printf '["%s"]' "$*""#);
    let status = server.get("/api/v1/status").json();
    assert_eq!(status["kind"], "fleet");
    assert_eq!(status["trace"], "profiles");
    assert_eq!(status["command"], "heapline view some/profiles");

    let answer = server.get("/api/v1/diff?before=1.4&after=1.5&runs=day+%3E+'a'");
    assert_eq!(answer.status, 200);
    let said = answer.json();
    assert_eq!(
        said[0],
        "diff some/profiles 1.4 1.5 --runs day > 'a' --json"
    );
    let command = answer.header("heapline-command").unwrap();
    let (command, _) = form_urlencoded::parse(command.as_bytes()).next().unwrap();
    assert_eq!(
        command,
        r#"heapline fleet diff some/profiles 1.4 1.5 --runs "day > 'a'""#
    );
    let runs = server.get("/api/v1/runs").json();
    let runs = runs[0].as_str().unwrap();
    assert!(
        runs.starts_with("sql some/profiles select service"),
        "{runs}"
    );
    assert!(runs.ends_with("--format json"), "{runs}");
}

#[test]
fn errors_are_those_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(
        folder.path(),
        "echo 'heapline-fleet: no run has the version \"9\"' >&2; exit 1",
    );
    let answer = server.get("/api/v1/top");
    assert_eq!(answer.status, 400);
    assert_eq!(
        answer.json()["error"]["message"],
        "no run has the version \"9\""
    );
    for unknown in ["/api/v1/summary", "/api/v1/sql", "/snapshots/a/api/v1/x"] {
        assert_eq!(server.get(unknown).status, 404, "{unknown}");
    }
    assert_eq!(
        server.get("/api/v1/top?cluster=a:1").code(),
        "bad_parameter"
    );
    assert_eq!(server.get("/api/v1/top?by=%00").status, 503);
    fs::remove_file(folder.path().join("heapline-fleet")).unwrap();
    assert_eq!(server.get("/api/v1/top").status, 503);
}

#[test]
fn a_program_that_nobody_waits_for_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let script = format!(
        "echo $$ > '{0}.new'; mv '{0}.new' '{0}'; exec sleep 600",
        pid.display()
    );
    let server = serve(folder.path(), &script);
    let mut connection = server.connect();
    let host = server.address;
    let request = format!("GET /api/v1/top HTTP/1.1\r\nHost: {host}\r\n\r\n");
    connection.write_all(request.as_bytes()).unwrap();
    heapline_testkit::wait("the program to start", || pid.exists());
    let process = fs::read_to_string(&pid).unwrap();
    let process = Path::new("/proc").join(process.trim());
    if cfg!(target_os = "linux") {
        assert!(process.exists());
        drop(connection);
        heapline_testkit::wait("the program to end", || !process.exists());
    }
}
