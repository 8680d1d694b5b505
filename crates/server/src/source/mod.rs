//! Source files in the folders that the user has given. No other file is ever read, unless the user
//! reads it with a command.

mod editor;
mod search;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use heapline_engine::{FindSource, shell_path};
use heapline_profile::reports::{SourceFile, WantedSource};

pub use self::editor::EditorLink;
use self::search::{longest_suffix, parts};

/// The largest source file that is read.
const LARGEST: u64 = 4 << 20;

/// The most lines of a source file that is shown.
const MOST_LINES: usize = 200_000;

/// Files that are not searched for a second time.
const REMEMBERED: usize = 4096;

/// Folders with source files; none by default.
#[derive(Debug, Default)]
pub struct SourceFolders {
    folders: Vec<Folder>,
    /// True if files outside of the folders are read, too, by the paths in the trace.
    reads_recorded_paths: bool,
    /// Files that were searched for and found.
    found: Mutex<HashMap<String, PathBuf>>,
}

#[derive(Debug)]
struct Folder {
    /// The folder as the user named it.
    given: String,
    /// The path without symbolic links.
    real: PathBuf,
}

/// A folder that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot read sources from {}: {error}", .path.display())]
pub struct SourceFolderError {
    path: PathBuf,
    error: io::Error,
}

impl SourceFolders {
    /// The files below these folders.
    pub fn new(folders: &[PathBuf]) -> Result<Self, SourceFolderError> {
        let folder = |path: &PathBuf| {
            let real = path.canonicalize().and_then(|real| {
                if real.is_dir() {
                    Ok(real)
                } else {
                    Err(io::ErrorKind::NotADirectory.into())
                }
            });
            match real {
                Ok(real) => Ok(Folder {
                    given: path.display().to_string(),
                    real,
                }),
                Err(error) => Err(SourceFolderError {
                    path: path.clone(),
                    error,
                }),
            }
        };
        Ok(Self {
            folders: folders.iter().map(folder).collect::<Result<_, _>>()?,
            reads_recorded_paths: false,
            found: Mutex::default(),
        })
    }

    /// Also reads files outside of the folders by the paths in the trace, relative ones from the current directory: for a user
    /// who could read them anyway, never for a server.
    #[must_use]
    pub fn with_recorded_paths(mut self) -> Self {
        self.reads_recorded_paths = true;
        self
    }

    /// The folders as the user named them.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.folders.iter().map(|folder| &*folder.given)
    }

    /// A lookup for sessions.
    #[must_use]
    pub fn finder(self: &Arc<Self>) -> FindSource {
        let folders = Arc::clone(self);
        let names = self.names().map(ToOwned::to_owned).collect();
        FindSource::new(names, move |wanted| folders.find(wanted))
    }

    /// Finds and reads a file; fails with a reason for people.
    pub fn find(&self, wanted: WantedSource<'_>) -> Result<SourceFile, String> {
        let file = wanted.file;
        if file.starts_with("/rustc/") {
            return Err(format!(
                "{file} is part of Rust's standard library, whose source is not looked up"
            ));
        }
        if file.is_empty() || file.starts_with(['(', '<']) {
            return Err("the trace does not tell the file".to_owned());
        }
        match self.locate(wanted) {
            Some(path) => {
                let name = self.name_of(&path);
                let read = read(&path).map_err(|problem| format!("{name}: {problem}"))?;
                Ok(SourceFile { path: name, ..read })
            }
            None => Err(self.hint(file)),
        }
    }

    /// The real path of a file that may be read.
    fn locate(&self, wanted: WantedSource<'_>) -> Option<PathBuf> {
        let path = Path::new(wanted.file);
        if path.is_absolute()
            && let Some(real) = self.allowed(path)
        {
            return Some(real);
        }
        let parts = parts(path)?;
        // The rest of `folder/part/part`, for the whole path and without the folders of a build.
        let whole: PathBuf = parts.iter().collect();
        let built = Path::new("_build").join("default");
        let plain = whole.strip_prefix(&built).unwrap_or(&whole);
        for folder in &self.folders {
            for path in [&*whole, plain, &*built.join(plain)] {
                if let Some(real) = self.allowed(&folder.real.join(path)) {
                    return Some(real);
                }
            }
        }
        // The files of the standard library have short names, such as `map.ml`, that others have too.
        if wanted.is_standard {
            return None;
        }
        if self.reads_recorded_paths && !path.is_absolute() {
            // Relative to the current directory, as compilers have them.
            for path in [&*whole, plain, &*built.join(plain)] {
                if let Some(real) = self.allowed(path) {
                    return Some(real);
                }
            }
        }
        let lock = || self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(wanted.file).cloned();
        if let Some(real) = known.and_then(|path| self.allowed(&path)) {
            return Some(real);
        }
        let searches = self.folders.iter();
        let found = searches.filter_map(|folder| longest_suffix(&folder.real, &parts));
        // The first of the longest.
        let (_, path) = found.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
        let real = self.allowed(&path)?;
        let mut found = lock();
        if found.len() < REMEMBERED {
            found.insert(wanted.file.to_owned(), real.clone());
        }
        Some(real)
    }

    /// The real path of an existing file, if it may be read: symbolic links and `..` must not lead out
    /// of the folders.
    fn allowed(&self, path: &Path) -> Option<PathBuf> {
        let real = path.canonicalize().ok()?;
        let is_below = |folder: &Folder| real.starts_with(&folder.real);
        let is_allowed = self.reads_recorded_paths || self.folders.iter().any(is_below);
        (is_allowed && !real.is_dir()).then_some(real)
    }

    /// The path of a file by the name that the user has given to its folder.
    fn name_of(&self, real: &Path) -> String {
        let below = self.folders.iter().find_map(|folder| {
            let rest = real.strip_prefix(&folder.real).ok()?;
            Some(Path::new(&folder.given).join(rest))
        });
        below.as_deref().unwrap_or(real).display().to_string()
    }

    /// The reason why a file was not found, and the option that would help. It is the same for files that
    /// do not exist and for those outside of the folders.
    fn hint(&self, file: &str) -> String {
        let path = Path::new(file);
        let option = match path.parent().filter(|_| path.is_absolute()) {
            Some(folder) => format!("--source {}", shell_path(&folder.display().to_string())),
            None => format!("--source DIR, where DIR is the folder with {file}"),
        };
        match &self.folders[..] {
            [] => format!("the source is not known; give {option}"),
            folders => {
                let names: Vec<&str> = folders.iter().map(|folder| &*folder.given).collect();
                format!("{file} is not below {}; give {option}", names.join(", "))
            }
        }
    }
}

/// Reads a text file.
fn read(path: &Path) -> Result<SourceFile, String> {
    let refuse = |reason: &str| Err(reason.to_owned());
    let problem = |error: io::Error| error.to_string();
    // Before it is opened: that would wait for the other end of a pipe.
    if !path.metadata().map_err(problem)?.is_file() {
        return refuse("not a regular file");
    }
    let file = File::open(path).map_err(problem)?;
    let metadata = file.metadata().map_err(problem)?;
    if !metadata.is_file() {
        return refuse("not a regular file");
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(problem)?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("larger than {} MiB", LARGEST >> 20));
    }
    if bytes.contains(&0) {
        return refuse("a binary file");
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if text.lines().count() > MOST_LINES {
        return Err(format!("more than {MOST_LINES} lines"));
    }
    let modified = metadata.modified().ok();
    let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok(SourceFile {
        path: path.display().to_string(),
        text,
        modified: modified.and_then(|time| u64::try_from(time.as_micros()).ok()),
    })
}
