//! The messages between `heapline attach` and a program that waits for it.
//!
//! The program listens on a socket in the abstract namespace: see [`names`] and [`crate::listener`].
//! Each connection is for one request and its reply. The first byte of both is the version of the
//! protocol. A request ends where the client shuts down its side, a reply where the program closes the
//! connection.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// The version of the protocol.
const VERSION: u8 = 1;

/// Bytes of a request at most.
pub const MAX_REQUEST: usize = 64 * 1024;

/// Bytes of a reply at most.
pub const MAX_REPLY: usize = 4 * 1024;

/// Bytes of a reply before its message.
const REPLY_HEADER: usize = 3 + 3 * 8;

/// Names that a process may have. More than one, because a name may be taken: by somebody else, by a
/// process with the same number in another pid namespace, or by another copy of the library.
const NAMES: u32 = 16;

/// The names of sockets at which a process may listen, given its number in its own pid namespace. Whoever
/// connects must check the [peer].
pub fn names(pid: u32) -> impl Iterator<Item = String> {
    (0..NAMES).map(move |n| format!("heapline-agent.{pid}.{n}"))
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Return the state.
    State,
    /// Start a recording with [settings](crate::settings::RecordingSettings::to_bytes).
    Attach(Vec<u8>),
    /// End the recording.
    Detach,
    /// Take a heap snapshot with [settings](crate::settings::SnapshotSettings::to_bytes).
    Snapshot(Vec<u8>),
    /// Return the state of the last snapshot.
    SnapshotState,
    /// Describe the runtime.
    Explain,
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done = 0,
    /// The program is at it in another thread: try again.
    Busy = 1,
    /// It cannot be done: the message says why.
    Failed = 2,
}

/// The state of a recording, or of a heap snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing is recorded; no snapshot was asked for.
    Idle = 0,
    /// It begins when the program next runs OCaml code.
    Armed = 1,
    /// The program is recorded; the snapshot is being written.
    Recording = 2,
    /// It could not begin: the message says why.
    Failed = 3,
}

impl State {
    /// The state with a number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::Idle, Self::Armed, Self::Recording, Self::Failed]
            .into_iter()
            .find(|state| *state as u32 == number)
    }
}

/// The files that a process sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileView {
    /// The inode of its mount namespace; 0 if unknown.
    pub mount_namespace: u64,
    /// The device and inode of its root directory.
    pub root: (u64, u64),
}

impl FileView {
    /// That of this process; all zeros if it is unknown.
    #[must_use]
    pub fn own() -> Self {
        Self::of("self").unwrap_or_default()
    }

    /// That of a process.
    ///
    /// # Errors
    ///
    /// There is no such process, or this one may not inspect it.
    pub fn of(process: &str) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let namespace = std::fs::metadata(format!("/proc/{process}/ns/mnt"))?;
        let root = std::fs::metadata(format!("/proc/{process}/root/"))?;
        Ok(Self {
            mount_namespace: namespace.ino(),
            root: (root.dev(), root.ino()),
        })
    }

    /// Returns true if two processes see the same files under the same names.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.mount_namespace != 0 && self == other
    }
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The result of the request.
    pub outcome: Outcome,
    /// The state after it.
    pub state: State,
    /// The files that the program sees.
    pub files: FileView,
    /// A message for the user, if something failed, or a description that was asked for.
    pub message: String,
}

/// The reason why a message is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// The other side has this version of the protocol.
    Version(u8),
    /// It is no message of the protocol.
    Malformed,
}

impl Request {
    /// The bytes of the request.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (number, settings) = match self {
            Self::State => (0, &[][..]),
            Self::Attach(settings) => (1, &settings[..]),
            Self::Detach => (2, &[][..]),
            Self::Snapshot(settings) => (3, &settings[..]),
            Self::SnapshotState => (4, &[][..]),
            Self::Explain => (5, &[][..]),
        };
        [&[VERSION, number], settings].concat()
    }

    /// Reads a request.
    pub fn parse(bytes: &[u8]) -> Result<Self, Invalid> {
        let bytes = check_version(bytes)?;
        match bytes {
            [0] => Ok(Self::State),
            [1, settings @ ..] if bytes.len() < MAX_REQUEST => Ok(Self::Attach(settings.to_vec())),
            [2] => Ok(Self::Detach),
            [3, settings @ ..] if bytes.len() < MAX_REQUEST => {
                Ok(Self::Snapshot(settings.to_vec()))
            }
            [4] => Ok(Self::SnapshotState),
            [5] => Ok(Self::Explain),
            _ => Err(Invalid::Malformed),
        }
    }
}

