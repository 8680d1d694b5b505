//! Strangers, and clients that misbehave.

use std::io::{Read, Write};
use std::net::Ipv4Addr;

use super::client::{Running, fixture};

#[test]
fn other_names_of_this_machine_are_refused() {
    let server = Running::demo();
    for host in [
        "evil.example",
        "evil.example:8080",
        "127.0.0.1.evil.example",
        "",
    ] {
        for target in ["/", "/api/v1/summary", "/api/v1/status", "/nothing"] {
            let request =
                format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            let response = server.raw(request.as_bytes());
            assert_eq!(response.status, 403, "{host} {target}");
            assert_eq!(response.code(), "forbidden");
        }
    }
    // An address in the request line counts too.
    let request = "GET http://evil.example/api/v1/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(server.raw(request.as_bytes()).status, 403);
    let request = "GET /api/v1/status HTTP/1.1\r\nConnection: close\r\n\r\n";
    assert_eq!(server.raw(request.as_bytes()).status, 400);
}

#[test]
fn pages_of_others_are_refused() {
    let server = Running::demo();
    let host = server.address;
    for header in [
        "Origin: https://evil.example\r\n".to_owned(),
        "Origin: null\r\n".to_owned(),
        format!("Origin: http://{host}.evil.example\r\n"),
        "Sec-Fetch-Site: cross-site\r\n".to_owned(),
    ] {
        let response = server.get_with("/api/v1/summary", &header);
        assert_eq!(response.status, 403, "{header}");
        assert_eq!(response.header("access-control-allow-origin"), None);
    }
    let own = format!("Origin: http://{host}\r\nSec-Fetch-Site: same-origin\r\n");
    assert_eq!(server.get_with("/api/v1/summary", &own).status, 200);
    let asked = format!(
        "OPTIONS /api/v1/summary HTTP/1.1\r\nHost: {host}\r\nOrigin: https://evil.example\r\n\
         Access-Control-Request-Method: GET\r\nConnection: close\r\n\r\n"
    );
    let response = server.raw(asked.as_bytes());
    assert_eq!(response.status, 403);
    assert_eq!(response.header("access-control-allow-origin"), None);
}

#[test]
fn every_response_forbids_what_the_page_does_not_need() {
    let server = Running::demo();
    for target in ["/", "/api/v1/status", "/nothing"] {
        let response = server.get(target);
        let policy = response.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(
            response.header("cross-origin-resource-policy"),
            Some("same-origin")
        );
        assert_eq!(response.header("access-control-allow-origin"), None);
    }
}

#[test]
fn the_file_system_is_out_of_reach() {
    let server = Running::demo();
    for target in [
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2fetc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/assets/../../Cargo.toml",
        "/assets/..\\..\\Cargo.toml",
        "//etc/passwd",
        "/etc/passwd",
        "/Cargo.toml",
        "/api/v1/../../Cargo.toml",
        "/api/v1/info/../../../etc/passwd",
        "/index.html%00.txt",
        "/some/trace.ctf",
    ] {
        let response = server.get(target);
        assert_eq!(response.status, 404, "{target}");
        assert!(!response.body.windows(5).any(|window| window == b"root:"));
    }
    let folder = server.get("/api/v1/info").json()["file"].clone();
    assert_eq!(folder, "some/trace.ctf", "only what the user typed is told");
}

#[test]
fn only_questions_are_taken() {
    let server = Running::demo();
    let host = server.address;
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        let request = format!(
            "{method} /api/v1/summary HTTP/1.1\r\nHost: {host}\r\nContent-Length: 4\r\n\r\nrows"
        );
        let response = server.raw(request.as_bytes());
        assert_eq!(response.status, 405, "{method}");
        assert_eq!(response.header("allow"), Some("get, head"));
        assert_eq!(response.header("connection"), Some("close"));
    }
}

