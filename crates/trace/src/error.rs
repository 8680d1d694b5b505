//! Errors that prevent reading a trace.

use std::fmt;
use std::io;

use crate::damage::Flaw;
use crate::format::VERSION;

/// The error that stopped reading a trace.
///
/// Damage inside a trace is no error unless [strictness](crate::Options::strict) is asked for:
/// see [`Damage`](crate::Damage).
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing to read.
    Empty,

    /// The data is something else.
    NotATrace {
        /// A description of the file.
        found: String,
    },

    /// A version of the format that is newer than this program.
    UnsupportedVersion {
        /// The version in the first packet.
        found: u16,
    },

    /// The first packet, without which nothing can be understood, is damaged.
    BadTraceInfo {
        /// A description of the error.
        reason: &'static str,
    },

    /// The compressed data cannot be decompressed.
    BrokenCompression {
        /// The decompressor's message.
        reason: String,
    },

    /// A recording that is read while it grows is not what it was: something else has written to
    /// the file.
    NotTheRecording {
        /// A description of the error.
        reason: &'static str,
    },

    /// Strict reading found a flaw.
    Damaged(Flaw),

    /// Reading the file failed.
    Io(io::Error),
}

// Written by hand, because this crate is part of the programs that are recorded: a derive macro would
// be most of what they have to compile for it.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str(
                "the trace is empty: the program was not traced, or ended before anything was written",
            ),
            Self::NotATrace { found } => write!(
                f,
                "not a memtrace trace: found {found}, expected the bytes c1 1f fc c1"
            ),
            Self::UnsupportedVersion { found } => write!(
                f,
                "unsupported format version {found}: versions 1 to {VERSION} are supported; \
                 try a newer heapline"
            ),
            Self::BadTraceInfo { reason } => write!(
                f,
                "cannot read the first packet, which has the sampling rate: {reason}"
            ),
            Self::BrokenCompression { reason } => write!(
                f,
                "the compressed data is damaged, truncated or unsupported: {reason}"
            ),
            Self::NotTheRecording { reason } => write!(
                f,
                "the trace was overwritten while it was being followed: {reason}; open it again"
            ),
            Self::Damaged(flaw) => write!(
                f,
                "damaged trace: {flaw} (without strict checking, the rest can be read)"
            ),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // It is shown as this error, not as its cause.
            Self::Io(error) => error.source(),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Guesses from its first bytes what a file is that is not a trace.
pub(crate) fn describe(bytes: &[u8]) -> String {
    const KINDS: &[(&[u8], &str)] = &[
        (b"\x1f\x8b", "gzip data inside the decompressed data"),
        (
            b"\x28\xb5\x2f\xfd",
            "zstd data inside the decompressed data",
        ),
        (b"\x7fELF", "an ELF program or library"),
        (b"Caml1999", "an OCaml compiler artefact"),
        (b"\xc1\xfc\x1f\xc1", "a trace of a big-endian machine"),
        (b"PK\x03\x04", "a zip archive"),
        (b"PAR1", "a Parquet file"),
        (b"{", "JSON or other text"),
        (b"#!", "a script"),
        (b"<", "HTML or XML"),
        (b"\xfd7zXZ", "xz data (decompress it first)"),
        (b"BZh", "bzip2 data (decompress it first)"),
    ];
    if let Some((_, kind)) = KINDS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return (*kind).to_owned();
    }
    let head = &bytes[..bytes.len().min(16)];
    let printable = head
        .iter()
        .all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace());
    if printable {
        format!("text beginning with {:?}", String::from_utf8_lossy(head))
    } else {
        let hex: Vec<String> = head.iter().take(4).map(|b| format!("{b:02x}")).collect();
        format!("the bytes {}", hex.join(" "))
    }
}
