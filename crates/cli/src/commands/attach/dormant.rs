//! Programs that wait for `heapline attach`, and are told by a socket: see the recorder's `control.rs`.

use std::cell::RefCell;
use std::fs;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use heapline_attach::{Identity, Refusal};
use heapline_recorder::control::{
    FileView, Invalid, MAX_REPLY, MAX_REQUEST, Outcome, Reply, Request, State as WireState, names,
    peer,
};
use heapline_recorder::listener::THREAD_NAME;
use heapline_recorder::settings::{RecordingSettings, SnapshotSettings};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::agent::{ANOTHER_SNAPSHOT, State};

/// The time in which a program must answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A process that waits.
pub(in crate::commands) struct Dormant {
    pid: i32,
    /// Its number in its own pid namespace.
    inner_pid: u32,
    /// The files that it sees.
    pub(in crate::commands) files: FileView,
    /// The state that it has told last.
    last: RefCell<State>,
}

impl Dormant {
    /// Finds out if a process waits.
    pub(in crate::commands) fn find(
        pid: i32,
        identity: &Identity,
        allow_seccomp: bool,
    ) -> anyhow::Result<Option<Self>> {
        let mut dormant = Self {
            pid,
            inner_pid: identity.inner_pid,
            files: FileView::default(),
            last: RefCell::new(State::Idle),
        };
        if dormant.connect()?.is_none() {
            return Ok(None);
        }
        check_filters(pid, identity, allow_seccomp)?;
        match dormant.ask(&Request::State)? {
            Some(reply) if reply.outcome == Outcome::Failed => {
                bail!("cannot attach to process {pid}: {}", reply.message)
            }
            Some(reply) => dormant.files = reply.files,
            None => return Ok(None),
        }
        Ok(Some(dormant))
    }

    /// Connects to the process; `None` if it does not listen.
    fn connect(&self) -> anyhow::Result<Option<UnixStream>> {
        let end = Instant::now() + PATIENCE;
        for name in names(self.inner_pid) {
            loop {
                match connect_to(&name) {
                    // Anybody may take a name, but nobody can pretend to be another process.
                    Ok(stream) if peer(&stream)?.pid == self.pid => return Ok(Some(stream)),
                    Err(error)
                        if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < end =>
                    {
                        thread::sleep(Duration::from_millis(5));
                    }
                    _ => break,
                }
            }
        }
        Ok(None)
    }

