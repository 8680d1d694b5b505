//! Errors that prevent reading a trace.

use crate::damage::Flaw;
use crate::format::VERSION;

/// The error that stopped reading a trace.
///
/// Damage inside a trace is no error unless [strictness](crate::Options::strict) is asked for:
/// see [`Damage`](crate::Damage).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing to read.
    #[error("the trace is empty: the program was not traced, or ended before anything was written")]
    Empty,

    /// The data is something else.
    #[error("not a memtrace trace: found {found}, expected the bytes c1 1f fc c1")]
    NotATrace {
        /// A description of the file.
        found: String,
    },

    /// A version of the format that is newer than this program.
    #[error(
        "unsupported format version {found}: versions 1 to {VERSION} are supported; try a newer heapline"
    )]
    UnsupportedVersion {
        /// The version in the first packet.
        found: u16,
    },

    /// The first packet, without which nothing can be understood, is damaged.
    #[error("cannot read the first packet, which has the sampling rate: {reason}")]
    BadTraceInfo {
        /// A description of the error.
        reason: &'static str,
    },

    /// The compressed data cannot be decompressed.
    #[error("the compressed data is damaged, truncated or unsupported: {reason}")]
    BrokenCompression {
        /// The decompressor's message.
        reason: String,
    },

    /// Strict reading found a flaw.
    #[error("damaged trace: {0} (without strict checking, the rest can be read)")]
    Damaged(Flaw),

    /// Reading the file failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
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
