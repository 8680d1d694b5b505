//! `heapline record --view`: the page grows with the trace, and the program does not notice.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::run::{heapline, heapline_with_default_signals};
use crate::toolchain::compilers;

fn get(address: &str, report: &str) -> Value {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET /api/v1/{report} HTTP/1.0\r\nHost: {address}\r\n\r\n"
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

pub(crate) fn sampled_blocks(address: &str) -> u64 {
    get(address, "summary")["subject"]["sampled_blocks"]
        .as_u64()
        .unwrap()
}

#[test]
fn the_viewer_of_a_recording_grows_and_stays_until_it_is_ended() {
    for compiler in compilers("the_viewer_of_a_recording_grows_and_stays_until_it_is_ended") {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace.ctf");
        let mut child = heapline_with_default_signals()
            .args(["record", "--view", "--no-browser", "--port", "0"])
            .args(["--rate", "1", "-o"])
            .arg(&trace)
            .arg("--")
            .arg(compiler.program("paces"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut says = |what: &str| {
            said.by_ref()
                .map(Result::unwrap)
                .find(|line| line.contains(what))
                .unwrap_or_else(|| panic!("it does not say {what}"))
        };
        let line = says("serving on");
        let address = heapline_testkit::served_address(&line);
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen = 0;
        for total in [1000, 2000, 3000] {
            writeln!(input, "1000").unwrap();
            let line = output.next().unwrap().unwrap();
            assert_eq!(line, total.to_string(), "the output is the program's");
            // What has happened is shown soon: arrays, and the list that keeps them.
            heapline_testkit::wait("the page to show all blocks", || {
                sampled_blocks(address) >= 2 * total
            });
            assert_eq!(get(address, "status")["recording"], true);
            assert!(sampled_blocks(address) > seen);
            seen = sampled_blocks(address);
        }
        drop(input);
        says("the page stays");
        heapline_testkit::wait("the page to show the end", || {
            get(address, "status")["recording"] != true
        });
        let summary = heapline()
            .args(["summary", "--json"])
            .arg(&trace)
            .output()
            .unwrap();
        let summary: Value = serde_json::from_slice(&summary.stdout).unwrap();
        let shown = get(address, "summary");
        assert_eq!(shown["subject"], summary["subject"]);
        assert_eq!(shown["allocated"], summary["allocated"]);
        let pid = i32::try_from(child.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::INT).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(3), "the exit code is the program's");
        assert!(output.next().is_none(), "the output is the program's");
    }
}
