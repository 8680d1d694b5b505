//! `heapline sturgeon`, with a client that does what Emacs does.
#![cfg(unix)]

#[path = "../../sturgeon/tests/common/client.rs"]
mod client;
#[cfg(recording)]
#[path = "common/recording.rs"]
mod recording;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use client::Client;
use heapline_testkit::fixtures;
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

/// A server that runs.
struct Server {
    child: Child,
    socket: PathBuf,
    _temporary: tempfile::TempDir,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_heapline"))
            .arg("sturgeon")
            .args(arguments)
            .env("TMPDIR", temporary.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let (_, socket) = line.trim().split_once(": serving on ").expect("it serves");
        Self {
            child,
            socket: socket.into(),
            _temporary: temporary,
        }
    }

    /// Ends it with a signal.
    fn end(mut self, signal: &str) -> ExitStatus {
        let pid = self.child.id().to_string();
        let kill = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(kill.unwrap().success());
        self.child.wait().unwrap()
    }
}

/// A client with its connection.
struct Connection {
    client: Client,
    stream: UnixStream,
    lines: BufReader<UnixStream>,
}

impl Connection {
    /// Connects, and waits until the text has a line with `line`.
    fn open(server: &Server, line: &str) -> Self {
        let stream = UnixStream::connect(&server.socket).unwrap();
        // What does not come is a failure, not a test that hangs.
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap());
        let mut connection = Self {
            client: Client::default(),
            stream,
            lines,
        };
        connection.read_until(|client| client.text().contains(line));
        connection
    }

    fn read_until(&mut self, done: impl Fn(&Client) -> bool) {
        while !done(&self.client) {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "disconnected");
            for answer in self.client.receive(line.trim_end()) {
                writeln!(self.stream, "{answer}").unwrap();
            }
        }
    }

    /// Clicks on the button of a line, and waits until the text is as it should be.
    fn click(&mut self, line: &str, done: impl Fn(&str) -> bool) {
        writeln!(self.stream, "{}", self.client.click(line)).unwrap();
        self.read_until(|client| done(&client.text()));
    }
}

fn mix() -> String {
    let trace = fixtures::folder().join("mix-ocaml53/trace.ctf");
    trace.display().to_string()
}

/// The nodes at the top of the tree, in order.
fn sites(trace: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_heapline"))
        .args(["tree", trace, "--json", "--bottom-up", "--by", "site"])
        .args(["--live", "end", "--min", "0.1%"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let nodes = report["nodes"].as_array().unwrap().iter();
    nodes
        .filter(|node| node["parent"].is_null())
        .map(|node| {
            let [name, place] = ["name", "place"].map(|field| node["label"][field].as_str());
            place.map_or_else(
                || name.unwrap().to_owned(),
                |place| format!("{} ({place})", name.unwrap()),
            )
        })
        .collect()
}

#[test]
fn shows_the_tree_and_removes_the_socket_at_the_end() {
    let trace = mix();
    let server = Server::start(&[&trace]);
    let socket = server.socket.clone();
    // As in the trace.
    let name = socket.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("mix53.exememprof.") && name.ends_with(".sturgeon"));
    let mode = socket.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let mut first = Connection::open(&server, "total");
    assert_eq!(first.client.name.as_deref(), Some("mix53.exe"));
    let start = first.client.text();
    let lines: Vec<&str> = start.lines().collect();
    assert_eq!(lines[..2], ["[Refresh]", ""]);
    assert!(
        lines[2].starts_with("[+]   4.45 ± 0.22 MiB total  ("),
        "{start}"
    );
    assert!(
        lines[2].contains("% minor, ") && lines[2].contains("% major"),
        "{start}"
    );

    let sites = sites(&trace);
    let count = 3 + sites.len();
    first.click("total", |text| {
        text.lines().count() == count && text.ends_with('\n')
    });
    let text = first.client.text();
    for (line, site) in text.lines().skip(3).zip(&sites) {
        assert!(line.contains(&format!(" | {site} (")), "{line}: {site}");
    }
    first.click("Mix.big", |text| text.contains("Mix (mix.ml:17:65-70)"));

    // Another client has a buffer of its own.
    let second = Connection::open(&server, "total");
    assert_eq!(second.client.text(), start);
    assert_eq!(second.client.messages, [""; 0]);

    assert!(server.end("TERM").success());
    assert!(!socket.exists());
}

#[test]
fn hostile_clients_are_disconnected_and_others_served() {
    let server = Server::start(&[&mix(), "--min", "1%"]);
    let mut client = Connection::open(&server, "total");
    let endless = vec![b'('; 200_000];
    for message in [&b"hello\n"[..], b"((((((", b"\xff\xfe\n", &endless] {
        let mut stream = UnixStream::connect(&server.socket).unwrap();
        // It may have hung up before the end.
        let _ = stream.write_all(message);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut said = String::new();
        let _ = stream.read_to_string(&mut said);
        assert!(said.is_empty() || said == "(greetings 1 buffer-shell (meta once . 1))\n");
    }
    // Those that only connect.
    let idle: Vec<_> = (0..50)
        .map(|_| UnixStream::connect(&server.socket).unwrap())
        .collect();
    client.click("total", |text| text.contains("other ("));
    drop(idle);
    let socket = server.socket.clone();
    assert!(server.end("INT").success());
    assert!(!socket.exists());
}

#[test]
fn errors_are_those_of_other_commands() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_heapline"))
            .arg("sturgeon")
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let error = run(&["/nonexistent/trace.ctf"]);
    assert!(
        error.starts_with("heapline: cannot open /nonexistent/trace.ctf:"),
        "{error}"
    );
    let error = run(&["4194305"]);
    assert!(
        error.starts_with("heapline: there is neither a file nor a process 4194305"),
        "{error}"
    );
}

#[cfg(recording)]
mod live {
    use super::recording::{allocate, record};
    use super::{Connection, Server};

    /// The process is this test itself.
    #[test]
    fn a_process_is_found_and_read_again_at_each_refresh() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = record(&folder.path().join("trace.ctf"), 1.0);
        allocate(recorder, 2048);
        let pid = std::process::id().to_string();
        let server = Server::start(&[&pid]);
        let name = server.socket.file_name().unwrap().to_str().unwrap();
        assert!(name.ends_with(&format!("memprof.{pid}.sturgeon")), "{name}");
        let mut client = Connection::open(&server, " 64 KiB total");
        client.click("total", |text| {
            text.contains("Live.allocate (live.ml:1:2-3)")
        });
        allocate(recorder, 2048);
        client.click("Refresh", |text| {
            text.contains(" 128 KiB total") && text.contains("Live.allocate (live.ml:1:2-3)")
        });
        assert!(server.end("HUP").success());
        recorder.stop();
    }
}
