//! A dataset in a local folder.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::lock::Lock;
use crate::{Error, Labels, MANIFEST, Run, RunFolder, RunId, RunInfo, TraceFile, VERSION};

/// The start of names of folders whose run is not complete.
pub(crate) const ADDING: &str = ".adding-";

/// The manifest's own name of the format.
const FORMAT: &str = "heapline-dataset";

/// A dataset in a local folder. Several processes can add to it at the same time.
#[derive(Clone, Debug)]
pub struct Dataset {
    folder: PathBuf,
}

/// The result of adding a trace.
#[derive(Clone, Debug, PartialEq)]
pub enum Added {
    /// It is a new run.
    New(Box<RunInfo>),
    /// The dataset has it already: nothing was changed.
    Known(RunFolder),
}

/// The contents of the manifest.
#[derive(Deserialize, Serialize)]
struct Manifest {
    format: String,
    version: u32,
}

impl Dataset {
    /// Opens a dataset.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, Error> {
        let dataset = Self {
            folder: folder.into(),
        };
        let path = dataset.manifest();
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound && dataset.folder.is_dir() => {
                return Err(Error::NotADataset(dataset.folder));
            }
            text => text.map_err(Error::io("read", &path))?,
        };
        let refuse = |reason: String| Error::Manifest {
            path: path.clone(),
            reason,
        };
        let manifest: Manifest =
            serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))?;
        if manifest.format != FORMAT {
            return Err(refuse(format!("it is not a {FORMAT}")));
        }
        if manifest.version != VERSION {
            return Err(refuse(format!(
                "the dataset has version {}, and this heapline reads version {VERSION}; \
                 use the heapline that wrote it, or add its traces to a new dataset",
                manifest.version
            )));
        }
        Ok(dataset)
    }

    /// Opens a dataset, or makes one of a folder that is new or empty.
    pub fn create(folder: impl Into<PathBuf>) -> Result<Self, Error> {
        let dataset = Self {
            folder: folder.into(),
        };
        if !dataset.manifest().exists() {
            let folder = &dataset.folder;
            fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
            let entries = fs::read_dir(folder).map_err(Error::io("read", folder))?;
            // Another process may be about to do the same.
            let is_ours = |name: &str| name == MANIFEST || name.starts_with(ADDING);
            for entry in entries {
                let name = entry.map_err(Error::io("read", folder))?.file_name();
                if !is_ours(&name.to_string_lossy()) {
                    // Another process may have finished meanwhile, and added a run.
                    return Self::open(folder).map_err(|error| match error {
                        Error::NotADataset(folder) => Error::NotEmpty(folder),
                        error => error,
                    });
                }
            }
            dataset.write_manifest()?;
        }
        Self::open(dataset.folder)
    }

    /// Writes the manifest so that no process sees a part of it.
    fn write_manifest(&self) -> Result<(), Error> {
        let manifest = Manifest {
            format: FORMAT.to_owned(),
            version: VERSION,
        };
        let text = serde_json::to_string(&manifest).unwrap_or_default() + "\n";
        let new = Adding::start(self)?;
        let path = new.path.join(MANIFEST);
        fs::write(&path, text)
            .and_then(|()| fs::rename(&path, self.manifest()))
            .map_err(Error::io("write", &self.manifest()))
    }

    pub(crate) fn manifest(&self) -> PathBuf {
        self.folder.join(MANIFEST)
    }

    /// Waits until no other process begins or ends an add.
    pub(crate) fn lock(&self) -> Result<Lock, Error> {
        Lock::wait(&self.folder).map_err(Error::io("lock", &self.folder))
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds a trace, unless its run is there already. The run is there completely or not at all, whatever
    /// happens meanwhile.
    pub fn add(&self, trace: impl AsRef<Path>, labels: &Labels) -> Result<Added, Error> {
        let trace = TraceFile::open(trace)?;
        let id = trace.id()?;
        if let Some(known) = self.find(id)? {
            return Ok(Added::Known(known));
        }
        let profile = trace.profile()?;
        let run = Run::new(&profile, id, &trace.name(), labels)?;
        let new = Adding::start(self)?;
        let info = run.write(&new.path)?;
        // Another process may have added it meanwhile, perhaps as another service.
        let _lock = self.lock()?;
        if let Some(known) = self.find(id)? {
            return Ok(Added::Known(known));
        }
        let folder = run.folder();
        new.finish(&folder.in_dataset(&self.folder))?;
        Ok(Added::New(Box::new(info)))
    }

    /// The folder of a run.
    fn find(&self, run: RunId) -> Result<Option<RunFolder>, Error> {
        let name = format!("run={run}");
        for service in folders(&self.folder)? {
            for day in folders(&self.folder.join(&service))? {
                if self.folder.join(&service).join(&day).join(&name).exists()
                    && let Some(found) = RunFolder::parse(&service, &day, &name)
                {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    /// The folders of all runs, in order of service, day and id.
    pub fn run_folders(&self) -> Result<Vec<RunFolder>, Error> {
        let mut found = Vec::new();
        for service in folders(&self.folder)? {
            let service_folder = self.folder.join(&service);
            for day in folders(&service_folder)? {
                for run in folders(&service_folder.join(&day))? {
                    found.extend(RunFolder::parse(&service, &day, &run));
                }
            }
        }
        found.sort();
        Ok(found)
    }
}

/// The names of entries of a folder that are not hidden and may be folders of a dataset; none if the folder was removed.
pub(crate) fn folders(folder: &Path) -> Result<Vec<String>, Error> {
    let entries = match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        entries => entries.map_err(Error::io("read", folder))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(Error::io("read", folder))?.file_name();
        names.extend(name.into_string().ok().filter(|name| name.contains('=')));
    }
    Ok(names)
}

/// A folder for files of a run that is not complete; removed unless it is finished.
#[derive(Debug)]
struct Adding {
    path: PathBuf,
    is_finished: bool,
    /// Tells others that it is in use: see [`Dataset::check`].
    _lock: Lock,
}

impl Adding {
    fn start(dataset: &Dataset) -> Result<Self, Error> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // Or a check would take it for a leftover before it has its own lock.
        let _lock = dataset.lock()?;
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{ADDING}{}-{number}", std::process::id());
            let path = dataset.folder.join(name);
            match fs::create_dir(&path) {
                // One that was left, or of a process on another machine.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io("create", &path)(error)),
                Ok(()) => {
                    let lock = Lock::wait(&path).map_err(Error::io("lock", &path))?;
                    return Ok(Self {
                        path,
                        is_finished: false,
                        _lock: lock,
                    });
                }
            }
        }
    }

    /// Moves the folder to where its run belongs.
    fn finish(mut self, target: &Path) -> Result<(), Error> {
        fs::create_dir_all(target.parent().unwrap_or(target))
            .and_then(|()| fs::rename(&self.path, target))
            .map_err(Error::io("write", target))?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for Adding {
    fn drop(&mut self) {
        if !self.is_finished {
            // What cannot be removed is reported by a check.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_add_that_is_under_way_is_not_a_leftover() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = Dataset::create(folder.path()).unwrap();
        let adding = Adding::start(&dataset).unwrap();
        let verdict = dataset.check().unwrap();
        assert_eq!((verdict.under_way, verdict.leftovers.len()), (1, 0));
        drop(adding);
        assert_eq!(dataset.check().unwrap(), crate::Verdict::default());
    }
}