#[test]
fn requests_that_are_too_large_are_refused() {
    let server = Running::demo();
    let host = server.address;
    let long = "a".repeat(1 << 20);
    for request in [
        format!("GET /{long} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        format!("GET /api/v1/summary?where={long} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: {long}\r\n\r\n"),
        format!(
            "GET / HTTP/1.1\r\nHost: {host}\r\n{}\r\n",
            "X: y\r\n".repeat(10_000)
        ),
    ] {
        let response = server.raw(request.as_bytes());
        assert!(
            [0, 414, 431].contains(&response.status),
            "{}: {}",
            response.status,
            response.head
        );
    }
    // As large as allowed, and hard to understand.
    let nested = "(".repeat(20_000);
    let response = server.get(&format!("/api/v1/summary?where={nested}"));
    assert_eq!(response.status, 400);
    assert_eq!(response.code(), "bad_query");
    assert_eq!(server.get("/api/v1/status").status, 200);
}

#[test]
fn nonsense_is_refused() {
    let server = Running::demo();
    for nonsense in [
        &b"\0\0\0\0\0\0\0\0\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"",
    ] {
        let response = server.raw_and_gone(nonsense);
        assert!(
            [0, 400, 403, 405, 505].contains(&response.status),
            "{:?}: {}",
            String::from_utf8_lossy(nonsense),
            response.head
        );
    }
    for query in [
        "where=%ff%fe",
        "where=%zz",
        "&&==&&=",
        "where=%00",
        "rows=%EF%BC%93",
    ] {
        let response = server.get(&format!("/api/v1/hotspots?{query}"));
        assert_eq!(response.status, 400, "{query}");
    }
    assert_eq!(server.get("/api/v1/status").status, 200);
}

#[test]
fn slow_clients_do_not_keep_others_waiting() {
    let server = Running::demo();
    let mut slow: Vec<_> = (0..100).map(|_| server.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET /api/v1/summary HTT").unwrap();
    }
    // These ask for much and read nothing of it.
    let mut deaf: Vec<_> = (0..20).map(|_| server.connect()).collect();
    for stream in &mut deaf {
        let request = "GET /api/v1/series?points=50000 HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
    }
    assert_eq!(server.get("/api/v1/summary").status, 200);
    // Those that go on in time are answered too.
    let first = &mut slow[0];
    first
        .write_all(b"P/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    first.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 OK"));
}

/// A name that this machine does not have: requests with it are not those of the user's own programs.
const ELSEWHERE: &str = "Host: box.example\r\n";

#[test]
fn others_need_the_token() {
    let server = Running::listen(Ipv4Addr::UNSPECIFIED.into(), fixture("odd/peakend.ctf"));
    let token = server.token.clone().unwrap();
    assert_eq!(token.len(), 32);
    let get = |path: &str, headers: &str| {
        let head = format!("GET {path} HTTP/1.1\r\n{ELSEWHERE}Connection: close\r\n{headers}\r\n");
        server.raw(head.as_bytes())
    };
    assert_eq!(get("/api/v1/status", "").status, 401);
    assert_eq!(get("/api/v1/summary", "").code(), "unauthorized");
    let right = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(get("/api/v1/summary", &right).status, 200);
    let wrong = format!("Authorization: Bearer {}\r\n", "0".repeat(32));
    assert_eq!(get("/api/v1/summary", &wrong).status, 401);
    // It may have any name, but other pages stay outside even if they knew the token.
    let foreign = format!("{right}Origin: https://evil.example\r\n");
    assert_eq!(get("/api/v1/summary", &foreign).status, 403);
    // Programs of the same user on this machine need none.
    assert_eq!(server.get("/api/v1/status").status, 200);
}

#[test]
fn clients_that_go_away_leave_nothing_behind() {
    let server = Running::demo();
    for i in 0..300 {
        let mut stream = server.connect();
        let request = format!("GET /api/v1/hotspots?rows={i} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
    }
    // More connections than are allowed at the same time have come and gone.
    assert_eq!(server.get("/api/v1/summary").status, 200);
}

#[test]
fn streams_of_events_that_are_held_do_not_stop_the_server() {
    let server = Running::demo();
    // Waits until the trace is loaded.
    assert_eq!(server.get("/api/v1/summary?rows=1").status, 200);
    let open = || {
        let mut stream = server.connect();
        let host = server.address;
        let request = format!("GET /api/v1/events?hold=0 HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut status = [0; "HTTP/1.1 200".len()];
        stream.read_exact(&mut status).unwrap();
        (stream, String::from_utf8_lossy(&status).into_owned())
    };
    let mut held: Vec<_> = (0..64).map(|_| open()).collect();
    assert!(held.iter().all(|(_, status)| status == "HTTP/1.1 200"));
    let refused = server.get("/api/v1/events?hold=0");
    assert_eq!(refused.status, 503);
    assert_eq!(refused.code(), "too_many_streams");
    assert_eq!(server.get("/api/v1/status").status, 200);

    held.pop();
    heapline_testkit::wait("the place of the closed stream", || {
        open().1 == "HTTP/1.1 200"
    });
}
