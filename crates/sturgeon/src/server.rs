//! Clients of a socket, each with a session of its own.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::MAX_LINE;
use crate::session::{Load, Session};
use crate::sexp::Sexp;

/// Clients at the same time; more are disconnected.
const MAX_CLIENTS: usize = 16;

/// A client that does not read for so long is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves a tree to clients.
pub struct Server {
    name: String,
    new_load: Arc<dyn Fn() -> Load + Send + Sync>,
}

impl Server {
    /// A server whose clients have a buffer called `name`. Each of them loads its tree with a
    /// function of its own.
    pub fn new(name: &str, new_load: impl Fn() -> Load + Send + Sync + 'static) -> Self {
        Self {
            name: name.to_owned(),
            new_load: Arc::new(new_load),
        }
    }

    /// Accepts clients; returns when the socket fails.
    #[must_use]
    pub fn serve(&self, listener: &UnixListener) -> io::Error {
        let clients = Arc::new(());
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return error,
            };
            // One reference is that of this function.
            if Arc::strong_count(&clients) > MAX_CLIENTS {
                continue;
            }
            let client = Arc::clone(&clients);
            let session = Session::new(&self.name, (self.new_load)());
            // Without a thread, the client is disconnected.
            let _ = thread::Builder::new().spawn(move || {
                // A client that does not keep to the protocol, or is gone: nothing to say to it.
                let _ = converse(&stream, session);
                drop(client);
            });
        }
    }
}

/// Talks to a client until it ends the session.
fn converse(stream: &UnixStream, mut session: Session) -> io::Result<()> {
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let mut reader = BufReader::new(stream);
    let mut writer = BufWriter::new(stream);
    send(&mut writer, &[session.greeting()])?;
    let mut line = Vec::new();
    let mut answers = Vec::new();
    loop {
        line.clear();
        (&mut reader)
            .take(MAX_LINE as u64)
            .read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Ok(());
        }
        let goes_on = session
            .receive(&line, &mut answers)
            .map_err(io::Error::other)?;
        send(&mut writer, &answers)?;
        answers.clear();
        if !goes_on {
            return Ok(());
        }
    }
}

fn send(writer: &mut impl Write, messages: &[Sexp]) -> io::Result<()> {
    for message in messages {
        writeln!(writer, "{message}")?;
    }
    writer.flush()
}
