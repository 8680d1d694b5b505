//! Traces that are dropped onto the page.

use std::path::Path;

use super::client::{Response, Running, fixture};

fn other() -> Vec<u8> {
    let path = "../../fixtures/mix-ocaml413/trace.ctf";
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn post(server: &Running, target: &str, headers: &str, body: &[u8]) -> Response {
    let (host, length) = (server.address, body.len());
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
         Content-Length: {length}\r\n{headers}\r\n"
    );
    server.raw(&[head.as_bytes(), body].concat())
}

#[test]
fn the_trace_is_compared_with_a_dropped_one() {
    let server = Running::demo();
    assert_eq!(server.get("/api/v1/diff").code(), "no_other_trace");
    let before = server.get("/api/v1/status").json();
    let answer = post(&server, "/api/v1/against?name=old+run.ctf", "", &other());
    assert_eq!(answer.status, 200, "{}", answer.head);
    assert_eq!(answer.json()["against"], "old run.ctf");
    let status = server.get("/api/v1/status").json();
    assert_eq!(status["against"], "old run.ctf");
    assert_eq!(
        status["command"],
        "heapline view some/trace.ctf --against 'old run.ctf'"
    );
    assert_ne!(status["identity"], before["identity"]);
    let diff = server.get("/api/v1/diff?of=end&rows=1");
    assert_eq!(
        diff.header("heapline-trace"),
        status["identity"].as_str(),
        "answers are about both traces"
    );
    assert_eq!(diff.json()["before_name"], "old run.ctf");
    assert_eq!(diff.json()["rows"][0]["label"]["name"], "Mix.big");
    let tree = server.get("/api/v1/diff-tree?of=end").json();
    assert_eq!(tree["before_name"], "old run.ctf");
    let samples = |report: &serde_json::Value| report["total"]["before"]["samples"].clone();
    assert_eq!(samples(&tree), samples(&diff.json()));
    // Another one takes its place.
    let body =
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/odd/peakend.ctf"));
    let again = post(&server, "/api/v1/against?name=b.ctf", "", &body.unwrap());
    assert_eq!(again.json()["against"], "b.ctf");
}

#[test]
fn only_the_page_itself_may_drop_a_file() {
    let server = Running::demo();
    for headers in [
        "Origin: https://evil.example\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
    ] {
        let refused = post(&server, "/api/v1/against?name=a.ctf", headers, b"x");
        assert_eq!(refused.status, 403, "{headers}");
    }
    let elsewhere = Running::listen([0, 0, 0, 0].into(), fixture("mix-ocaml53/trace.ctf"));
    let refused = elsewhere.raw(
        b"POST /api/v1/against?name=a.ctf HTTP/1.1\r\nHost: box.example\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
    );
    assert_eq!(refused.status, 401);
    assert_eq!(
        server.get("/api/v1/status").json()["against"],
        serde_json::Value::Null
    );
}

#[test]
fn files_that_cannot_be_used_are_refused() {
    let server = Running::demo();
    let refused = post(&server, "/api/v1/against?name=a.txt", "", b"not a trace");
    assert_eq!((refused.status, &*refused.code()), (422, "bad_trace"));
    let message = refused.json()["error"]["message"].to_string();
    assert!(message.contains("a.txt"), "{message}");
    let empty = post(&server, "/api/v1/against?name=a.ctf", "", b"");
    assert_eq!(empty.status, 422);
    let long = "a".repeat(256);
    for name in ["", "..%2Fa", "a%5Cb", "a%0Ab", &long, "a&name=b"] {
        let target = format!("/api/v1/against?name={name}");
        let refused = post(&server, &target, "", b"x");
        assert_eq!(refused.status, 400, "{name}");
    }
    assert_eq!(
        server.get("/api/v1/status").json()["against"],
        serde_json::Value::Null
    );
    assert_eq!(server.get("/api/v1/diff").code(), "no_other_trace");
}

#[test]
fn a_file_that_is_too_large_is_not_received() {
    let server = Running::demo();
    let host = server.address;
    // More than is allowed is announced, and nothing of it sent.
    let refused = server.raw(
        format!(
            "POST /api/v1/against?name=a.ctf HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n",
            (256_u64 << 20) + 1
        )
        .as_bytes(),
    );
    assert_eq!(refused.status, 413);
    assert_eq!(refused.code(), "too_large");
}

#[test]
fn other_requests_do_not_take_a_body() {
    let server = Running::demo();
    for target in [
        "/api/v1/summary",
        "/",
        "/snapshots/a.heap/api/v1/against?name=a",
    ] {
        assert_eq!(post(&server, target, "", b"x").status, 405, "{target}");
    }
    assert_eq!(server.get("/api/v1/against").status, 404);
}
