//! The examples do what they say.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use heapline_trace::{Event, Reader};

/// An example, which cargo has built beside the tests.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap().parent().unwrap();
    folder.join("examples").join(name)
}

/// Bytes that are alive at the highest and at the end, as estimated by counting hits.
fn peak_and_end(name: &str) -> (f64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.ctf");
    let rate = 1e-3;
    let output = Command::new(example(name))
        .env("MEMTRACE", &trace)
        .env("MEMTRACE_RATE", rate.to_string())
        .output()
        .unwrap();
    assert!(output.status.success() && output.stderr.is_empty());
    let options = heapline_trace::Options::new().strict(true);
    let mut reader = Reader::open(&trace, options).unwrap();
    let mut alive = std::collections::HashMap::new();
    let (mut sum, mut peak) = (0, 0);
    reader
        .for_each(|event, _| match event {
            Event::Alloc(alloc) => {
                alive.insert(alloc.id, alloc.samples);
                sum += alloc.samples;
                peak = peak.max(sum);
            }
            Event::Collect(mark) => sum -= alive.remove(&mark.id).unwrap(),
            Event::Promote(_) => {}
        })
        .unwrap();
    let byte_rate = reader.info().sample_rate;
    let bytes = |samples: u64| samples as f64 / byte_rate;
    (bytes(peak), bytes(sum))
}

#[test]
fn the_leak_leaks_and_the_cache_and_the_burst_do_not() {
    let (peak, end) = peak_and_end("leak");
    assert!(end > 40e6 && end > 0.7 * peak, "{peak}, {end}");
    let (peak, end) = peak_and_end("cache");
    assert!(
        peak > 4e6 && peak < 15e6 && end < 0.1 * peak,
        "{peak}, {end}"
    );
    let (peak, end) = peak_and_end("burst");
    assert!(
        peak > 0.5e6 && peak < 4e6 && end < 0.1 * peak,
        "{peak}, {end}"
    );
}

#[test]
fn a_program_without_debug_information_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let stripped = folder.path().join("burst");
    for what in ["--strip-debug", "--strip-all"] {
        let strip = Command::new("strip")
            .args([what, "-o"])
            .args([&stripped, &example("burst")])
            .status();
        assert!(strip.unwrap().success());
        let output = Command::new(&stripped)
            .env("MEMTRACE", folder.path().join("t.ctf"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.contains("`debug = 1`"),
            "{what}: {said}"
        );
        let output = Command::new(&stripped).output().unwrap();
        assert!(output.stderr.is_empty(), "is not recorded");
    }
}

/// Asks the server for a page.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap_or_default();
    answer
}

#[test]
fn the_server_shows_where_its_memory_is_from() {
    let mut server = Command::new(example("server"))
        .arg("0")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let address = line.trim().trim_start_matches("http://");
    let address = address.trim_end_matches("/heap").to_owned();
    for n in 0..100 {
        get(&address, &format!("/a/path/that/is/remembered/{n}"));
    }
    let page = get(&address, "/heap");
    let first = page.lines().find(|line| line.contains("server.rs:"));
    let is_named = first.is_some_and(|line| line.contains("remember"));
    get(&address, "/stop");
    assert!(server.wait().unwrap().success());
    assert!(is_named && page.contains("oldest sampled block"), "{page}");
}
