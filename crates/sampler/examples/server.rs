//! A server that shows its own live profile: `http://127.0.0.1:7878/heap`.
//!
//! Every other path is remembered, so that there is something to see. `/stop` ends it.
#![allow(clippy::print_stdout, reason = "it is a program that prints")]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use heapline::{Options, Profiler, Tracker};

#[global_allocator]
static ALLOC: heapline::Alloc = heapline::Alloc::system();

/// The live memory by call site, with the age of its oldest block.
fn profile(profiler: &Profiler<Instant>) -> String {
    let mut page = String::from("live bytes (estimated)  blocks  sampled  where\n");
    for site in profiler.live().iter().take(20) {
        let frames = site.stack.frames();
        let place = frames.first().map_or(String::from("?"), |frame| {
            format!("{} ({}:{})", frame.function, frame.file, frame.line)
        });
        let (bytes, blocks, sampled) = (site.bytes, site.blocks, site.sampled);
        let _ = writeln!(page, "{bytes:>22.0}  {blocks:>6.0}  {sampled:>7}  {place}");
    }
    let mut oldest = None;
    profiler.for_each_live(|_, born| oldest = oldest.max(Some(born.elapsed())));
    let _ = writeln!(
        page,
        "\noldest sampled block: {:?}",
        oldest.unwrap_or_default()
    );
    page
}

/// Remembers a request. Answers how many there were.
fn remember(requests: &mut Vec<String>, path: &str) -> String {
    requests.push(path.repeat(1000));
    format!("{} requests\n", requests.len())
}

fn path(stream: &TcpStream) -> std::io::Result<String> {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(line.split(' ').nth(1).unwrap_or("/").to_owned())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // One sample for 16 KiB: this server has little to show. 512 KiB is enough for a real one.
    let tracker = Tracker::new(|_| Some(Instant::now()));
    let profiler = Profiler::start(Options::every(16 << 10), tracker)?;
    let port = std::env::args().nth(1).unwrap_or_else(|| "7878".to_owned());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}"))?;
    println!("http://{}/heap", listener.local_addr()?);
    let mut requests = Vec::new();
    for stream in listener.incoming() {
        let mut stream = stream?;
        let path = path(&stream)?;
        let body = match path.as_str() {
            "/stop" => break,
            "/heap" => profile(&profiler),
            _ => remember(&mut requests, &path),
        };
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n";
        write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len())?;
    }
    Ok(())
}
