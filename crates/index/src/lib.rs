//! Opens traces that are larger than memory, and keeps indexes beside them.
//!
//! A trace is loaded into memory up to a limit; the rest goes to files without names in the directory of the trace, or in that for
//! temporary files if it cannot be written to. An *index*, `TRACE.idx`, is such a file that was kept: it is opened in milliseconds. It is
//! checked against the trace, and ignored if it is of another one, damaged, or of another version.
//!
//! ```
//! use heapline_formats::{Options, Reader};
//! use heapline_index::TraceFile;
//! use heapline_profile::StoreOptions;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("trace.ctf");
//! # std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/mix-ocaml53/trace.ctf"), &path)?;
//! let trace = TraceFile::new(&path, heapline_index::default_memory());
//! assert!(trace.open_index().is_none());
//! let profile = trace.load(&mut Reader::open(&path, Options::default())?, StoreOptions::default())?;
//! trace.keep_index(&profile, &[])?;
//!
//! let index = trace.open_index().unwrap();
//! let indexed = index.profile(trace.limit())?;
//! assert_eq!(indexed.len(), profile.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod file;
mod identity;
mod memory;

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heapline_formats::{Options, Reader};
use heapline_model::{Error, Source};
use heapline_profile::{
    Index, IndexedAnswer, MemoryLimit, Profile, Recursion, Storage, StoreOptions,
};

use file::{FileStorage, NewFile};
pub use memory::default_memory;

/// A trace in a file, the limit of memory for it, and its index.
#[derive(Debug)]
pub struct TraceFile {
    path: PathBuf,
    memory: u64,
    uses_index: bool,
    files: Arc<Files>,
    /// Identifies the trace as it was when it was loaded.
    loaded: Mutex<Option<Vec<u8>>>,
}

/// The files that were created for a trace.
#[derive(Debug)]
struct Files {
    directory: PathBuf,
    /// Those that may become the index, with the storages that write to them.
    created: Mutex<Vec<(Arc<FileStorage>, NewFile)>>,
}

impl Files {
    /// Creates a file beside the trace, or where temporary files go.
    fn create(&self) -> io::Result<Arc<dyn Storage>> {
        self.close_unused();
        match NewFile::create(&self.directory) {
            Ok(file) => {
                let storage = Arc::new(FileStorage::new(file.open()?)?);
                let mut created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
                created.push((Arc::clone(&storage), file));
                Ok(storage)
            }
            Err(_) => Ok(Arc::new(FileStorage::new(tempfile::tempfile()?)?)),
        }
    }

    /// Takes the file of a storage, if it is beside the trace.
    fn take(&self, storage: &Arc<dyn Storage>) -> Option<NewFile> {
        let mut created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it =
            |known: &Arc<FileStorage>| std::ptr::addr_eq(Arc::as_ptr(known), Arc::as_ptr(storage));
        let place = created.iter().position(|(known, _)| is_it(known))?;
        Some(created.swap_remove(place).1)
    }

    /// Closes the files that nobody uses any more.
    fn close_unused(&self) {
        let mut created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        created.retain(|(storage, _)| Arc::strong_count(storage) > 1);
    }
}

/// Loads a trace, within its limit of memory, from its index if there is one that answers the same questions.
///
/// Bytes are opened only if they are needed. `file` is `None` for pipes, whose limit is `memory`. An error of reading is made an
/// error of the caller by `problem`.
pub fn load<R: Read + Send + 'static, E>(
    file: Option<&TraceFile>,
    memory: u64,
    options: Options,
    store: StoreOptions,
    bytes: impl FnOnce() -> Result<R, E>,
    problem: impl Fn(Error) -> E,
) -> Result<Profile, E> {
    // An index has all stacks, without recursion, and all events.
    let may_use = options.stacks && options.partial_packets && store.recursion != Recursion::Keep;
    let indexed = file.filter(|_| may_use);
    if let Some(profile) = indexed.and_then(|file| file.indexed(options.strict)) {
        return Ok(profile);
    }
    let mut reader = Reader::new(bytes()?, options).map_err(&problem)?;
    let profile = match file {
        Some(file) => file.load(&mut reader, store),
        None => Profile::load_within(temporary_limit(memory), &mut reader, store),
    };
    profile.map_err(problem)
}

