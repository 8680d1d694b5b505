//! The server over real connections: what it answers, and what it refuses.

mod client;
mod dropped;
mod fleet;
mod hostile;

use std::io::Read;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use client::{Running, fixture, fixture_bytes, trace};

#[test]
fn the_trace_can_be_asked_about() {
    let server = Running::demo();
    let summary = server.get("/api/v1/summary?rows=1");
    assert_eq!(summary.status, 200);
    assert_eq!(summary.json()["subject"]["sampled_blocks"], 2787);
    let status = server.get("/api/v1/status").json();
    assert_eq!(status["state"], "ready");
    assert_eq!(status["trace"], "trace.ctf");
    assert_eq!(status["command"], "heapline view some/trace.ctf");
    assert_eq!(status["against"], serde_json::Value::Null);
    assert_eq!(status["read"], status["size"]);
}

#[test]
fn answers_say_which_trace_they_are_about() {
    let server = Running::demo();
    let answer = server.get("/api/v1/summary?rows=1");
    let status = server.get("/api/v1/status");
    let identity = status.json()["identity"].as_str().unwrap().to_owned();
    assert_eq!(answer.header("heapline-trace"), Some(&*identity));
    assert_eq!(answer.header("heapline-epoch"), Some("0"));
    assert_eq!(status.json()["epoch"], 0);
    let other = Running::start(fixture("odd/peakend.ctf"));
    let other = other.get("/api/v1/summary?rows=1");
    assert_ne!(other.header("heapline-trace"), Some(&*identity));
}

#[test]
fn a_file_that_is_overwritten_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.ctf");
    std::fs::write(&path, fixture_bytes("mix-ocaml53/trace.ctf")).unwrap();
    let shown = path.display().to_string();
    let server = Running::start(heapline_server::Trace {
        path: shown,
        ..fixture("mix-ocaml53/trace.ctf")
    });
    let before = server.get("/api/v1/summary?rows=1").body;
    let is_overwritten = || server.get("/api/v1/status").json()["overwritten"].clone();
    assert_eq!(is_overwritten(), false);
    std::fs::write(&path, fixture_bytes("odd/peakend.ctf")).unwrap();
    assert_eq!(is_overwritten(), true);
    assert_eq!(server.get("/api/v1/summary?rows=1").body, before);
    // Nothing newer can be loaded then.
    std::fs::remove_file(&path).unwrap();
    assert_eq!(is_overwritten(), false);
}

#[test]
fn answers_have_their_command() {
    let server = Running::demo();
    let answer = server.get("/api/v1/flame?min=0.1%25&where=inside+%22caf%C3%A9*%22");
    let encoded = answer.header("heapline-command").unwrap();
    assert!(encoded.is_ascii() && !encoded.contains(' '), "{encoded}");
    let (command, _) = form_urlencoded::parse(encoded.as_bytes()).next().unwrap();
    assert_eq!(
        command,
        "heapline tree some/trace.ctf --where 'inside \"café*\"' --min 0.1%"
    );
    let answer = server.get("/api/v1/complete?text=inside+map");
    assert_eq!(answer.header("heapline-command"), None);
}

#[test]
fn a_query_is_refused_where_it_is_wrong() {
    let server = Running::demo();
    let refused = server.get("/api/v1/hotspots?where=size+%3E+3+and+lifetim+%3E+2s");
    assert_eq!(refused.status, 400);
    let error = &refused.json()["error"];
    assert_eq!(error["code"], "bad_query");
    assert_eq!(error["parameter"], "where");
    assert_eq!(error["value"], "size > 3 and lifetim > 2s");
    assert_eq!(error["span"], serde_json::json!([13, 20]));
    assert_eq!(error["message"], "unknown field `lifetim`");
    let expected = error["expected"].as_str().unwrap();
    assert!(expected.contains("did you mean `lifetime`?"), "{expected}");
}

#[test]
fn what_does_not_exist_is_said_not_to() {
    let server = Running::demo();
    for target in [
        "/nothing",
        "/api/v1/nothing",
        "/api/v2/summary",
        "/api/v1/",
        "/api",
    ] {
        let response = server.get(target);
        assert_eq!(response.status, 404, "{target}");
        assert_eq!(response.code(), "not_found", "{target}");
    }
    for target in [
        "/api/v1/summary?row=3",
        "/api/v1/summary?rows=many",
        "/api/v1/hotspots?sort=beauty",
        "/api/v1/series?measure=joy",
        "/api/v1/series?points=100000&top=1000&by=site",
        "/api/v1/tree?by=domain",
        "/api/v1/tree?focus=a&bottom-up=true",
        "/api/v1/leaks?tail=60%25",
        "/api/v1/diff?window=1s..2s",
        "/api/v1/diff?window=2s..1s&window=..",
        "/api/v1/info?where=promoted",
        "/api/v1/complete?cursor=first",
        "/api/v1/summary?estimator=guess",
    ] {
        let response = server.get(target);
        assert_eq!(response.status, 400, "{target}");
        assert!(
            !response.json()["error"]["message"]
                .as_str()
                .unwrap()
                .is_empty()
        );
    }
    assert_eq!(server.get("/api/v1/diff").code(), "no_other_trace");
}

