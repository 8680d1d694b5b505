//! A server on loopback that stands for those that profiles are pushed to.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The time in which a request that a test waits for must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request that was received.
#[derive(Clone, Debug)]
pub struct Received {
    /// The path, with its query.
    pub path: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Received {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| &**value)
    }
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// A status, headers as lines without their ends, and a body.
    Answer(u16, Vec<String>, Vec<u8>),
    /// No answer, ever; the connection stays open.
    Silence,
}

impl Reply {
    /// An answer with a status only.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::Answer(status, Vec::new(), Vec::new())
    }
}

/// A server that keeps the requests that it gets.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Collector {
    /// Starts a server in a thread, which ends with the test. `reply` gets each request, and the number of those
    /// before it.
    ///
    /// # Panics
    ///
    /// There is no free port.
    pub fn start(mut reply: impl FnMut(&Received, usize) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
        let address = listener.local_addr().expect("it is bound");
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let kept = Arc::clone(&received);
        thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming().flatten() {
                let Ok(request) = read(&stream) else {
                    continue;
                };
                let number = lock(&kept).len();
                let answer = reply(&request, number);
                lock(&kept).push(request);
                match answer {
                    Reply::Silence => silent.push(stream),
                    Reply::Answer(status, headers, body) => {
                        // The client may have gone.
                        let _ = write(&stream, status, &headers, &body);
                    }
                }
            }
        });
        Self { address, received }
    }

    /// The URL of the server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        lock(&self.received).clone()
    }

    /// Waits for so many requests.
    ///
    /// # Panics
    ///
    /// They do not come.
    #[must_use]
    pub fn wait_for(&self, requests: usize) -> Vec<Received> {
        let start = Instant::now();
        loop {
            let received = self.received();
            if received.len() >= requests {
                return received;
            }
            let got = received.len();
            assert!(start.elapsed() < PATIENCE, "{got} of {requests} requests");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The URL of a port that nothing listens on.
///
/// # Panics
///
/// There is no free port.
#[must_use]
pub fn dead_url() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
    format!("http://{}", listener.local_addr().expect("it is bound"))
}

fn lock(received: &Mutex<Vec<Received>>) -> std::sync::MutexGuard<'_, Vec<Received>> {
    received.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read(stream: &TcpStream) -> io::Result<Received> {
    let mut reader = BufReader::new(stream);
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    if words.next() != Some("POST") {
        return Err(invalid());
    }
    let path = words.next().ok_or_else(invalid)?.to_owned();
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => {
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
            None => break,
        }
    }
    let mut request = Received {
        path,
        headers,
        body: Vec::new(),
    };
    let length = request.header("content-length");
    let length: usize = length.and_then(|n| n.parse().ok()).ok_or_else(invalid)?;
    request.body = vec![0; length];
    reader.read_exact(&mut request.body)?;
    Ok(request)
}

fn write(mut stream: &TcpStream, status: u16, headers: &[String], body: &[u8]) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n", body.len());
    for header in headers {
        head.push_str(header);
        head.push_str("\r\n");
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    stream.write_all(body)
}