/// The limit of memory for a trace that is not in a file.
fn temporary_limit(memory: u64) -> MemoryLimit {
    MemoryLimit {
        bytes: memory,
        create: Arc::new(|| Ok(Arc::new(FileStorage::new(tempfile::tempfile()?)?))),
    }
}

impl TraceFile {
    /// A trace that may take so many bytes of memory.
    #[must_use]
    pub fn new(path: &Path, memory: u64) -> Self {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        Self {
            path: path.to_owned(),
            memory,
            uses_index: true,
            files: Arc::new(Files {
                directory: directory.to_owned(),
                created: Mutex::default(),
            }),
            loaded: Mutex::default(),
        }
    }

    /// Ignores an index, and keeps none, if `no`.
    #[must_use]
    pub fn without_index(mut self, no: bool) -> Self {
        self.uses_index = !no;
        self
    }

    /// Returns true if an index is used, and may be kept.
    #[must_use]
    pub fn uses_index(&self) -> bool {
        self.uses_index
    }

    /// The name of the index: that of the trace, with `.idx` after it.
    #[must_use]
    pub fn index_path(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".idx");
        name.into()
    }

    /// The limit of memory, and what makes files for the rest.
    #[must_use]
    pub fn limit(&self) -> MemoryLimit {
        let files = Arc::clone(&self.files);
        MemoryLimit {
            bytes: self.memory,
            create: Arc::new(move || files.create()),
        }
    }

    /// Opens the index, if there is one of the trace as it is now.
    #[must_use]
    pub fn open_index(&self) -> Option<Index> {
        if !self.uses_index {
            return None;
        }
        let file = file::open(&self.index_path()).ok()?;
        let len = file.metadata().ok().filter(fs::Metadata::is_file)?.len();
        let storage = FileStorage::new(file).ok()?;
        let index = Index::open(Arc::new(storage), len).ok()?;
        let identity = identity::identity(&self.path).ok()?;
        (index.trace() == identity).then_some(index)
    }

    /// The profile of the index, if there is one of the trace as it is now. With `strict`, it must be one of an intact trace.
    fn indexed(&self, strict: bool) -> Option<Profile> {
        let index = self.open_index()?;
        if strict && !index.damage().is_empty() {
            return None;
        }
        index.profile(self.limit()).ok()
    }

    /// Loads the trace from a source, within the limit of memory.
    pub fn load(&self, source: &mut dyn Source, options: StoreOptions) -> Result<Profile, Error> {
        *self.loaded() = identity::identity(&self.path).ok();
        let profile = Profile::load_within(self.limit(), source, options);
        self.files.close_unused();
        profile
    }

    /// Keeps an index of a profile that was loaded from the trace, with some answers. Returns its size.
    ///
    /// Until it is complete, nothing with its name is changed. It fails for profiles that [cannot have one](Profile::is_indexable).
    pub fn keep_index(&self, profile: &Profile, answers: &[IndexedAnswer]) -> io::Result<u64> {
        if !profile.is_indexable() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "only traces of memtrace's format have indexes",
            ));
        }
        let before = identity::identity(&self.path)?;
        if self
            .loaded()
            .as_ref()
            .is_some_and(|loaded| *loaded != before)
        {
            return Err(io::Error::other(
                "the trace has changed since it was loaded",
            ));
        }
        let create = || self.files.create();
        let storage = profile.write_index(&before, answers, create)?;
        let file = self.files.take(&storage).ok_or_else(|| {
            let directory = self.files.directory.display();
            io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("cannot create files in {directory}"),
            )
        })?;
        let size = file.open()?.metadata()?.len();
        file.persist(&self.index_path(), &fs::metadata(&self.path)?)?;
        Ok(size)
    }

    fn loaded(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