#[test]
fn answers_are_compressed_for_those_who_can_read_that() {
    let server = Running::demo();
    let target = "/api/v1/series?by=function";
    let plain = server.get(target);
    assert_eq!(plain.header("content-encoding"), None);
    let packed = server.get_with(target, "Accept-Encoding: br, gzip\r\n");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() < plain.body.len() / 2);
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&packed.body[..])
        .read_to_end(&mut unpacked)
        .unwrap();
    assert!(unpacked == plain.body);
    let refused = server.get_with(target, "Accept-Encoding: gzip;q=0\r\n");
    assert_eq!(refused.header("content-encoding"), None);
    let small = server.get_with("/api/v1/status", "Accept-Encoding: gzip\r\n");
    assert_eq!(small.header("content-encoding"), None);
}

#[test]
fn questions_wait_until_the_trace_is_loaded() {
    let (release, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let mut slow = fixture("odd/peakend.ctf");
    let open = slow.open;
    slow.open = Box::new(move || {
        let _ = wait.lock().unwrap().recv();
        open()
    });
    let server = Running::start(slow);
    let status = server.get("/api/v1/status").json();
    assert_eq!(status["state"], "loading");
    assert_eq!(status["read"], 0);
    let answer = std::thread::scope(|scope| {
        let asked = scope.spawn(|| server.get("/api/v1/summary"));
        assert_eq!(server.get("/api/v1/status").json()["state"], "loading");
        drop(release);
        asked.join().unwrap()
    });
    assert_eq!(answer.status, 200);
    assert_eq!(server.get("/api/v1/status").json()["state"], "ready");
}

#[test]
fn a_trace_that_is_none_is_said_to_be_none() {
    let server = Running::start(trace(
        b"this is not a trace, but it is long enough".to_vec(),
    ));
    let answer = server.get("/api/v1/summary");
    assert_eq!(answer.status, 503);
    assert_eq!(answer.code(), "failed");
    let status = server.get("/api/v1/status").json();
    assert_eq!(status["state"], "failed");
    let error = status["error"].as_str().unwrap();
    assert!(error.starts_with("some/trace.ctf: "), "{error}");
}

#[test]
fn several_clients_are_answered_at_once() {
    let server = Running::demo();
    let expected = server.get("/api/v1/hotspots").body;
    std::thread::scope(|scope| {
        for i in 0..16 {
            let (server, expected) = (&server, &expected);
            scope.spawn(move || {
                let other = server.get(&format!("/api/v1/hotspots?rows={i}"));
                assert_eq!(other.status, 200);
                assert!(server.get("/api/v1/hotspots").body == *expected);
            });
        }
    });
}

#[test]
fn a_connection_can_be_used_again() {
    let server = Running::demo();
    let host = server.address;
    let one = format!("GET /api/v1/status HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let last = format!("HEAD /api/v1/status HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let both = server.raw(format!("{one}{last}").as_bytes());
    let text = String::from_utf8_lossy(&both.body).into_owned();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 1, "{text}");
    assert!(text.ends_with("\r\n\r\n"), "a HEAD has no body: {text}");
}

#[test]
fn files_are_saved_by_plain_names_and_with_their_command() {
    let server = Running::demo();
    let file = server.get("/api/v1/export?format=collapsed&where=size+%3E+2w&hide=Stdlib.*");
    assert_eq!(file.status, 200);
    assert_eq!(
        file.header("content-disposition"),
        Some("attachment; filename=\"trace.folded\"")
    );
    // Never a page of this server, whatever is in it.
    assert_eq!(
        file.header("content-type"),
        Some("application/octet-stream")
    );
    assert!(String::from_utf8(file.body).unwrap().contains("Mix.big "));
    let host = server.address;
    let head = server.raw(
        format!(
            "HEAD /api/v1/export?format=pprof&at=peak HTTP/1.1\r\nHost: {host}\r\n\
             Connection: close\r\n\r\n"
        )
        .as_bytes(),
    );
    assert_eq!((head.status, head.body.len()), (200, 0));
    let command = head.header("heapline-command").unwrap();
    let (command, _) = form_urlencoded::parse(command.as_bytes()).next().unwrap();
    assert_eq!(
        command,
        "heapline export some/trace.ctf --format pprof --at peak -o trace.pb.gz"
    );
}

#[test]
fn files_are_refused_like_reports() {
    let server = Running::demo();
    for (target, code) in [
        ("export", "bad_parameter"),
        ("export?format=html", "bad_parameter"),
        ("export?format=pprof&rows=3", "bad_parameter"),
        ("export?format=firefox&at=peak", "bad_parameter"),
        ("export?format=pprof&sites=true", "bad_parameter"),
        ("export?format=pprof&where=size+%3E", "bad_query"),
        ("report?slices=3", "bad_parameter"),
    ] {
        let refused = server.get(&format!("/api/v1/{target}"));
        assert_eq!(refused.status, 400, "{target}");
        assert_eq!(refused.code(), code, "{target}");
    }
    let embedded = server.get_with(
        "/api/v1/export?format=pprof",
        "Sec-Fetch-Site: cross-site\r\n",
    );
    assert_eq!(embedded.status, 403);
}