impl Reply {
    /// The bytes of the reply. A long message is cut.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION, self.outcome as u8, self.state as u8];
        for number in [
            self.files.mount_namespace,
            self.files.root.0,
            self.files.root.1,
        ] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let message = self.message.as_bytes();
        bytes.extend_from_slice(&message[..message.len().min(MAX_REPLY - REPLY_HEADER)]);
        bytes
    }

    /// Reads a reply.
    pub fn parse(bytes: &[u8]) -> Result<Self, Invalid> {
        check_version(bytes)?;
        let (header, message) = bytes
            .split_first_chunk::<REPLY_HEADER>()
            .ok_or(Invalid::Malformed)?;
        let outcome = [Outcome::Done, Outcome::Busy, Outcome::Failed]
            .into_iter()
            .find(|outcome| *outcome as u8 == header[1]);
        let mut numbers = header[3..].chunks_exact(8).map(|chunk| {
            let mut number = [0; 8];
            number.copy_from_slice(chunk);
            u64::from_le_bytes(number)
        });
        let mut number = || numbers.next().ok_or(Invalid::Malformed);
        Ok(Self {
            outcome: outcome.ok_or(Invalid::Malformed)?,
            state: State::from_number(header[2].into()).ok_or(Invalid::Malformed)?,
            files: FileView {
                mount_namespace: number()?,
                root: (number()?, number()?),
            },
            message: String::from_utf8_lossy(message).into_owned(),
        })
    }
}

fn check_version(bytes: &[u8]) -> Result<&[u8], Invalid> {
    match bytes {
        [VERSION, rest @ ..] => Ok(rest),
        [other, ..] => Err(Invalid::Version(*other)),
        [] => Err(Invalid::Malformed),
    }
}

/// The process on the other side of a connection. For a client that is the one that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its number, as this process sees it; 0 if it is in a pid namespace that this one does not see.
    pub pid: i32,
    /// Its effective user when it connected or began to listen.
    pub user: u32,
}

/// The process on the other side of a connection, as the kernel knows it.
pub fn peer(stream: &UnixStream) -> io::Result<Peer> {
    let mut credentials = MaybeUninit::<libc::ucred>::zeroed();
    let mut len = u32::try_from(size_of::<libc::ucred>()).unwrap_or(0);
    // SAFETY: the kernel writes at most as many bytes as there are.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            credentials.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all zeros is a value of it too.
    let credentials = unsafe { credentials.assume_init() };
    Ok(Peer {
        pid: credentials.pid,
        user: credentials.uid,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_arrive_as_they_were_sent() {
        for request in [
            Request::State,
            Request::Attach(b"trace=/a\0rate=1\0".to_vec()),
            Request::Detach,
            Request::Snapshot(b"file=/a\0".to_vec()),
            Request::SnapshotState,
            Request::Explain,
        ] {
            assert_eq!(Request::parse(&request.to_bytes()), Ok(request));
        }
    }

    #[test]
    fn replies_arrive_as_they_were_sent() {
        let reply = Reply {
            outcome: Outcome::Failed,
            state: State::Recording,
            files: FileView {
                mount_namespace: u64::MAX,
                root: (1, 2),
            },
            message: "no".to_owned(),
        };
        assert_eq!(Reply::parse(&reply.to_bytes()), Ok(reply.clone()));
        let long = Reply {
            message: "x".repeat(2 * MAX_REPLY),
            ..reply
        };
        assert_eq!(long.to_bytes().len(), MAX_REPLY);
    }

    #[test]
    fn other_bytes_are_not_taken_for_messages() {
        let malformed = Err(Invalid::Malformed);
        assert_eq!(Request::parse(&[]), malformed);
        assert_eq!(Request::parse(&[VERSION]), malformed);
        assert_eq!(Request::parse(&[VERSION, 9]), malformed);
        assert_eq!(Request::parse(&[VERSION, 0, 0]), malformed);
        assert_eq!(
            Request::parse(b"GET / HTTP/1.1"),
            Err(Invalid::Version(b'G'))
        );
        let mut large = vec![VERSION, 1];
        large.resize(MAX_REQUEST + 1, 0);
        assert_eq!(Request::parse(&large), malformed);
        assert_eq!(Reply::parse(&[VERSION, 0, 0]), Err(Invalid::Malformed));
        let mut reply = vec![VERSION, 7, 0];
        reply.resize(REPLY_HEADER, 0);
        assert_eq!(Reply::parse(&reply), Err(Invalid::Malformed));
    }
}