    /// Sends a request; `None` if nobody listens any more.
    fn ask(&self, request: &Request) -> anyhow::Result<Option<Reply>> {
        let pid = self.pid;
        let end = Instant::now() + PATIENCE;
        let bytes = loop {
            let Some(stream) = self.connect()? else {
                return Ok(None);
            };
            match converse(stream, request) {
                Ok(bytes) if !bytes.is_empty() => break bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    bail!("process {pid} does not answer; it may be stopped")
                }
                // The program gives up on clients that are slow, as on a busy machine.
                _ if Instant::now() < end => thread::sleep(Duration::from_millis(5)),
                result => {
                    result.with_context(|| format!("cannot talk to process {pid}"))?;
                    bail!("process {pid} does not answer");
                }
            }
        };
        match Reply::parse(&bytes) {
            Ok(reply) => Ok(Some(reply)),
            Err(Invalid::Version(_)) => bail!(
                "process {pid} was started with the library of another version of heapline; use that \
                 version to attach"
            ),
            Err(Invalid::Malformed) => bail!("process {pid} gives no answer that heapline knows"),
        }
    }

    /// The state of the recording.
    pub(in crate::commands) fn state(&self) -> State {
        self.ask_state(&Request::State)
    }

    /// The state of the last snapshot.
    pub(in crate::commands) fn snapshot_state(&self) -> State {
        self.ask_state(&Request::SnapshotState)
    }

    /// Returns false for a program that waits with the OCaml library, which takes no snapshots.
    pub(in crate::commands) fn takes_snapshots(&self) -> bool {
        let reply = self.ask(&Request::SnapshotState);
        !reply.is_ok_and(|reply| reply.is_some_and(|reply| reply.outcome == Outcome::Failed))
    }

    fn ask_state(&self, request: &Request) -> State {
        match self.ask(request) {
            Ok(Some(reply)) => {
                self.last.replace(state(&reply));
            }
            Ok(None) => {
                self.last.replace(State::Gone);
            }
            // It is as it was, as far as is known.
            Err(_) => {}
        }
        self.last.borrow().clone()
    }

    /// Asks for a recording.
    pub(in crate::commands) fn attach(&self, settings: &RecordingSettings) -> anyhow::Result<()> {
        let request = Request::Attach(settings.to_bytes());
        if request.to_bytes().len() > MAX_REQUEST {
            bail!("the description of --context and the name of the file are too long");
        }
        self.request(&request).map(drop)
    }

    /// Asks for a heap snapshot.
    pub(in crate::commands) fn snapshot(&self, settings: &SnapshotSettings) -> anyhow::Result<()> {
        self.request(&Request::Snapshot(settings.to_bytes()))
            .map(drop)
    }

    /// Ends the recording.
    pub(in crate::commands) fn detach(&self) -> anyhow::Result<()> {
        self.request(&Request::Detach).map(drop)
    }

    /// Asks for a description of the runtime.
    pub(in crate::commands) fn explain(&self) -> anyhow::Result<String> {
        self.request(&Request::Explain)
    }

    /// Sends a request until the program has time for it. Returns its message.
    fn request(&self, request: &Request) -> anyhow::Result<String> {
        let start = Instant::now();
        loop {
            let Some(reply) = self.ask(request)? else {
                bail!("the program has ended");
            };
            match reply.outcome {
                Outcome::Done => return Ok(reply.message),
                Outcome::Busy if start.elapsed() < PATIENCE => {
                    thread::sleep(Duration::from_millis(2));
                }
                Outcome::Busy => match request {
                    Request::Snapshot(_) => bail!("{ANOTHER_SNAPSHOT}"),
                    _ => bail!("the program is busy; try again"),
                },
                Outcome::Failed => bail!("{}", reply.message),
            }
        }
    }
}

/// Sends a request, and returns the bytes of the reply.
fn converse(mut stream: UnixStream, request: &Request) -> io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // A program that does not want to hear more may have answered.
    let _ = stream.write_all(&request.to_bytes());
    let _ = stream.shutdown(Shutdown::Write);
    let mut reply = Vec::new();
    match stream.take(MAX_REPLY as u64).read_to_end(&mut reply) {
        // It has answered, and not read all of the request.
        Err(error) if reply.is_empty() => Err(error),
        _ => Ok(reply),
    }
}

fn state(reply: &Reply) -> State {
    match reply.state {
        WireState::Idle => State::Idle,
        WireState::Armed => State::Armed,
        WireState::Recording => State::Recording,
        WireState::Failed => State::Failed(reply.message.clone()),
    }
}

/// Connects to a socket in the abstract namespace. Fails if others wait to be connected.
fn connect_to(name: &str) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(
        &socket,
        &SocketAddrUnix::new_abstract_name(name.as_bytes())?,
    )?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Checks that the program has no filter of system calls that the library did not have when it was loaded.
fn check_filters(pid: i32, identity: &Identity, allow_seccomp: bool) -> anyhow::Result<()> {
    let listener = listener(pid).map_or(0, |listener| listener.seccomp_filters);
    let has_more = identity.seccomp_filters > listener;
    if identity.seccomp == 1 || has_more && !allow_seccomp {
        return Err(Refusal::Seccomp(pid).into());
    }
    Ok(())
}

/// The thread with which a process waits.
pub(in crate::commands) fn listener(pid: i32) -> Option<Identity> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    threads.flatten().find_map(|thread| {
        let name = fs::read_to_string(thread.path().join("comm")).ok()?;
        let tid = thread.file_name();
        (name.trim_end() == THREAD_NAME)
            .then(|| Identity::read(&format!("{pid}/task/{}", tid.to_string_lossy())))?
            .ok()
    })
}
