//! A server on a port of its own, and a client that can say anything.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::path::Path;

use heapline_server::{Fleet, Opener, Server, Subjects, Trace};
use serde_json::Value;

/// A trace out of the fixtures.
pub(crate) fn fixture(name: &str) -> Trace {
    trace(fixture_bytes(name))
}

/// The bytes of a trace out of the fixtures.
pub(crate) fn fixture_bytes(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name);
    std::fs::read(path).unwrap()
}

/// A trace out of bytes.
pub(crate) fn trace(bytes: Vec<u8>) -> Trace {
    let size = bytes.len() as u64;
    let open: Opener = Box::new(move || Ok(Box::new(std::io::Cursor::new(bytes.clone()))));
    Trace {
        path: "some/trace.ctf".to_owned(),
        size: Some(size),
        strict: false,
        executable: None,
        file: None,
        open,
    }
}

/// A server that runs until the tests end.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) token: Option<String>,
}

impl Running {
    pub(crate) fn start(trace: Trace) -> Self {
        Self::listen(Ipv4Addr::LOCALHOST.into(), trace)
    }

    /// The one that most tests ask.
    pub(crate) fn demo() -> Self {
        Self::start(fixture("mix-ocaml53/trace.ctf"))
    }

    pub(crate) fn listen(ip: IpAddr, trace: Trace) -> Self {
        let server = Server::bind(ip, Some(0)).unwrap();
        let running = Self::of(&server);
        let subjects = Subjects::new(trace, None);
        std::thread::spawn(move || server.serve(subjects));
        running
    }

    /// Serves a dataset.
    pub(crate) fn fleet(fleet: Fleet) -> Self {
        let server = Server::bind(Ipv4Addr::LOCALHOST.into(), Some(0)).unwrap();
        let running = Self::of(&server);
        std::thread::spawn(move || server.serve_fleet(fleet));
        running
    }

    fn of(server: &Server) -> Self {
        let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), server.address().port());
        let token = server
            .url()
            .split_once("#token=")
            .map(|(_, token)| token.to_owned());
        Self { address, token }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).unwrap()
    }

    /// Sends bytes as they are and reads until the server closes the connection.
    pub(crate) fn raw(&self, request: &[u8]) -> Response {
        Self::talk(self.connect(), request)
    }

    /// Sends bytes and closes that direction: to the server, the client has gone away.
    pub(crate) fn raw_and_gone(&self, request: &[u8]) -> Response {
        let stream = self.connect();
        let mut writer = stream.try_clone().unwrap();
        let _ = writer.write_all(request);
        let _ = writer.shutdown(Shutdown::Write);
        Self::talk(stream, b"")
    }

    fn talk(mut stream: TcpStream, request: &[u8]) -> Response {
        // The server may have closed before it was all sent.
        let _ = stream.write_all(request);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Response::parse(&bytes)
    }

    /// Asks with headers beside those that everybody sends.
    pub(crate) fn get_with(&self, target: &str, headers: &str) -> Response {
        let host = self.address;
        self.raw(
            format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n")
                .as_bytes(),
        )
    }

    pub(crate) fn get(&self, target: &str) -> Response {
        self.get_with(target, "")
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    /// 0 if nothing came.
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
            .unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        Self {
            status: head
                .split(' ')
                .nth(1)
                .and_then(|status| status.parse().ok())
                .unwrap_or(0),
            body: bytes.get(end + 4..).unwrap_or_default().to_vec(),
            head,
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The code of the error that it is.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}
