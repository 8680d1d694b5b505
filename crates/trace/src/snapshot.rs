//! Snapshots of trace files with their tails.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::format::MAX_HEADER;
use crate::reader::ByteSource;
use crate::tail::{self, Completion, Overlay, Tail};

/// The number of times that a trace is opened if its tail belongs to another recording, which may
/// just have been started.
const MAX_TRIES: u32 = 3;

/// Opens a trace file together with its [tail file](crate::tail), if it has one: complete up to now.
///
/// Nothing is written, and it does not matter whether the program still runs. The bytes may be
/// compressed, see [`Reader::from_source`](crate::Reader::from_source). A tail that cannot be used
/// is ignored; [`Snapshot`] says why.
///
/// ```
/// use std::io::Read;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/mix-ocaml53/trace.ctf");
/// let mut bytes = Vec::new();
/// heapline_trace::open(path)?.read_to_end(&mut bytes)?;
/// assert!(bytes.starts_with(&0xc1fc_1fc1_u32.to_le_bytes()));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn open(path: impl AsRef<Path>) -> io::Result<ByteSource> {
    let path = path.as_ref();
    if !fs::metadata(path)?.is_file() {
        // A pipe can be read once, from wherever it is, and has no tail.
        return Ok(Box::new(File::open(path)?));
    }
    Ok(Box::new(Snapshot::open(path)?.reader()))
}

/// A trace file at one moment: what is recorded later is not in it.
///
/// It can be read any number of times. Only the file itself is kept open, not read into memory.
///
/// ```
/// use heapline_trace::{Options, Reader, Snapshot};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/mix-ocaml53/trace.ctf");
/// let snapshot = Snapshot::open(path)?;
/// if let Some(problem) = snapshot.problem() {
///     eprintln!("cannot recover the last events of {path}: {problem}");
/// }
/// for _ in 0..2 {
///     let mut reader = Reader::from_source(snapshot.reader(), Options::new())?;
///     let mut events = 0;
///     reader.for_each(|_, _| events += 1)?;
///     # assert_eq!(events, 5586);
/// }
/// # Ok::<(), heapline_trace::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Snapshot {
    file: Arc<Mutex<Positioned>>,
    len: u64,
    completion: Option<Arc<Completion>>,
    problem: Option<Arc<TailProblem>>,
}

impl Snapshot {
    /// Opens a regular file and its tail, if it has one.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let mut snapshot = Self::try_open(path)?;
        for _ in 1..MAX_TRIES {
            match snapshot.problem.as_deref() {
                Some(TailProblem::OtherRecording { .. }) => snapshot = Self::try_open(path)?,
                _ => break,
            }
        }
        Ok(snapshot)
    }

    /// A file without a name, or one that has no tail. It must be one that can be read from any
    /// offset.
    pub fn of_file(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self {
            file: Arc::new(Mutex::new(Positioned { file, offset: None })),
            len,
            completion: None,
            problem: None,
        })
    }

    fn try_open(path: &Path) -> io::Result<Self> {
        let mut snapshot = Self::of_file(File::open(path)?)?;
        let (tail_path, mut tail) = match open_tail(path) {
            Ok(Some(tail)) => tail,
            Ok(None) => return Ok(snapshot),
            Err((path, error)) => {
                snapshot.problem = Some(Arc::new(TailProblem::Unreadable { path, error }));
                return Ok(snapshot);
            }
        };
        let mut first = Vec::new();
        let file = &mut snapshot.rewound();
        file.take(MAX_HEADER as u64).read_to_end(&mut first)?;
        match Tail::read(&mut tail) {
            // A trace that is empty is about to begin.
            Ok(tail) if !tail.has_begun() || first.is_empty() => {}
            Ok(tail) if tail.belongs_to(&first) => {
                let completion = Completion::new(&tail, &first);
                snapshot.completion = Some(Arc::new(completion));
            }
            Ok(_) => {
                let path = tail_path;
                snapshot.problem = Some(Arc::new(TailProblem::OtherRecording { path }));
            }
            Err(error) => {
                let path = tail_path;
                snapshot.problem = Some(Arc::new(TailProblem::Unreadable { path, error }));
            }
        }
        Ok(snapshot)
    }

    /// Reads it from its start.
    #[must_use]
    pub fn reader(&self) -> SnapshotReader {
        let file = self.rewound();
        SnapshotReader(match &self.completion {
            Some(completion) => Bytes::Overlaid(Overlay::new(file, Arc::clone(completion))),
            None => Bytes::Plain(file),
        })
    }

    /// About how many bytes there are to be read, compressed as they may be.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.len + self.completion.as_ref().map_or(0, |more| more.more_bytes())
    }

    /// The reason why the tail beside the trace is not used, if there is one.
    #[must_use]
    pub fn problem(&self) -> Option<&TailProblem> {
        self.problem.as_deref()
    }

    fn rewound(&self) -> FromStart {
        FromStart {
            file: Arc::clone(&self.file),
            offset: 0,
        }
    }
}

/// The reason why a tail is not used.
#[derive(Debug)]
#[non_exhaustive]
pub enum TailProblem {
    /// It belongs to another recording under the same name.
    OtherRecording {
        /// The tail.
        path: PathBuf,
    },
    /// It cannot be read, or is something else.
    Unreadable {
        /// The tail.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
}

impl fmt::Display for TailProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherRecording { path } => {
                let path = path.display();
                write!(f, "{path} belongs to another recording; remove it")
            }
            Self::Unreadable { path, error } => {
                write!(f, "cannot read {}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for TailProblem {}

/// Reads a [`Snapshot`] from its start.
pub struct SnapshotReader(Bytes);

enum Bytes {
    Plain(FromStart),
    Overlaid(Overlay<FromStart>),
}

impl fmt::Debug for SnapshotReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotReader").finish_non_exhaustive()
    }
}

impl Read for SnapshotReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Bytes::Plain(file) => file.read(buffer),
            Bytes::Overlaid(overlay) => overlay.read(buffer),
        }
    }
}

/// The tail of a trace with its name, if there is one. A link leads to a trace with its own.
pub(crate) fn open_tail(trace: &Path) -> Result<Option<(PathBuf, File)>, (PathBuf, io::Error)> {
    let real = fs::canonicalize(trace).ok().map(|real| tail::path(&real));
    for path in [Some(tail::path(trace)), real].into_iter().flatten() {
        match File::open(&path) {
            Ok(file) => return Ok(Some((path, file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err((path, error)),
        }
    }
    Ok(None)
}

/// A file, and the offset it is at, if that is known.
#[derive(Debug)]
struct Positioned {
    file: File,
    offset: Option<u64>,
}

/// Reads a file from its start, whatever others do with it.
struct FromStart {
    file: Arc<Mutex<Positioned>>,
    offset: u64,
}

impl Read for FromStart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut shared = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.offset.take() != Some(self.offset) {
            shared.file.seek(SeekFrom::Start(self.offset))?;
        }
        let n = shared.file.read(buffer)?;
        self.offset += n as u64;
        shared.offset = Some(self.offset);
        Ok(n)
    }
}
