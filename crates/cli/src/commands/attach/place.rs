//! The files that an attached program writes.
//!
//! The program opens the file itself, a trace or a snapshot, as its user, and in its mount namespace. Where that is not ours, it
//! writes to a directory of its own, from which the trace is copied at the end.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use heapline_recorder::control::FileView;
use heapline_recorder::tail;

use super::program::Running;
use crate::commands::record::{make_way, refuse_compressed};

/// Directories for temporary files that programs may have.
const TEMPORARY: [&str; 3] = ["tmp", "var/tmp", "dev/shm"];

const NAME: &str = "output";

/// The place of a trace.
pub(in crate::commands) struct Place {
    /// The trace as the program sees it.
    pub(in crate::commands) inside: PathBuf,
    /// The trace in the end.
    output: PathBuf,
    staged: Option<Staged>,
}

/// A directory in the program's mount namespace.
struct Staged {
    /// Open, so that it can be reached when the program has ended.
    folder: File,
    parent: File,
    name: String,
}

impl Place {
    pub(in crate::commands) fn new(
        running: &Running,
        output: Option<&Path>,
        extension: &str,
        force: bool,
    ) -> anyhow::Result<Self> {
        let output = match output {
            Some(output) => {
                refuse_compressed(output)?;
                output.to_owned()
            }
            None => unused(&running.name, running.pid, extension),
        };
        make_way(&output, force)?;
        if is_shared(running)? {
            return Ok(Self {
                inside: std::path::absolute(&output)?,
                output,
                staged: None,
            });
        }
        let (staged, inside) = Staged::new(running)?;
        Ok(Self {
            inside,
            output,
            staged: Some(staged),
        })
    }

    /// The trace as seen from here.
    pub(in crate::commands) fn trace(&self) -> PathBuf {
        match &self.staged {
            Some(staged) => staged.path().join(NAME),
            None => self.output.clone(),
        }
    }

    /// Removes what there may be.
    pub(in crate::commands) fn discard(&self) {
        let trace = self.trace();
        let _ = fs::remove_file(tail::path(&trace));
        let _ = fs::remove_file(&trace);
        if let Some(staged) = &self.staged {
            staged.remove();
        }
    }

    /// The trace in its final place, with its tail.
    pub(in crate::commands) fn collect(self) -> anyhow::Result<PathBuf> {
        let Some(staged) = &self.staged else {
            return Ok(self.output);
        };
        let from = self.trace();
        for (from, to) in [
            (from.clone(), self.output.clone()),
            (tail::path(&from), tail::path(&self.output)),
        ] {
            match fs::copy(&from, &to) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => {
                    result.with_context(|| format!("cannot write {}", to.display()))?;
                    let _ = fs::remove_file(&from);
                }
            }
        }
        staged.remove();
        Ok(self.output)
    }
}

impl Staged {
    fn new(running: &Running) -> anyhow::Result<(Self, PathBuf)> {
        let root = running.root();
        let name = format!("heapline-{}-{}", running.pid, std::process::id());
        let mut problems = Vec::new();
        for parent in TEMPORARY {
            match Self::create(&root.join(parent), &name, running) {
                Ok(staged) => {
                    let inside = Path::new("/").join(parent).join(&name).join(NAME);
                    return Ok((staged, inside));
                }
                Err(error) => problems.push(format!("\n  /{parent}: {error}")),
            }
        }
        bail!(
            "process {} is another user's or in another mount namespace, and there is no directory in \
             which both it and heapline can write; tried:{}",
            running.pid,
            problems.concat()
        )
    }

    fn create(parent: &Path, name: &str, running: &Running) -> io::Result<Self> {
        let parent = File::open(parent)?;
        let staged = Self {
            folder: {
                let folder = below(&parent).join(name);
                DirBuilder::new().mode(0o700).create(&folder)?;
                File::open(&folder)?
            },
            parent,
            name: name.to_owned(),
        };
        let user = running.identity.users[1];
        let owned = chown(staged.path(), Some(user), Some(running.identity.group));
        owned.inspect_err(|_| staged.remove())?;
        Ok(staged)
    }

    fn path(&self) -> PathBuf {
        below(&self.folder)
    }

    fn remove(&self) {
        let _ = fs::remove_dir(below(&self.parent).join(&self.name));
    }
}

/// The path of an open directory, whatever became of its name.
fn below(folder: &File) -> PathBuf {
    format!("/proc/self/fd/{}", folder.as_raw_fd()).into()
}

/// A name for a file about a process, that of the program.
fn unused(name: &str, pid: i32, extension: &str) -> PathBuf {
    let more = (2..).map(|n| format!("{name}.{pid}-{n}.{extension}"));
    let mut names = std::iter::once(format!("{name}.{pid}.{extension}")).chain(more);
    let is_free = |name: &String| !Path::new(name).exists();
    names.find(is_free).unwrap_or_default().into()
}

/// Returns true if a program can write where we do: it sees the same files, and has our rights or more.
fn is_shared(running: &Running) -> anyhow::Result<bool> {
    let own = rustix::process::geteuid().as_raw();
    let user = running.identity.users[1];
    let sees_ours = running.files()?.is_same(&FileView::of("self")?);
    Ok(sees_ours && (user == own || user == 0))
}
