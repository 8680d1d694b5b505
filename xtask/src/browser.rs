//! The viewer in a real browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::command::{Outcome, Run, cargo, exists, program, root};
use crate::setup;
use crate::test::build_workspace;

/// Installs what the page is built with; to be called before the first build, which embeds it.
pub(crate) fn setup() -> Outcome {
    setup::debian("npm", "npm")
}

/// Checks the page by itself, and with the built program in a browser without a screen.
pub(crate) fn check() -> Outcome {
    build_workspace()?;
    for script in ["check", "format", "test"] {
        npm(script, "debug", &[]).run()?;
    }
    // Each has a browser and a server of its own.
    std::thread::scope(|scope| {
        let shards = ["1/2", "2/2"]
            .map(|shard| scope.spawn(move || npm("e2e", "debug", &[]).env("SHARD", shard).run()));
        // All of them end before a failure is reported.
        let outcomes = shards.map(std::thread::ScopedJoinHandle::join);
        outcomes.into_iter().try_for_each(|outcome| {
            outcome.unwrap_or_else(|_| Err("a test run in a browser ended in a panic".into()))
        })
    })
}

/// Tests the pages of datasets with the `heapline-fleet` of a folder.
pub(crate) fn check_fleet(folder: &str) -> Outcome {
    npm("e2e", "debug", &[]).env("HEAPLINE_FLEET", folder).run()
}

/// Measures the time until the page is drawn, for a trace or the built-in one.
pub(crate) fn bench(trace: Option<&str>) -> Outcome {
    if !exists("npm") || !exists("chromium") {
        println!("\nFor how long the page takes, install npm and chromium.");
        return Ok(());
    }
    cargo(&[
        "build",
        "--locked",
        "--release",
        "--package",
        "heapline-cli",
    ])
    .run()?;
    // npm runs in the folder of the page.
    let trace = trace
        .map(std::path::absolute)
        .transpose()
        .map_err(|error| format!("where is the trace? {error}"))?
        .map(|path| path.display().to_string());
    npm("bench", "release", trace.as_deref().as_slice()).run()
}

fn npm(script: &str, profile: &str, args: &[&str]) -> Run {
    let ui = root().join("ui").display().to_string();
    let heapline = root().join("target").join(profile).join("heapline");
    let mut words = vec!["run", script, "--prefix", &ui, "--"];
    words.extend(args);
    program("npm", &words).env("HEAPLINE", &heapline.display().to_string())
}

/// Checks that `cargo run --release -- demo` serves the page, also without a display.
pub(crate) fn demo() -> Outcome {
    println!("\n> heapline demo");
    let mut child = Command::new(root().join("target/release/heapline"))
        .args(["demo", "--no-browser"])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run heapline demo: {error}"))?;
    let outcome = visit(&mut child);
    // It never ends by itself.
    let _ = child.kill();
    let _ = child.wait();
    outcome
}

fn visit(child: &mut Child) -> Outcome {
    let mut line = String::new();
    let stdout = child.stdout.take().ok_or("heapline demo has no output")?;
    let problem = |error: std::io::Error| format!("heapline demo does not answer: {error}");
    BufReader::new(stdout)
        .read_line(&mut line)
        .map_err(problem)?;
    let address = line
        .trim()
        .rsplit_once("http://")
        .and_then(|(_, url)| url.split_once('/'))
        .map(|(address, _token)| address)
        .ok_or_else(|| format!("heapline demo prints no address: {line}"))?;
    let mut stream = TcpStream::connect(address).map_err(problem)?;
    write!(stream, "GET / HTTP/1.0\r\nHost: {address}\r\n\r\n").map_err(problem)?;
    let mut page = String::new();
    stream.read_to_string(&mut page).map_err(problem)?;
    if page.contains("<title>Heapline</title>") {
        println!("  {}", line.trim());
        Ok(())
    } else {
        Err(format!("heapline demo does not show its page:\n{page}"))
    }
}
